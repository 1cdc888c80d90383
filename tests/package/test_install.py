"""Installs the build tree for the other package tests."""

import shutil

from harness import expect, load_config, main, run
from stranger import PREFIX, installed_files

CONFIG = load_config()


def test_the_build_tree_installs_under_a_prefix():
    shutil.rmtree(PREFIX, ignore_errors=True)
    run(CONFIG.cmake, "--install", CONFIG.build, "--prefix", PREFIX)
    names = installed_files(PREFIX)
    for part in ("include/softmax.h", "include/softmax.hpp", "libsoftmax.a", "libsoftmax.so",
                 "libsoftmax.so.0", f"libsoftmax.so.{CONFIG.version}", "SoftmaxConfig.cmake",
                 "SoftmaxConfigVersion.cmake", "softmax.pc", "copyright"):
        expect(any(name.endswith(part) for name in names), f"{part} is not installed: {names}")
    # Nothing that the package is made of names this machine's folders.
    for path in PREFIX.rglob("*"):
        if path.suffix in (".cmake", ".pc", ".h", ".hpp"):
            text = path.read_text(encoding="utf-8")
            for folder in (CONFIG.source, CONFIG.build, PREFIX):
                expect(str(folder) not in text, f"{path} names {folder}")


if __name__ == "__main__":
    raise SystemExit(main(globals()))
