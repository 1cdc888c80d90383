"""libabigail compares the functions and their types with those of the first release,
tests/abi/softmax-0.1.0.abi.

The entry points alone are compiled, with debug information: they are the whole interface. To
record a release: python3 tests/abi/test_abidiff.py --write (with SOFTMAX_TEST_CONFIG).
"""

import platform
import shutil
import subprocess
import sys

from harness import (Skip, expect, expect_raises, load_config, main, need, run,
                     scratch_folder)

CONFIG = load_config()
BASELINE = CONFIG.source / "tests" / "abi" / "softmax-0.1.0.abi"


def need_abidiff():
    need("abidiff", "abidw")
    if platform.machine() != "x86_64":
        raise Skip("the baseline is of x86_64")


def build_interface(folder, edits=()):
    """A library of src/api with debug information, from a copy with (file, old, new) edits."""
    for part in ("include", "src", "cmake"):
        shutil.copytree(CONFIG.source / part, folder / part)
    for name, old, new in edits:
        text = (folder / name).read_text(encoding="utf-8")
        expect(old in text, f"{name} no longer has {old!r}")
        (folder / name).write_text(text.replace(old, new), encoding="utf-8")
    library = folder / "libsoftmax.so"
    run(CONFIG.cxx, "-std=c++17", "-g", "-O0", "-fPIC", "-fpermissive", "-w",
        "-fvisibility=hidden", "-shared", f"-ffile-prefix-map={folder}=.",
        f"-I{folder / 'include'}", f"-I{folder / 'src'}",
        f"-I{CONFIG.build / 'src' / 'generated'}", *sorted((folder / "src" / "api").glob("*.cc")),
        f"-Wl,--version-script={folder / 'cmake' / 'softmax.map'}", "-Wl,-soname,libsoftmax.so.0",
        "-Wl,--unresolved-symbols=ignore-all", "-o", library)
    return library


def write_abi(library, file):
    """The types that the public header defines; what a handle points to is not among them."""
    run("abidw", "--headers-dir", library.parent / "include", "--drop-private-types",
        "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed",
        "--out-file", file, library)


def check_interface(library):
    # Both sides are written down first: abidiff's own --drop-private-types hides field changes.
    current = library.parent / "current.abi"
    write_abi(library, current)
    done = subprocess.run(["abidiff", BASELINE, current], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    expect(done.returncode == 0, f"abidiff ended with {done.returncode}:\n{done.stdout}")


def test_the_interface_is_that_of_the_first_release():
    need_abidiff()
    text = BASELINE.read_text(encoding="utf-8")
    expect("softmax_forward" in text and "softmax_desc_t" in text,
           "the baseline does not describe the interface")
    with scratch_folder() as folder:
        check_interface(build_interface(folder))


def test_the_interface_check_refuses_a_function_that_is_gone():
    need_abidiff()
    with scratch_folder() as folder:
        bad = build_interface(folder, [("cmake/softmax.map", "    softmax_select;\n", "")])
        expect_raises(check_interface, bad, part="softmax_select")


def test_the_interface_check_refuses_another_field_type():
    need_abidiff()
    with scratch_folder() as folder:
        bad = build_interface(folder, [("include/softmax.h", "int64_t causal_offset;",
                                        "double causal_offset;")])
        expect_raises(check_interface, bad, part="causal_offset")


def test_the_interface_check_refuses_another_parameter_type():
    need_abidiff()
    with scratch_folder() as folder:
        bad = build_interface(folder, [
            ("include/softmax.h", "(softmax_handle_t *handle, int32_t device)",
             "(softmax_handle_t *handle, int64_t device)"),
            ("src/api/handle.cc", "(softmax_handle_t *handle, int32_t device)",
             "(softmax_handle_t *handle, int64_t device)")])
        expect_raises(check_interface, bad, part="softmax_create")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with scratch_folder() as scratch:
            write_abi(build_interface(scratch), BASELINE)
        raise SystemExit(0)
    raise SystemExit(main(globals()))
