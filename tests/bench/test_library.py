"""This library by way of its C ABI, on the CPU: what is called is what is recorded."""
import pathlib

import numpy as np
import pytest

from compare.candidate import Absent
from compare.grids import Cell
from compare.library import Library, Ours, promised_alignment

CPU = -2


class Buffer:
    """A NumPy matrix with the two questions that are asked of a tensor."""

    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data

    def element_size(self):
        return self.array.itemsize


class Host:
    stream_address = None


@pytest.fixture
def library():
    opened = Library()
    opened.open(CPU)
    return opened


def pair(m=5, n=33, dtype=np.float32):
    x = np.random.default_rng(7).normal(size=(m, n)).astype(dtype)
    return Buffer(x), Buffer(np.full((m, n), np.nan, dtype))


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_another_library_in_the_same_process_is_refused(library, tmp_path, monkeypatch):
    monkeypatch.setenv("LIBSOFTMAX_PATH", library.path)  # put back at the end
    assert Library(library.path).path == library.path
    with pytest.raises(RuntimeError, match="one library a process"):
        Library(tmp_path / "libsoftmax.so")


def test_each_of_ours_computes_the_cells_operation(library):
    for words in ({}, {"algo": "online"}, {"adaptive": True}, {"algo": "naive", "adaptive": True}):
        for op in ("softmax", "log"):
            x, y = pair()
            cell = Cell("t", "cold", "f32", 5, 33, op=op)
            Ours(library, Host, **words).bind(cell, x, y)()
            want = softmax(x.array)
            np.testing.assert_allclose(y.array, np.log(want) if op == "log" else want, rtol=1e-6)


def test_a_mixed_cell_writes_the_output_type(library):
    x, _ = pair(dtype=np.float16)
    y = Buffer(np.full((5, 33), np.nan, np.float32))
    Ours(library, Host).bind(Cell("t", "cold", "f16", 5, 33, "f32"), x, y)()
    np.testing.assert_allclose(y.array, softmax(x.array), rtol=1e-6)


def test_an_algorithm_that_declines_says_why_before_it_is_called(library):
    x, y = pair()
    with pytest.raises(Absent, match="CPU"):
        Ours(library, Host, "shared").bind(Cell("t", "cold", "f32", 5, 33), x, y)


def test_what_was_chosen_is_recorded(library):
    x, y = pair()
    facts = Ours(library, Host, "online").facts(Cell("t", "cold", "f32", 5, 33), x, y)
    assert facts["algo"] == "online" and facts["kernel"]


def test_the_source_id_is_the_builds(library):
    assert f"source {library.source_id}," in library.build_info
    assert pathlib.Path(library.path).is_file()


def test_the_alignment_promised_is_that_of_every_row():
    cell = Cell("t", "cold", "bf16", 4, 1000)
    assert promised_alignment(cell, 0x1000, 0x2000, 2, 2) == 16  # rows of 2000 bytes
    assert promised_alignment(cell, 0x1002, 0x2000, 2, 2) == 2
    assert promised_alignment(Cell("t", "cold", "f32", 4, 1024), 0x1000, 0x2000, 4, 4) == 256
