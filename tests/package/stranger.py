"""What a stranger does with an installed libsoftmax: configure a project, build it, run it."""

import os
import pathlib
import shutil

from harness import expect, expect_in, load_config, run

CONFIG = load_config()
CONSUMERS = CONFIG.source / "tests" / "package" / "consumers"
PREFIX = CONFIG.build / "package_test" / "prefix"

# A stranger's shell knows nothing of this build.
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name not in ("LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH", "Softmax_DIR",
                               "Softmax_ROOT", "PKG_CONFIG_PATH", "CPATH", "CXXFLAGS", "CFLAGS",
                               "LDFLAGS")}


def installed_files(prefix):
    return sorted(str(path.relative_to(prefix)) for path in prefix.rglob("*")
                  if not path.is_dir() or path.is_symlink())


def library_dir(prefix):
    found = sorted(prefix.rglob("libsoftmax.a"))
    expect(len(found) == 1, f"libsoftmax.a under {prefix}: {found}")
    return found[0].parent


def copy_prefix(folder, name="moved"):
    """The installation, moved to where nobody configured it for."""
    target = folder / name
    shutil.copytree(PREFIX, target, symlinks=True)
    return target


def configure(folder, project, prefix, *options, fails=False, env=None, compilers=True):
    """Configures consumers/<project>; returns what CMake printed."""
    chosen = [f"-DCMAKE_C_COMPILER={CONFIG.cc}", f"-DCMAKE_CXX_COMPILER={CONFIG.cxx}"]
    return run(CONFIG.cmake, "-G", CONFIG.generator, "-S", CONSUMERS / project, "-B", folder,
               f"-DCMAKE_PREFIX_PATH={prefix}", "--no-warn-unused-cli",
               *(chosen if compilers else []), *options, env=env or ENVIRONMENT, fails=fails)


def build(folder, *options, env=None):
    return run(CONFIG.cmake, "--build", folder, *options, env=env or ENVIRONMENT)


def programs(folder):
    """What a build made: executables, not CMake's own."""
    found = [path for path in sorted(pathlib.Path(folder).rglob("*"))
             if path.is_file() and os.access(path, os.X_OK) and path.suffix == ""
             and "CMakeFiles" not in path.parts]
    expect(found, f"nothing was built in {folder}")
    return found


def use(folder, project, prefix, *options, env=None, compilers=True):
    """Configures, builds and runs every program; returns the programs."""
    output = configure(folder, project, prefix, *options, env=env, compilers=compilers)
    expect("CMake Warning" not in output, output)
    build(folder, env=env)
    built = programs(folder)
    for program in built:
        expect_in(f"softmax {CONFIG.version} works", run(program, env=env or ENVIRONMENT), program)
    return built


def needed(program):
    """The shared libraries that a program asks the loader for."""
    lines = run("readelf", "--wide", "-d", program).splitlines()
    return [line.split("[")[1].split("]")[0] for line in lines if "(NEEDED)" in line]


def pkg_config(prefix, *arguments):
    # Only the variables of pkg-config's own choosing, so that nothing else is found.
    return run("pkg-config", *arguments, "softmax", env=ENVIRONMENT, extra_env={
        "PKG_CONFIG_PATH": str(library_dir(prefix) / "pkgconfig")}).split()


def compile_and_run(folder, source, flags, compiler=None, first=(), library_path=None,
                    arguments=()):
    """Compiles consumers/<source> by hand; returns the program and what it printed."""
    program = folder / "program"
    run(compiler or CONFIG.cc, *first, CONSUMERS / source, "-o", program, *flags, env=ENVIRONMENT)
    extra = {"LD_LIBRARY_PATH": str(library_path)} if library_path else {}
    return program, run(program, *arguments, env=ENVIRONMENT, extra_env=extra)


def without_shared(prefix):
    """Leaves the static library alone in an installation."""
    for path in list(library_dir(prefix).glob("libsoftmax.so*")):
        path.unlink()
    for path in list(prefix.rglob("Softmax-shared*.cmake")):
        path.unlink()
