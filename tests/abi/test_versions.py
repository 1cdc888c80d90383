"""One version: the header's. Everything else that states one states the same."""

import ctypes
import re

from harness import Skip, expect, expect_equal, expect_raises, load_config, main

CONFIG = load_config()
BINDINGS = CONFIG.source / "bindings"


def header_version(text):
    numbers = [re.search(rf"#define SOFTMAX_VERSION_{part} (\d+)", text).group(1)
               for part in ("MAJOR", "MINOR", "PATCH")]
    return ".".join(numbers)


VERSION = header_version((CONFIG.source / "include" / "softmax.h").read_text(encoding="utf-8"))


def check_file(path, pattern, version):
    """Every match of the pattern is the version, and there is one."""
    text = path if isinstance(path, str) else path.read_text(encoding="utf-8")
    found = re.findall(pattern, text, re.MULTILINE)
    expect(found, f"{path}: no version found")
    expect_equal(set(found), {version}, f"version in {path}")


def test_the_library_states_the_headers_version():
    library = ctypes.CDLL(str(CONFIG.shared))
    library.softmax_version_string.restype = ctypes.c_char_p
    library.softmax_build_info.restype = ctypes.c_char_p
    expect_equal(library.softmax_version_string().decode(), VERSION, "softmax_version_string")
    major, minor, patch = map(int, VERSION.split("."))
    expect_equal(library.softmax_version(), major * 10000 + minor * 100 + patch, "softmax_version")
    expect(f" {VERSION}," in library.softmax_build_info().decode(), "softmax_build_info")
    expect(CONFIG.shared.resolve().name.endswith(f".so.{VERSION}"), f"{CONFIG.shared.resolve()}")


def test_the_cmake_package_and_pkg_config_state_the_headers_version():
    expect_equal(CONFIG.version, VERSION, "CMake's project version")
    check_file(CONFIG.build / "SoftmaxConfigVersion.cmake", r'^set\(PACKAGE_VERSION "([^"]+)"\)',
               VERSION)
    check_file(CONFIG.build / "softmax.pc", r"^Version: (.+)$", VERSION)


def test_the_python_package_states_the_headers_version():
    projects = sorted(BINDINGS.glob("python/**/pyproject.toml"))
    if not projects:
        raise Skip("there is no bindings/python yet")
    for project in projects:
        text = project.read_text(encoding="utf-8")
        if not re.search(r"^dynamic\s*=.*version", text, re.MULTILINE):
            check_file(project, r'^version\s*=\s*"([^"]+)"', VERSION)
    stated = [path for path in sorted(BINDINGS.glob("python/**/*.py"))
              if re.search(r'^__version__\s*=\s*"', path.read_text(encoding="utf-8"), re.MULTILINE)]
    for path in stated:
        check_file(path, r'^__version__\s*=\s*"([^"]+)"', VERSION)


def test_the_rust_crates_state_the_headers_version():
    crates = [path for path in sorted(BINDINGS.glob("rust/**/Cargo.toml"))
              if "[package]" in path.read_text(encoding="utf-8")]
    if not crates:
        raise Skip("there is no bindings/rust yet")
    for crate in crates:
        text = crate.read_text(encoding="utf-8")
        if re.search(r"^version\.workspace\s*=\s*true", text, re.MULTILINE):
            crate = crate.parent.parent / "Cargo.toml"
        check_file(crate, r'^version\s*=\s*"([^"]+)"', VERSION)


def test_the_version_check_can_fail():
    expect_raises(check_file, 'version = "9.9.9"\n', r'^version = "([^"]+)"', VERSION, part="9.9.9")
    expect_raises(check_file, "nothing here", r'^version = "([^"]+)"', VERSION, part="no version")


if __name__ == "__main__":
    raise SystemExit(main(globals()))
