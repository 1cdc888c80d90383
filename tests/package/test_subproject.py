"""add_subdirectory: the library as part of another project's build."""

from harness import expect, expect_in, load_config, main, run, scratch_folder
from stranger import ENVIRONMENT, build, configure, programs

CONFIG = load_config()
SOURCE = f"-DSOFTMAX_SOURCE={CONFIG.source}"
CUDA = f"-DSOFTMAX_CUDA={'ON' if CONFIG.cuda else 'OFF'}"


def test_a_cxx_only_parent_builds_and_is_not_changed_and_installs_nothing():
    with scratch_folder() as folder:
        # Unoptimised, and without CUDA: this is about the build, and it should be quick.
        output = configure(folder / "build", "subproject", "", SOURCE, "-DCMAKE_BUILD_TYPE=Debug",
                           "-DSOFTMAX_CUDA=OFF", f"-DCMAKE_INSTALL_PREFIX={folder / 'prefix'}")
        expect("CMake Warning" not in output, output)
        build(folder / "build", "--target", "app", "app_static")
        for program in programs(folder / "build" / "mine"):
            expect_in(f"softmax {CONFIG.version} works", run(program, env=ENVIRONMENT), program)
        run(CONFIG.cmake, "--install", folder / "build")
        expect(not (folder / "prefix").exists(), "a subproject installed itself unasked")


def test_a_parent_that_sets_nothing_is_not_changed():
    with scratch_folder() as folder:
        configure(folder, "subproject", "", SOURCE, CUDA, "-DPLAIN=ON")


def test_a_parent_with_its_own_settings_is_not_changed():
    with scratch_folder() as folder:
        for _ in range(2):  # what a first configure puts in the cache must not change the second
            output = configure(folder, "subproject", "", SOURCE, CUDA,
                               "-DCMAKE_BUILD_TYPE=MinSizeRel")
        if CONFIG.cuda:
            expect_in("architectures 80", output, "the parent's architectures are used")


def test_a_parent_that_asks_installs_the_library():
    with scratch_folder() as folder:
        configure(folder, "subproject", "", SOURCE, "-DSOFTMAX_INSTALL=ON", "-DSOFTMAX_CUDA=OFF")
        script = (folder / "softmax" / "cmake_install.cmake").read_text(encoding="utf-8")
        expect_in("SoftmaxConfig.cmake", script, "the install script")


if __name__ == "__main__":
    raise SystemExit(main(globals()))
