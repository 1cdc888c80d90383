"""find_package(Softmax), in projects of every kind."""

import re

from harness import expect, expect_equal, expect_in, load_config, main, scratch_folder
from stranger import (ENVIRONMENT, PREFIX, configure, copy_prefix, needed, use, without_shared)

CONFIG = load_config()
# Languages and tools that a C project may not have.
C_ONLY = {**ENVIRONMENT, "PATH": "/usr/bin:/bin", "CXX": "/nonexistent/c++",
          "CUDACXX": "/nonexistent/nvcc"}


def said(output):
    """CMake wraps its messages."""
    return " ".join(output.split())


def test_a_c_project_links_the_shared_library_without_cxx_openmp_or_cuda():
    with scratch_folder() as folder:
        for program in use(folder, "c_shared", PREFIX, "-DCMAKE_CXX_COMPILER=/nonexistent",
                           env=C_ONLY, compilers=False):
            expect_in("libsoftmax.so.0", needed(program), program)


def test_a_c_project_links_the_static_library():
    with scratch_folder() as folder:
        for program in use(folder, "c_static", PREFIX):
            expect("libsoftmax.so.0" not in needed(program), f"{program} is not static")
            expect(not any("libcuda" in name for name in needed(program)), needed(program))


def test_a_cxx_project_links_every_target_in_cxx17_and_cxx20():
    with scratch_folder() as folder:
        built = use(folder, "cxx_both", PREFIX)
        expect_equal(len(built), 6, "programs")
        for program in built:
            expect_equal("libsoftmax.so.0" in needed(program), "static" not in program.name,
                         f"{program.name} uses the shared library")


def test_a_moved_installation_works():
    with scratch_folder() as folder:
        prefix = copy_prefix(folder, "moved here/and there")  # with a space, as people have
        use(folder / "static", "c_static", prefix)
        for program in use(folder / "shared", "c_shared", prefix):
            expect_in("libsoftmax.so.0", needed(program), program)
        cache = (folder / "shared" / "CMakeCache.txt").read_text(encoding="utf-8")
        expect_in(f"Softmax_DIR:PATH={prefix}", cache, "where the package was found")


def test_find_package_may_be_called_again():
    with scratch_folder() as folder:
        built = use(folder, "found_twice", PREFIX)
        expect_equal(len(built), 3, "programs")


def test_a_subdirectory_of_a_cxx_only_project_finds_the_package():
    with scratch_folder() as folder:
        use(folder, "in_subdirectory", PREFIX)


def test_without_the_shared_library_the_plain_target_is_the_static_one():
    with scratch_folder() as folder:
        prefix = copy_prefix(folder)
        without_shared(prefix)
        output = configure(folder / "refused", "c_shared", prefix, fails=True)
        expect_in("libsoftmax.so is not part of this installation", said(output), "the message")
        for program in use(folder / "plain", "in_subdirectory", prefix):
            expect("libsoftmax.so.0" not in needed(program), f"{program} is not static")


def test_a_static_user_is_told_which_dependency_is_missing():
    with scratch_folder() as folder:
        no_highway = "-DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON"
        output = configure(folder / "static", "c_static", PREFIX, no_highway, fails=True)
        expect_in("libhwy-dev", said(output), "component static")
        output = configure(folder / "any", "cxx_both", PREFIX, no_highway, fails=True)
        expect_in("no target Softmax::softmax_static: Google Highway was not found "
                  "(Debian, Ubuntu: libhwy-dev)", said(output), "no component")
        use(folder / "shared", "c_shared", PREFIX, no_highway)
        if CONFIG.cuda:
            output = configure(folder / "cudart", "c_static", PREFIX,
                               "-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON", fails=True)
            expect_in("libcudart_static.a was not found", said(output), "component static")


def test_an_unknown_component_is_refused():
    with scratch_folder() as folder:
        output = configure(folder, "version", PREFIX, "-DWANTED=REQUIRED;COMPONENTS;gpu",
                           fails=True)
        expect_in("there is no such component (shared, static)", said(output), "the message")


def test_version_requests_are_met_within_the_minor_release():
    major, minor, patch = map(int, CONFIG.version.split("."))
    wanted = {f"{major}.{minor}": True, f"{major}.{minor}.{patch}": True, "": True,
              f"{major}.{minor}.{patch} EXACT": True, f"{major}.{minor}.{patch + 1}": False,
              f"{major}.{minor + 1}": False, f"{major + 1}.0": False,
              f"{major}.{minor}.{patch + 1} EXACT": False}
    if minor > 0:
        wanted[f"{major}.{minor - 1}"] = False
    with scratch_folder() as folder:
        for number, (version, found) in enumerate(wanted.items()):
            output = configure(folder / str(number), "version", PREFIX, f"-DWANTED={version}")
            answer = re.search(r"FOUND=(\w+) VERSION=(\S*)", output)
            expect(answer is not None, output)
            expect_equal(answer.group(1) in ("1", "TRUE"), found, f"found for {version!r}")
            if found:
                expect_equal(answer.group(2), CONFIG.version, "Softmax_VERSION")


if __name__ == "__main__":
    raise SystemExit(main(globals()))
