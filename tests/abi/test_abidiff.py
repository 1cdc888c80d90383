"""libabigail compares the functions and their types with those of the first release,
tests/abi/softmax-0.1.0.abi. What docs/abi.md lets grow, and nothing else, is
no difference: new functions, and fields past the end that a struct had.

The entry points alone are compiled, with debug information: they are the whole interface. To
record a release: python3 tests/abi/test_abidiff.py --write (with SOFTMAX_TEST_CONFIG).
"""

import platform
import re
import shutil
import subprocess
import sys

from harness import (Skip, expect, expect_raises, load_config, main, need, run,
                     scratch_folder)

CONFIG = load_config()
BASELINE = CONFIG.source / "tests" / "abi" / "softmax-0.1.0.abi"

# The lines of a report that grows and breaks nothing. A line that none of them matches is a break.
GROWTH = [re.compile(pattern) for pattern in (
    r"Functions changes summary: 0 Removed, ",
    r"Variables changes summary: 0 Removed, 0 Changed, 0 Added variables?$",
    r"\d+ Added functions?:$",
    r"\[A\] 'function ",
    r"\d+ functions? with some indirect sub-type change:$",
    r"\[C\] 'function .* has some indirect sub-type changes:$",
    r"parameter \d+ of type '[^']*' has sub-type changes:$",
    r"in (pointed to|unqualified underlying) type ",
    r"underlying type 'struct softmax_(desc|args|choice)_t' changed:$",
    r"type size changed from \d+ to \d+ \(in bits\)$",
    r"\d+ data member insertions?:$",
    r"'[^']*', at offset \d+ \(in bits\)$",
)]


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


def check_growth(report):
    """Every line of abidiff's report speaks of growth at the end."""
    bits = 0
    for line in filter(None, map(str.strip, report.splitlines())):
        expect(any(pattern.match(line) for pattern in GROWTH), f"{line}\n\nin\n{report}")
        size = re.match(r"type size changed from (\d+) to (\d+)", line)
        if size:
            bits = int(size.group(1))
            expect(int(size.group(2)) > bits, f"{line}\n\nin\n{report}")
        at = re.match(r"'[^']*', at offset (\d+)", line)
        expect(at is None or int(at.group(1)) >= bits > 0, f"{line}\n\nin\n{report}")


def check_interface(library):
    # Both sides are written down first: abidiff's own --drop-private-types hides field changes.
    current = library.parent / "current.abi"
    write_abi(library, current)
    done = subprocess.run(["abidiff", BASELINE, current], stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    # 1 and 2 are errors of abidiff's own; 4 is a change, which the report describes.
    expect(done.returncode & 3 == 0, f"abidiff ended with {done.returncode}:\n{done.stdout}")
    expect((done.returncode == 0) == (done.stdout.strip() == ""), done.stdout)
    check_growth(done.stdout)


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


def test_the_interface_check_refuses_a_field_in_the_middle():
    need_abidiff()
    with scratch_folder() as folder:
        bad = build_interface(folder, [("include/softmax.h", "  int64_t causal_offset;",
                                        "  int64_t between;\n  int64_t causal_offset;"),
                                       ("src/api/intake.cc", "static_assert(offsetof(", "// (")])
        expect_raises(check_interface, bad, part="between")


def test_the_interface_check_accepts_a_field_at_the_end_and_a_new_function():
    need_abidiff()
    with scratch_folder() as folder:
        check_interface(build_interface(folder, [
            ("include/softmax.h", "int32_t reserved; /* 0, or NEWER_FIELD */\n} softmax_desc_t;",
             "int32_t reserved;\n  int64_t later;\n} softmax_desc_t;"),
            ("include/softmax.h", "SOFTMAX_API int32_t softmax_version(void);",
             "SOFTMAX_API int32_t softmax_version(void);\n"
             "SOFTMAX_API int32_t softmax_later(void);"),
            ("src/api/version.cc", "int32_t softmax_version(void)",
             "int32_t softmax_later(void) { return 0; }\nint32_t softmax_version(void)"),
            ("cmake/softmax.map", "    softmax_version;", "    softmax_version; softmax_later;")]))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with scratch_folder() as scratch:
            write_abi(build_interface(scratch), BASELINE)
        raise SystemExit(0)
    raise SystemExit(main(globals()))
