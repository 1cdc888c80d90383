"""The README's quick starts are, letter for letter, the programs that other tests compile and run."""
import pathlib
import re

from harness import main

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks(path, language):
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)\n```$", text, re.M | re.S)


def without_leading_comments(text):
    lines = text.splitlines()
    while lines[0].startswith("#"):
        lines.pop(0)
    return "\n".join(lines).rstrip()


def test_the_readmes_c_quick_start_is_the_tested_program():
    # tool.* compiles and runs examples/c and examples/cmake.
    assert blocks("README.md", "c") == [(ROOT / "examples/c/quickstart.c").read_text().rstrip()]


def test_the_readmes_cmake_quick_start_is_the_tested_project():
    project = (ROOT / "examples/cmake/CMakeLists.txt").read_text()
    assert blocks("README.md", "cmake") == [without_leading_comments(project)]
    program = (ROOT / "examples/cmake/quickstart.cc").read_text().rstrip()
    assert blocks("README.md", "cpp") == [program]


def test_the_readmes_python_and_rust_quick_starts_are_the_bindings_own():
    # bindings.readme runs every block of the bindings' own READMEs.
    for language in ("python", "rust"):
        own = blocks(f"bindings/{language}/README.md", language)
        assert blocks("README.md", language) == own[:1]


if __name__ == "__main__":
    raise SystemExit(main(globals()))
