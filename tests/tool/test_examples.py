"""The examples, built against the installed library as a reader would build them."""

import os
import re
import subprocess

import pytest

from program import SOURCE

BUILD = os.environ.get("SOFTMAX_BUILD", "")
CMAKE = os.environ.get("SOFTMAX_CMAKE", "cmake")


def run(*words, cwd, env=None):
    done = subprocess.run([os.fspath(word) for word in words], cwd=cwd, capture_output=True, text=True,
                          env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def prefix(tmp_path):
    """Where the library is installed."""
    prefix = tmp_path / "installed"
    config = os.environ.get("SOFTMAX_CONFIG") or "Release"
    run(CMAKE, "--install", BUILD, "--prefix", prefix, "--config", config, cwd=tmp_path)
    return prefix


def library_folder(prefix):
    return next(prefix.rglob("libsoftmax.so")).parent


def test_the_c_example_builds_with_its_own_first_line_and_runs(prefix, tmp_path):
    source = open(f"{SOURCE}/examples/c/quickstart.c", encoding="utf-8").read()
    (tmp_path / "quickstart.c").write_text(source)
    command = re.search(r"(cc quickstart\.c .*?) \*/", source)[1]
    libraries = library_folder(prefix)
    run("sh", "-ec", f"{command} -Wall -Wextra -Werror", cwd=tmp_path,
        env={"PKG_CONFIG_PATH": f"{libraries}/pkgconfig"})
    out = run("./a.out", cwd=tmp_path, env={"LD_LIBRARY_PATH": str(libraries)})
    assert out == "0.0900 0.2447 0.6652\n0.3333 0.3333 0.3333\n"
    assert len(source.splitlines()) <= 20


def test_the_cmake_example_builds_and_runs(prefix, tmp_path):
    run(CMAKE, "-S", f"{SOURCE}/examples/cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        cwd=tmp_path)
    run(CMAKE, "--build", "build", cwd=tmp_path)
    out = run("build/quickstart", cwd=tmp_path)
    # log(1 + 49999 exp(-20)) = 1.0305e-4
    assert out == "log p of class 7: -0.0001031, of any other: -20.0001\n"


def test_the_installed_program_runs_where_it_lies(prefix, tmp_path):
    moved = tmp_path / "moved"
    prefix.rename(moved)
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run([moved / "bin" / "softmax", "--version"], env=environment,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and re.fullmatch(r"softmax \d+\.\d+\.\d+\n", done.stdout)
