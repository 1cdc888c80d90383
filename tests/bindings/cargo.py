"""Runs cargo on the Rust bindings, outside the source tree."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CRATES = ROOT / "bindings/rust"
WORK = Path(os.environ["SOFTMAX_TEST_WORK"])
PREFIX = Path(os.environ["SOFTMAX_DIR"])
NOT_RUN = 77


def require():
    """Ends the program, as not run, where there is no cargo."""
    if shutil.which("cargo") is None:
        print("not run: there is no cargo")
        sys.exit(NOT_RUN)


def library_folder():
    return next(path.parent for path in PREFIX.glob("lib*/**/libsoftmax.so"))


def environment(**changes):
    """This process's environment with `changes`; None takes a variable out."""
    variables = dict(os.environ, CARGO_TARGET_DIR=str(WORK / "cargo"), CARGO_NET_OFFLINE="true",
                     CARGO_TERM_COLOR="never")
    variables.pop("LIBSOFTMAX_PATH", None)
    for name, value in changes.items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = str(value)
    return variables


def cargo(*arguments, folder=CRATES, **changes):
    """The finished process, stdout and stderr together."""
    return subprocess.run(["cargo", *map(str, arguments)], cwd=folder, text=True,
                          env=environment(**changes), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def make_crate(name, cargo_toml, source, file_name):
    """A crate of its own in the work folder that depends on the bindings; returns its folder."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "src").mkdir(parents=True)
    (folder / "Cargo.toml").write_text(
        f'[package]\nname = "{name}"\nversion = "0.0.0"\nedition = "2021"\n{cargo_toml}\n'
        "[workspace]\n")
    (folder / "src" / file_name).write_text(source)
    return folder
