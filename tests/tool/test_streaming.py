"""Files larger than memory, progress, and what an interrupted run leaves."""

import os
import pty
import re
import resource
import signal
import time

import numpy as np
import pytest

import reference
from reference import logits

MIB = 1 << 20


def huge_file(folder, rows, cols):
    """A file of zeros but for its first and last rows, sparse on the disk."""
    header = reference_header(rows, cols)
    with open(folder / "x.npy", "wb") as file:
        file.write(header)
        first, last = logits((2, cols), seed=5).astype(np.float32)
        file.write(first.tobytes())
        file.seek(len(header) + (rows - 1) * cols * 4)
        file.write(last.tobytes())
    return first, last


def reference_header(rows, cols):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {cols}), }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (160 * MIB, 160 * MIB))


def test_a_file_larger_than_memory_is_computed(softmax):
    rows, cols = 25000, 2000  # 200 MB
    first, last = huge_file(softmax.folder, rows, cols)
    arguments = ["run", "x.npy", "-o", "y.npy", "--device", "cpu"]
    environment = {"OMP_NUM_THREADS": "1"}  # each thread reserves address space of its own
    # The limit is real: one block of the whole file does not fit.
    line = softmax.refuses(*arguments, "--block-bytes", "300MB", code=1, preexec_fn=limit_memory,
                           env=environment)
    assert "out of memory" in line
    softmax.ok(*arguments, "--block-bytes", "1MB", preexec_fn=limit_memory, env=environment)
    y = np.load(softmax.folder / "y.npy", mmap_mode="r")
    assert y.shape == (rows, cols)
    for got, x in ((y[0], first), (y[-1], last)):
        assert reference.worst_ulp(got, reference.softmax(x), "f32") <= 4
    for middle in (1, rows // 2, rows - 2):
        assert np.abs(y[middle] * cols - 1).max() < 1e-6
    os.remove(softmax.folder / "y.npy")
    os.remove(softmax.folder / "x.npy")


@pytest.mark.parametrize("block_bytes", [1, 399, 400, 401, 4096, 10 ** 9])
def test_the_block_size_changes_no_bit(softmax, block_bytes):
    np.save(softmax.folder / "x.npy", logits((53, 100)).astype(np.float32))
    softmax.ok("run", "x.npy", "-o", "whole.npy")
    softmax.ok("run", "x.npy", "-o", "blocks.npy", "--block-bytes", block_bytes)
    assert (softmax.folder / "whole.npy").read_bytes() == (softmax.folder / "blocks.npy").read_bytes()


def test_progress_is_shown_when_asked_for_and_ends_at_100_percent(softmax):
    np.save(softmax.folder / "x.npy", np.zeros((50, 100), np.float32))
    code, out, err = softmax.run("run", "x.npy", "-o", "y.npy", "--progress")
    assert (code, out) == (0, "")
    assert err.splitlines()[-1].startswith("100% of 20.0 kB")


def start_and_wait_for_output(softmax, **options):
    """Starts a run of many small blocks, and returns when it is at work."""
    huge_file(softmax.folder, 200000, 100)
    (softmax.folder / "y.npy").write_bytes(b"old")
    process = softmax.start("run", "x.npy", "-o", "y.npy", "--block-bytes", 1, "--device", "cpu",
                            env={"OMP_NUM_THREADS": "1"}, **options)
    deadline = time.monotonic() + 60
    while not any(name.startswith(".softmax-") for name in os.listdir(softmax.folder)):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.001)
    return process


def hold_up(process, seconds):
    """Makes a run take longer without making it work more."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    assert process.poll() is None
    process.send_signal(signal.SIGCONT)


def test_progress_is_not_shown_where_nobody_watches(softmax):
    process = start_and_wait_for_output(softmax)
    hold_up(process, 1.2)
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 0


def test_progress_is_shown_on_a_terminal_after_a_second(softmax):
    ours, theirs = pty.openpty()
    process = start_and_wait_for_output(softmax, stderr=theirs)
    os.close(theirs)
    hold_up(process, 1.2)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # what Linux says when the other side is closed
            break
        text += part
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert re.search(rb"\r *\d+% of 80.0 MB, \d+\.\d s, ", text)
    assert re.search(rb"\r100% of 80.0 MB[^\r\n]*\r\n$", text)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_temporary_file(softmax, number):
    process = start_and_wait_for_output(softmax)
    time.sleep(0.02)  # into the run
    assert process.poll() is None
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == -number
    assert sorted(os.listdir(softmax.folder)) == ["x.npy", "y.npy"]
    assert (softmax.folder / "y.npy").read_bytes() == b"old"
