"""pkg-config, and the linkers and flags that people use with it."""

from harness import (expect, expect_equal, expect_in, load_config, main, need, run,
                     scratch_folder)
from stranger import (CONSUMERS, PREFIX, compile_and_run, copy_prefix, library_dir, needed,
                      pkg_config, without_shared)

CONFIG = load_config()


def shared_flags(prefix):
    return pkg_config(prefix, "--cflags", "--libs")


def static_flags(folder):
    """As on a system that has only the archive."""
    prefix = copy_prefix(folder)
    without_shared(prefix)
    return pkg_config(prefix, "--cflags", "--libs", "--static")


def expect_works(output):
    expect_in(f"softmax {CONFIG.version} works", output, "the program")


def test_pkg_config_links_the_shared_library():
    need("pkg-config")
    with scratch_folder() as folder:
        flags = shared_flags(PREFIX)
        expect(not any(flag in flags for flag in ("-lhwy", "-lgomp", "-lcudart_static")),
               f"private libraries are told to those who link the shared library: {flags}")
        program, output = compile_and_run(folder, "program.c", flags,
                                          library_path=library_dir(PREFIX))
        expect_works(output)
        expect_in("libsoftmax.so.0", needed(program), "NEEDED")


def test_pkg_config_static_links_the_archive_in_c():
    need("pkg-config")
    with scratch_folder() as folder:
        program, output = compile_and_run(folder, "program.c", static_flags(folder))
        expect_works(output)
        expect("libsoftmax.so.0" not in needed(program), "the program is not static")


def test_pkg_config_follows_a_moved_installation():
    need("pkg-config")
    with scratch_folder() as folder:
        prefix = copy_prefix(folder)
        stated = pkg_config(prefix, "--variable=includedir")
        expect_equal((folder / "moved" / "include").samefile(stated[0]), True, stated)
        _, output = compile_and_run(folder, "program.c", shared_flags(prefix),
                                    library_path=library_dir(prefix))
        expect_works(output)


def test_pkg_config_states_the_version():
    need("pkg-config")
    expect_equal(pkg_config(PREFIX, "--modversion"), [CONFIG.version], "--modversion")
    run("pkg-config", "--atleast-version=99", "softmax", fails=True,
        extra_env={"PKG_CONFIG_PATH": str(library_dir(PREFIX) / "pkgconfig")})


def test_a_cxx_program_without_exceptions_and_rtti_links_the_archive():
    need("pkg-config")
    with scratch_folder() as folder:
        strict = ["-x", "c++", "-std=c++17", "-fno-exceptions", "-fno-rtti"]
        _, output = compile_and_run(folder, "program.c", static_flags(folder), compiler=CONFIG.cxx,
                                    first=strict)
        expect_works(output)


def test_softmax_hpp_says_that_it_needs_exceptions_and_cxx17():
    need("pkg-config")
    flags = pkg_config(PREFIX, "--cflags")
    for option, part in (("-fno-exceptions", "without exceptions, use softmax.h"),
                         ("-std=c++14", "softmax.hpp needs C++17")):
        output = run(CONFIG.cxx, "-std=c++17", option, "-fsyntax-only", *flags,
                     CONSUMERS / "program.cc", fails=True)
        expect_in(part, output, option)


def link_with(compiler, *flags):
    """A C++ program with the archive, and one with the shared library."""
    with scratch_folder() as folder:
        _, output = compile_and_run(folder, "program.cc", [*flags, *static_flags(folder)],
                                    compiler=compiler, first=["-std=c++17"])
        expect_works(output)
        _, output = compile_and_run(folder, "program.cc", [*flags, *shared_flags(PREFIX)],
                                    compiler=compiler, first=["-std=c++17"],
                                    library_path=library_dir(PREFIX))
        expect_works(output)


def test_section_garbage_collection_keeps_what_is_needed():
    need("pkg-config")
    link_with(CONFIG.cxx, "-O2", "-ffunction-sections", "-Wl,--gc-sections")


def test_the_gold_linker_links_both():
    need("pkg-config", "ld.gold")
    link_with(CONFIG.cxx, "-fuse-ld=gold", "-Wl,--gc-sections")


def test_clang_and_lld_link_both():
    need("pkg-config", "clang++", "ld.lld")
    link_with("clang++", "-fuse-ld=lld", "-Wl,--gc-sections")


def test_link_time_optimisation_of_the_program_links_both():
    need("pkg-config")
    link_with(CONFIG.cxx, "-O2", "-flto")


if __name__ == "__main__":
    raise SystemExit(main(globals()))
