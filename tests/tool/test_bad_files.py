"""Files and options that must be refused: exit code 2, one line, and nothing left behind."""

import os
import resource
import shutil
import subprocess
import tempfile
import pathlib

import numpy as np
import pytest

from program import PROGRAM, Program


def npy(descr="<f4", order="False", shape="(2, 3)", data=b"\0" * 24, version=1, text=None):
    text = text or f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n"
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + data


STRUCTURED = npy(text="{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, "
                      "'shape': (3,), }\n")

# name: (content, a part of the sentence)
BAD_FILES = {
    "empty file": (b"", "not a .npy file"),
    "half a magic": (b"\x93NUM", "not a .npy file"),
    "only a magic": (b"\x93NUMPY", "ends within the .npy header"),
    "no header length": (b"\x93NUMPY\x01\x00\x46", "ends within the .npy header"),
    "half a header": (npy()[:40], "ends within the .npy header"),
    "a text file": (b"1.0, 2.0, 3.0\n" * 20, "not a .npy file"),
    "an archive": (b"PK\x03\x04" + b"\0" * 200, "not a .npy file"),
    "format version 4": (npy(version=4), "version 4.0 is not known"),
    "format version 1.1": (npy()[:7] + b"\1" + npy()[8:], "version 1.1 is not known"),
    "header of 4 GB": (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b"\0" * 100, "claims 4294967295 bytes"),
    "data cut short": (npy(data=b"\0" * 23), "cut short"),
    "no data": (npy(data=b""), "cut short"),
    "trailing garbage": (npy(data=b"\0" * 25), "longer than its header says"),
    "shape too large": (npy(shape="(2, 4)"), "cut short"),
    "shape beyond 64 bits": (npy(shape="(99999999999999999999, 1)"), "does not fit 64 bits"),
    "product beyond 64 bits": (npy(shape="(4611686018427387904, 4)"), "does not fit 64 bits"),
    "product that wraps to the size": (npy(shape="(4294967296, 4294967296, 6)"),
                                       "does not fit 64 bits"),
    "negative extent": (npy(shape="(-2, -3)"), "malformed"),
    "shape of a number": (npy(shape="6"), "malformed"),
    "shape without comma": (npy(shape="(6)"), "malformed"),
    "shape of text": (npy(shape="('2', 3)"), "malformed"),
    "no dimensions": (npy(shape="()", data=b"\0" * 4), "no dimensions"),
    "65 dimensions": (npy(shape="(" + "1, " * 65 + ")", data=b"\0" * 4), "65 dimensions"),
    "empty array": (npy(shape="(0, 3)", data=b""), "is empty"),
    "empty rows": (npy(shape="(3, 0)", data=b""), "is empty"),
    "empty with huge extent": (npy(shape="(9223372036854775807, 9223372036854775807, 0)", data=b""),
                               "is empty"),
    "big-endian": (npy(">f4"), "big-endian"),
    "Fortran order": (npy(order="True"), "Fortran order"),
    "order of a number": (npy(order="1"), "malformed"),
    "structured": (STRUCTURED, "structured"),
    "objects": (npy("|O"), "Python objects"),
    "integers": (npy("<i8", data=b"\0" * 48), "integers"),
    "unsigned bytes": (npy("|u1", data=b"\0" * 6), "unsigned integers"),
    "booleans": (npy("|b1", data=b"\0" * 6), "booleans"),
    "complex": (npy("<c8", data=b"\0" * 48), "complex"),
    "text elements": (npy("<U1"), "text"),
    "extended floats": (npy("<f16", data=b"\0" * 96), "another size"),
    "raw pairs of bytes": (npy("<V2", data=b"\0" * 12), "--input-dtype bf16"),
    "native byte order": (npy("=f4"), "another size"),
    "no descr": (npy(text="{'fortran_order': False, 'shape': (2, 3), }\n"), "malformed"),
    "descr twice": (npy(text="{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, "
                             "'shape': (2, 3), }\n"), "malformed"),
    "unknown key": (npy(text="{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1, }"),
                    "malformed"),
    "code instead of a value": (npy(text="{'descr': __import__('os'), 'fortran_order': False, "
                                         "'shape': (2, 3), }\n"), "malformed"),
    "more after the dictionary": (npy(text="{'descr': '<f4', 'fortran_order': False, "
                                           "'shape': (2, 3), } + 1\n"), "malformed"),
    "unterminated": (npy(text="{'descr': '<f4"), "malformed"),
    "zero bytes": (npy(text="\0" * 64), "malformed"),
    "escape codes in the type": (npy("<\x1b[31m\n"), "x1b"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_npy_file_is_refused_with_one_line(softmax, name):
    content, part = BAD_FILES[name]
    (softmax.folder / "x.npy").write_bytes(content)
    (softmax.folder / "old.npy").write_bytes(b"the output of an earlier run")
    for output in ("new.npy", "old.npy"):
        line = softmax.refuses("run", "x.npy", "-o", output)
        assert part in line and line.startswith("x.npy: ")


def test_the_list_of_bad_files_starts_from_a_good_one(softmax):
    (softmax.folder / "x.npy").write_bytes(npy())
    softmax.ok("run", "x.npy", "-o", "y.npy")


def test_what_is_no_regular_file_is_refused(softmax):
    (softmax.folder / "folder").mkdir()
    os.mkfifo(softmax.folder / "fifo")
    (softmax.folder / "x.npy").write_bytes(npy())
    assert "directory" in softmax.refuses("run", "folder", "-o", "y.npy")
    assert "not a regular file" in softmax.refuses("run", "fifo", "-o", "y.npy")
    assert "not a regular file" in softmax.refuses("run", "/dev/zero", "-o", "y.npy")
    assert "No such file" in softmax.refuses("run", "absent.npy", "-o", "y.npy")
    assert "directory" in softmax.refuses("run", "x.npy", "-o", "folder")
    assert "not a regular file" in softmax.refuses("run", "x.npy", "-o", "fifo")
    assert "not a regular file" in softmax.refuses("run", "x.npy", "-o", "/dev/null")
    assert "No such file" in softmax.refuses("run", "x.npy", "-o", "absent/y.npy")
    assert "Not a directory" in softmax.refuses("run", "x.npy", "-o", "x.npy/y.npy")
    os.symlink("nowhere", softmax.folder / "dangling")
    assert "symbolic link" in softmax.refuses("run", "x.npy", "-o", "dangling")
    assert os.path.exists("/dev/null") and not os.path.isfile("/dev/null")


def test_a_file_name_with_a_line_feed_stays_on_one_line(softmax):
    assert "no\\nsuch\\x1b" in softmax.refuses("run", "no\nsuch\x1b", "-o", "y.npy")


def test_a_file_without_permission_is_refused():
    """Root may read everything, so as root the program runs as nobody."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="softmax-test-"))
    try:
        folder.chmod(0o755)
        x = folder / "x.npy"
        x.write_bytes(npy())
        x.chmod(0)
        (folder / "readable.npy").write_bytes(npy())
        folder.chmod(0o555)
        options = {}
        if os.getuid() == 0:
            options["user"] = 65534
            try:
                subprocess.run([PROGRAM, "--version"], check=True, user=65534, capture_output=True)
            except (OSError, subprocess.CalledProcessError):
                pytest.skip("the build folder cannot be reached without being root")
        softmax = Program(folder)
        assert "Permission denied" in softmax.refuses("run", x, "--top", 1, **options)
        assert "Permission denied" in softmax.refuses("run", "readable.npy", "-o", "y.npy", **options)
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_a_limit_on_file_sizes_leaves_nothing_behind(softmax):
    np.save(softmax.folder / "x.npy", np.zeros((100, 100), np.float32))
    (softmax.folder / "y.npy").write_bytes(b"old")
    line = softmax.refuses("run", "x.npy", "-o", "y.npy", preexec_fn=limit_file_size)
    assert "cannot write y.npy: File too large" in line


def test_a_full_disk_leaves_nothing_behind(softmax):
    np.save(softmax.folder / "x.npy", np.zeros((100, 100), np.float32))
    (softmax.folder / "disk").mkdir()
    script = 'mount -t tmpfs -o size=16k none disk || exit 77; "$0" "$@"; echo "rc=$?"; ls -A disk'
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script, PROGRAM, "run", "x.npy", "-o",
                           "disk/y.npy"], cwd=softmax.folder, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount a small disk here: {done.stderr}")
    assert done.stdout == "rc=2\n"
    assert done.stderr.startswith("softmax: cannot write disk/y.npy: No space left on device")
    assert done.stderr.count("\n") == 1


def test_a_full_standard_output_is_an_error(softmax):
    (softmax.folder / "x.npy").write_bytes(npy())
    with open("/dev/full", "wb") as full:
        line = softmax.refuses("run", "x.npy", "--top", 1, stdout=full)
    assert line == "cannot write the standard output: No space left on device"


def test_bad_options_are_refused_with_one_line(softmax):
    (softmax.folder / "x.npy").write_bytes(npy())
    (softmax.folder / "three").write_text("a\nb\nc\n")
    (softmax.folder / "two").write_text("a\nb\n")
    cases = {
        (): "subcommand",
        ("walk",): "'walk' is no command",
        ("run",): "input is required",
        ("run", "x.npy"): "nothing to do",
        ("run", "x.npy", "--topp", "1"): "--topp",
        ("run", "x.npy", "--top", "0"): "--top",
        ("run", "x.npy", "--top", "many"): "--top",
        ("run", "x.npy", "-o", "y.npy", "--algo", "best"): "'best' is no algorithm",
        ("run", "x.npy", "-o", "y.npy", "--algo", "shared", "--device", "cpu"): "shared",
        ("run", "x.npy", "-o", "y.npy", "--algo", "tile"): "tile",
        ("run", "x.npy", "-o", "y.npy", "--device", "gpu"): "'gpu' is no device",
        ("run", "x.npy", "-o", "y.npy", "--device", "cuda:"): "no device",
        ("run", "x.npy", "-o", "y.npy", "--device", "cuda:-1"): "no device",
        ("run", "x.npy", "-o", "y.npy", "--device", "cuda:1x"): "no device",
        ("run", "x.npy", "-o", "y.npy", "--device", "cuda:999"): "999",
        ("run", "x.npy", "-o", "y.npy", "--dtype", "f8"): "'f8' is no data type",
        ("run", "x.npy", "-o", "y.npy", "--input-dtype", "bf16"): "the file says",
        ("run", "x.npy", "-o", "y.npy", "--block-bytes", "0"): "--block-bytes",
        ("run", "x.npy", "--top", "1", "--labels", "two"): "two: 2 lines for 3 classes",
        ("run", "x.npy", "--top", "1", "--labels", "absent"): "absent",
        ("run", "x.npy", "--top", "1", "--rows", "three"): "three: 3 lines for 2 rows",
        ("run", "x.npy", "--top", "1", "--row", "2"): "0 to 1",
        ("run", "x.npy", "--top", "1", "--row", "0,1"): "2 indices",
        ("run", "x.npy", "--ctc", "0"): "--labels",
        ("run", "x.npy", "--ctc", "3", "--labels", "three"): "classes are 0 to 2",
        ("run", "x.npy", "--ctc", "0", "--ctc-steps", "3", "--labels", "three"): "divide",
        ("select", "1"): "N is required",
        ("select", "-1", "5"): "-1",
        ("select", "1", "9223372036854775807"): "9223372036854775807",
        ("select", "1", "99999999999999999999"): "does not fit 64 bits",
        ("bench", "--shapes", "4x"): "'4x' is no shape",
        ("bench", "--shapes", "4x5x6"): "no shape",
        ("bench", "--shapes", "0x5"): "no shape",
        ("bench", "--shapes", "999999999999999x999999999999999"): "64 bits",
        ("bench", "--algo", "grid", "--json", "b.json"): "grid",
        ("bench", "--json", "absent/b.json"): "absent",
    }
    for arguments, part in cases.items():
        line = softmax.refuses(*arguments)
        assert part in line, f"{arguments}: {line}"
