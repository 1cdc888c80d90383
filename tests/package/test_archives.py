"""The TGZ and the Debian package that CPack makes."""

import re
import shutil

from harness import (Skip, expect, expect_equal, expect_in, load_config, main, need, run,
                     scratch_folder)
from stranger import (ENVIRONMENT, compile_and_run, copy_prefix, installed_files,
                      library_dir, needed, pkg_config, use)

CONFIG = load_config()


def pack(folder, generator):
    run(CONFIG.cpack, "--config", CONFIG.build / "CPackConfig.cmake", "-G", generator, "-B", folder)
    suffix = {"TGZ": "tar.gz", "DEB": "deb"}[generator]
    made = sorted(folder.glob(f"*.{suffix}"))
    expect_equal(len(made), 1, f"files made: {made}")
    return made[0]


def test_the_tgz_works_where_it_is_unpacked():
    with scratch_folder() as folder:
        archive = pack(folder / "pack", "TGZ")
        expect_in(CONFIG.version, archive.name, "the file's name")
        (folder / "opt").mkdir()
        shutil.unpack_archive(archive, folder / "opt")
        tops = list((folder / "opt").iterdir())
        expect_equal(len(tops), 1, f"the archive's top folders: {tops}")
        use(folder / "shared", "c_shared", tops[0])
        use(folder / "static", "c_static", tops[0])
        _, output = compile_and_run(folder, "program.c", pkg_config(tops[0], "--cflags", "--libs"),
                                    library_path=library_dir(tops[0]))
        expect_in("works", output, "through pkg-config")


def test_the_debian_package_has_its_fields_files_and_dependencies():
    need("dpkg-deb", "dpkg-shlibdeps", "file")
    with scratch_folder() as folder:
        package = pack(folder / "pack", "DEB")
        fields = dict(line.split(": ", 1) for line in run("dpkg-deb", "-f", package).splitlines()
                      if re.match(r"[A-Z][\w-]*: ", line))
        expect_equal(fields["Package"], "libsoftmax-dev", "Package")
        expect_equal(fields["Version"], CONFIG.version, "Version")
        expect_equal(fields["Section"], "libdevel", "Section")
        architecture = run("dpkg", "--print-architecture").strip()
        expect_equal(fields["Architecture"], architecture, "Architecture")
        expect_equal(package.name, f"libsoftmax-dev_{CONFIG.version}_{architecture}.deb", "name")

        root = folder / "root"
        run("dpkg-deb", "-x", package, root)
        names = installed_files(root)
        expect_in("usr/include/softmax.h", names, "files")
        expect_in("usr/share/doc/libsoftmax-dev/copyright", names, "files")
        outside = [name for name in names if not name.startswith("usr/") or "/local/" in name]
        expect(not outside, f"files where a package must not put them: {outside}")

        # Every library that the .so asks for comes from a package that is a dependency.
        for soname in needed(library_dir(root) / "libsoftmax.so"):
            stem = re.sub(r"\.so\.?", "", soname).lower()
            stem = {"libgcc_s1": "libgcc-s1", "libc6": "libc6", "libm6": "libc6",
                    "ld-linux-x86-642": "libc6"}.get(stem, stem)
            expect(re.search(rf"(^|, ){re.escape(stem)}(t64)?( |,|$)", fields["Depends"]),
                   f"{soname} (package {stem}) is not in Depends: {fields['Depends']}")
        expect("cuda" not in fields["Depends"], f"Depends: {fields['Depends']}")

        control = folder / "control"
        run("dpkg-deb", "-e", package, control)
        expect_equal((control / "shlibs").read_text(encoding="utf-8").split()[:2],
                     ["libsoftmax", CONFIG.abi_version], "shlibs")
        scripts = "".join(path.read_text(encoding="utf-8") for path in control.iterdir())
        expect_in("ldconfig", scripts, "the loader's cache is renewed")


def test_the_debian_package_works_from_a_scratch_root():
    need("dpkg-deb", "dpkg-shlibdeps", "file")
    with scratch_folder() as folder:
        run("dpkg-deb", "-x", pack(folder / "pack", "DEB"), folder / "root")
        use(folder / "shared", "c_shared", folder / "root" / "usr")
        use(folder / "static", "c_static", folder / "root" / "usr")


def test_the_installed_program_finds_the_library_beside_it():
    cache = (CONFIG.build / "CMakeCache.txt").read_text(encoding="utf-8")
    if ("SOFTMAX_BUILD_TOOLS:BOOL=ON" not in cache
            or not (CONFIG.source / "tools" / "CMakeLists.txt").exists()):
        raise Skip("this build has no softmax program")
    with scratch_folder() as folder:
        program = copy_prefix(folder) / "bin" / "softmax"
        expect_in(CONFIG.version, run(program, "info", env=ENVIRONMENT), "softmax info")
        loaded = run("ldd", program, env=ENVIRONMENT)
        expect_in(str(folder), loaded, "the library that is loaded")


if __name__ == "__main__":
    raise SystemExit(main(globals()))
