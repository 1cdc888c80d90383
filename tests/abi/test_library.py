"""The files that are shipped: SONAME, what they need, what they leave open, their size."""

import binary
from harness import Skip, expect, expect_raises, load_config, main, run, scratch_folder

CONFIG = load_config()
# For sm_90 alone; every architecture together has 25 MB.
SIZE_LIMIT_BYTES = 20_000_000
SIZE_LIMIT_ALL_BYTES = 25_000_000


def check_size(size_bytes, architectures):
    limit = SIZE_LIMIT_ALL_BYTES if len(architectures.split(";")) > 1 else SIZE_LIMIT_BYTES
    expect(size_bytes < limit, f"{size_bytes} bytes, the limit is {limit}")


def test_the_soname_carries_the_abi_number():
    binary.check_soname(CONFIG.shared, CONFIG.abi_version)


def test_the_shared_library_needs_no_cuda_library():
    binary.check_needs_no_cuda(CONFIG.shared)


def test_the_shared_library_is_hardened():
    binary.check_hardened(CONFIG.shared)


def test_the_archive_has_no_weak_cuda_symbols():
    binary.check_no_weak_cuda_symbols(CONFIG.static)


def test_the_shared_library_is_small():
    if CONFIG.config in ("Debug", "RelWithDebInfo"):
        raise Skip(f"a {CONFIG.config} build carries debug information")
    size = CONFIG.shared.resolve().stat().st_size
    print(f"{size} bytes for {CONFIG.cuda_architectures or 'the CPU alone'}")
    check_size(size, CONFIG.cuda_architectures)


def test_the_library_checks_refuse_bad_libraries():
    with scratch_folder() as folder:
        empty = folder / "empty.c"
        empty.write_text("int softmax_forward(void) { return 0; }\n", encoding="utf-8")
        cudart, bad = folder / "libcudart.so.13", folder / "libsoftmax.so"
        run(CONFIG.cc, "-shared", "-fPIC", empty, "-Wl,-soname,libcudart.so.13", "-o", cudart)
        run(CONFIG.cc, "-shared", "-fPIC", empty, "-Wl,--no-as-needed", cudart,
            "-Wl,-soname,libsoftmax.so.77", "-Wl,-z,execstack", "-Wl,-z,lazy", "-o", bad)
        expect_raises(binary.check_soname, bad, CONFIG.abi_version, part="libsoftmax.so.77")
        expect_raises(binary.check_needs_no_cuda, bad, part="libcudart.so.13")
        expect_raises(binary.check_hardened, bad, part="-z now")
        run(CONFIG.cc, "-shared", "-fPIC", empty, "-Wl,-z,execstack", "-Wl,-z,now", "-o", bad)
        expect_raises(binary.check_hardened, bad, part="executable stack")

        weak = folder / "weak.c"
        weak.write_text("int softmax_forward(void) { return 0; }\n"
                        "__attribute__((weak)) int cudaFree(void *p) { return p != 0; }\n",
                        encoding="utf-8")
        run(CONFIG.cc, "-c", weak, "-o", folder / "weak.o")
        run("ar", "rcs", folder / "libweak.a", folder / "weak.o")
        expect_raises(binary.check_no_weak_cuda_symbols, folder / "libweak.a", part="cudaFree")
    expect_raises(check_size, SIZE_LIMIT_BYTES, "90", part="the limit is")
    expect_raises(check_size, SIZE_LIMIT_ALL_BYTES, "80;90", part="the limit is")


if __name__ == "__main__":
    raise SystemExit(main(globals()))
