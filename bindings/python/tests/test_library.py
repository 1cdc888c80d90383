"""Which shared library is loaded, and what is said when it is the wrong one or there is none."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import libsoftmax

SOURCE = Path(libsoftmax.__file__).parent
LIBRARY = Path(libsoftmax._library.lib._name).resolve()
COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")

# A library with every function of the header and another version or layout.
IMPOSTOR = """
#include "softmax.h"
#include <string.h>
int32_t softmax_version(void) { return VERSION; }
const char *softmax_version_string(void) { return "9.8.7"; }
softmax_status_t softmax_desc_init(softmax_desc_t *desc, size_t size, int32_t op,
                                   softmax_dtype_t dtype, int64_t M, int64_t N) {
  memset(desc, 0, size);
  desc->struct_size = size;
  desc->shape[0] = M;
  desc->shape[1] = N + 1;
  return 0 * (op + dtype);
}
"""


def run(tmp_path, program="import libsoftmax; print(libsoftmax._library.lib._name)", **environment):
    """Runs a program with a copy of the package that lies in tmp_path."""
    package = tmp_path / "site" / "libsoftmax"
    if not package.exists():
        shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__", "*.so*"))
    kept = {name: value for name, value in os.environ.items()
            if name not in ("LIBSOFTMAX_PATH", "LD_LIBRARY_PATH", "PYTHONPATH")}
    kept.update(environment, PYTHONPATH=str(package.parent))
    return subprocess.run([sys.executable, "-c", program], env=kept, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)


def compile_impostor(tmp_path, version, drop=""):
    if COMPILER is None:
        pytest.skip("no C compiler")
    functions = [name for name in libsoftmax._abi.FUNCTIONS
                 if name not in ("softmax_version", "softmax_version_string", "softmax_desc_init",
                                 drop)]
    source = tmp_path / "impostor.c"
    header = SOURCE.parents[3] / "include/softmax.h"
    # The other functions are there by name alone.
    source.write_text(IMPOSTOR.replace('"softmax.h"', f'"{header}"'))
    names = tmp_path / "names.c"
    names.write_text("\n".join(f"void {name}(void) {{}}" for name in functions))
    library = tmp_path / "impostor.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", f"-DVERSION={version}", source, names,
                    "-o", library], check=True)
    return str(library)


def test_the_variable_names_the_file(tmp_path):
    result = run(tmp_path, LIBSOFTMAX_PATH=str(LIBRARY))
    assert (result.returncode, result.stdout.strip()) == (0, str(LIBRARY))


def test_a_variable_that_names_no_file_is_an_error_with_both_names(tmp_path):
    for path in (str(tmp_path / "absent.so"), str(tmp_path)):
        result = run(tmp_path, LIBSOFTMAX_PATH=path)
        assert result.returncode != 0
        assert f"ImportError: LIBSOFTMAX_PATH is set to '{path}'" in result.stderr


def test_a_variable_that_names_another_file_is_an_error(tmp_path):
    text = tmp_path / "text.so"
    text.write_text("not a library")
    result = run(tmp_path, LIBSOFTMAX_PATH=str(text))
    assert "ImportError: LIBSOFTMAX_PATH" in result.stderr and "cannot be loaded" in result.stderr


@pytest.mark.parametrize("name", ["libsoftmax.so.0", "libsoftmax.so"])
def test_the_package_s_own_folder_comes_before_the_system(tmp_path, name):
    run(tmp_path)  # makes the copy
    beside = tmp_path / "site/libsoftmax" / name
    shutil.copy(LIBRARY, beside)
    result = run(tmp_path, LD_LIBRARY_PATH=str(LIBRARY.parent))
    assert (result.returncode, result.stdout.strip()) == (0, str(beside))


def test_then_the_system_s_loader_is_asked(tmp_path):
    folder = tmp_path / "lib"
    folder.mkdir()
    shutil.copy(LIBRARY, folder / "libsoftmax.so")
    result = run(tmp_path, LD_LIBRARY_PATH=str(folder))
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() in ("libsoftmax.so", "libsoftmax.so.0")


def test_without_a_library_the_error_says_what_to_do(tmp_path):
    result = run(tmp_path)
    if result.returncode == 0:
        pytest.skip("libsoftmax is installed on this system")
    assert "ImportError: the libsoftmax library was not found" in result.stderr
    assert "set LIBSOFTMAX_PATH" in result.stderr


@pytest.mark.parametrize("version", [0, 99, 10000])
def test_another_major_and_an_older_version_are_refused(tmp_path, version):
    result = run(tmp_path, LIBSOFTMAX_PATH=compile_impostor(tmp_path, version))
    assert result.returncode != 0
    assert "ImportError" in result.stderr and "is libsoftmax 9.8.7" in result.stderr


def test_another_layout_is_refused(tmp_path):
    result = run(tmp_path, LIBSOFTMAX_PATH=compile_impostor(tmp_path, 100))
    assert result.returncode != 0
    assert "ImportError" in result.stderr and "another ABI" in result.stderr


def test_a_library_without_a_function_is_refused_by_its_name(tmp_path):
    path = compile_impostor(tmp_path, 100, drop="softmax_select")
    result = run(tmp_path, LIBSOFTMAX_PATH=path)
    assert "ImportError" in result.stderr and "no function softmax_select" in result.stderr
