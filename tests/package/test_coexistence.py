"""Several copies of the library in one process, and its names beside a program's own."""

import ctypes
import shutil

from harness import expect, expect_equal, expect_in, load_config, main, run, scratch_folder
from stranger import ENVIRONMENT, PREFIX, compile_and_run, library_dir, pkg_config

CONFIG = load_config()
CPU = -2
BAD_SHAPE = 1003


def load(path):
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.softmax_create.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_int32]
    library.softmax_destroy.argtypes = [ctypes.c_void_p]
    for name in ("softmax_forward", "logsoftmax_forward"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p,
                                           ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    library.softmax_last_error.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.softmax_last_error.restype = ctypes.c_size_t
    return library


def test_two_copies_loaded_globally_each_run_their_own_code():
    with scratch_folder() as folder:
        libraries = []
        for name in ("first", "second"):
            (folder / name).mkdir()
            libraries.append(load(shutil.copy(CONFIG.shared, folder / name / "libsoftmax.so.0")))
        first, second = libraries
        address = [ctypes.cast(library.softmax_forward, ctypes.c_void_p).value
                   for library in libraries]
        expect(address[0] != address[1], "the loader gave the same copy twice")

        handles = [ctypes.c_void_p() for _ in libraries]
        for library, handle in zip(libraries, handles):
            expect_equal(library.softmax_create(ctypes.byref(handle), CPU), 0, "softmax_create")
        row = (ctypes.c_float * 2)(3, 3)
        # A failure belongs to the copy that was called, whichever was loaded first.
        status = second.logsoftmax_forward(handles[1], 0, row, -1, 2, None)
        expect_equal(status, BAD_SHAPE, "a negative row count")
        expect(second.softmax_last_error(None, 0) > 0, "the second copy lost its error")
        expect_equal(first.softmax_last_error(None, 0), 0, "the first copy's last error")
        for library, handle in zip(libraries, handles):
            row[0] = row[1] = 3
            expect_equal(library.softmax_forward(handle, 0, row, 1, 2, None), 0, "forward")
            expect_equal(list(row), [0.5, 0.5], "softmax of two equal values")
            expect_equal(library.logsoftmax_forward(handle, 0, row, 2, 1, None), 0, "log")
            expect_equal(list(row), [0.0, 0.0], "log-softmax of one value")
            expect_equal(library.softmax_destroy(handle), 0, "softmax_destroy")


def test_a_program_with_the_archive_may_load_the_shared_library():
    with scratch_folder() as folder:
        archive = library_dir(PREFIX) / "libsoftmax.a"
        static = [flag for flag in pkg_config(PREFIX, "--cflags", "--libs", "--static")
                  if flag != "-lsoftmax"]
        _, output = compile_and_run(
            folder, "two_copies.c", ["-Wl,--whole-archive", archive, "-Wl,--no-whole-archive",
                                     "-rdynamic", *static], arguments=[CONFIG.shared])
        expect_in("both work", output, "the program")


def test_the_cxx_header_and_the_librarys_own_names_do_not_clash():
    with scratch_folder() as folder:
        flags = [flag for flag in pkg_config(PREFIX, "--cflags", "--libs", "--static")
                 if flag != "-lsoftmax"]
        for standard in ("c++17", "c++20"):
            compile_and_run(folder, "internals.cc",
                            ["-Wall", "-Wextra", f"-I{CONFIG.source / 'src'}",
                             library_dir(PREFIX) / "libsoftmax.a", *flags],
                            compiler=CONFIG.cxx, first=[f"-std={standard}"])


def test_softmax_hpp_compiles_without_warnings_with_gcc_and_clang():
    compilers = [CONFIG.cxx] + [name for name in ("g++", "clang++") if shutil.which(name)]
    with scratch_folder() as folder:
        source = folder / "use.cc"
        source.write_text("#include <softmax.hpp>\n#include <softmax.hpp>\n", encoding="utf-8")
        for compiler in compilers:
            for standard in ("c++17", "c++20"):
                run(compiler, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Wshadow",
                    "-Wconversion", "-Werror", "-fsyntax-only", f"-I{PREFIX / 'include'}", source,
                    env=ENVIRONMENT)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
