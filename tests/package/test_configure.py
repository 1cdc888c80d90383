"""Configuring the library: what is missing is said, install folders of every form work."""

import shutil

from harness import Skip, expect, expect_equal, expect_in, load_config, main, run, scratch_folder
from stranger import ENVIRONMENT, compile_and_run, installed_files, pkg_config, use

CONFIG = load_config()


def configure_library(folder, *options, fails=False, env=None):
    return run(CONFIG.cmake, "-G", CONFIG.generator, "-S", CONFIG.source, "-B", folder,
               "-DSOFTMAX_BUILD_TESTS=OFF", "-DSOFTMAX_BUILD_TOOLS=OFF", "--no-warn-unused-cli",
               f"-DCMAKE_CXX_COMPILER={CONFIG.cxx}", *options, fails=fails, env=env or ENVIRONMENT)


def install_as(folder, prefix, *options):
    """Installs the libraries of this build under other options, without building them again: only
    the package files depend on those."""
    cuda = "ON" if CONFIG.cuda else "OFF"
    configure_library(folder, f"-DCMAKE_BUILD_TYPE={CONFIG.config}", f"-DSOFTMAX_CUDA={cuda}",
                      f"-DCMAKE_CUDA_ARCHITECTURES={CONFIG.cuda_architectures or '90'}",
                      f"-DCMAKE_INSTALL_PREFIX={prefix}", *options)
    for library in (CONFIG.shared, CONFIG.static):
        shutil.copy2(library, folder / "src" / library.name)
    for link in ("libsoftmax.so", f"libsoftmax.so.{CONFIG.abi_version}"):
        (folder / "src" / link).symlink_to(CONFIG.shared.name)
    run(CONFIG.cmake, "--install", folder)


def use_installation(folder, prefix, softmax_dir, libdir):
    use(folder / "shared", "c_shared", "", f"-DSoftmax_DIR={softmax_dir}")
    use(folder / "static", "c_static", "", f"-DSoftmax_DIR={softmax_dir}")
    _, output = compile_and_run(folder, "program.c", pkg_config(prefix, "--cflags", "--libs"),
                                library_path=libdir)
    expect_in("works", output, "through pkg-config")


def test_relative_install_folders_of_other_names_work():
    with scratch_folder() as folder:
        for number, (libdir, includedir) in enumerate(
                (("lib64", "include/softmax-0"), ("lib/x86_64-linux-gnu", "include"))):
            prefix = folder / f"prefix{number}"
            install_as(folder / f"library{number}", prefix, f"-DCMAKE_INSTALL_LIBDIR={libdir}",
                       f"-DCMAKE_INSTALL_INCLUDEDIR={includedir}")
            names = installed_files(prefix)
            expect_in(f"{includedir}/softmax.h", names, "installed files")
            expect_in(f"{libdir}/libsoftmax.a", names, "installed files")
            moved = prefix.rename(folder / f"moved{number}")
            (folder / str(number)).mkdir()
            use_installation(folder / str(number), moved, moved / libdir / "cmake" / "Softmax",
                             moved / libdir)


def test_absolute_install_folders_work():
    with scratch_folder() as folder:
        libdir, includedir = folder / "apart" / "libraries", folder / "elsewhere" / "headers"
        install_as(folder / "library", folder / "prefix", f"-DCMAKE_INSTALL_LIBDIR={libdir}",
                   f"-DCMAKE_INSTALL_INCLUDEDIR={includedir}")
        expect((includedir / "softmax.h").exists(), "softmax.h is not where it was asked for")
        use_installation(folder, folder / "apart", libdir / "cmake" / "Softmax", libdir)


def test_a_missing_dependency_gets_one_message_that_names_the_package():
    with scratch_folder() as folder:
        output = configure_library(folder, "-DSOFTMAX_CUDA=OFF", fails=True,
                                   *["-DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON",
                                     "-DCMAKE_DISABLE_FIND_PACKAGE_OpenMP=ON"])
        expect_in("libhwy-dev", output, "the message")
        expect_in("OpenMP", output, "the message")
        expect_equal(output.count("CMake Error"), 1, "errors")


def test_without_nvcc_the_library_is_cpu_only_and_says_so():
    with scratch_folder() as folder:
        no_nvcc = {**ENVIRONMENT, "PATH": "/usr/bin:/bin", "CUDACXX": "/nonexistent/nvcc"}
        output = configure_library(folder / "auto", env=no_nvcc)
        expect_in("libsoftmax: no CUDA, building the CPU backend only", output, "SOFTMAX_CUDA=AUTO")
        output = configure_library(folder / "on", "-DSOFTMAX_CUDA=ON", env=no_nvcc, fails=True)
        expect_in("no CUDA compiler was found", output, "SOFTMAX_CUDA=ON")
        output = configure_library(folder / "typo", "-DSOFTMAX_CUDA=MAYBE", env=no_nvcc, fails=True)
        expect_in("it must be AUTO, ON or OFF", output, "SOFTMAX_CUDA=MAYBE")


def test_the_default_architectures_survive_a_second_configure():
    if not CONFIG.cuda:
        raise Skip("this build has no CUDA compiler")
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "CUDAARCHS"}
    with scratch_folder() as folder:
        answers = []
        for _ in range(2):
            output = configure_library(folder, env=environment)
            answers += [line for line in output.splitlines() if "architectures" in line]
        expect_equal(len(answers), 2, "configures that named the architectures")
        expect_equal(answers[0], answers[1], "architectures")
        expect_in("75-real", answers[0], "architectures")


if __name__ == "__main__":
    raise SystemExit(main(globals()))
