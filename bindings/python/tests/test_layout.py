"""Views whose elements do not lie row after row: the right result through a copy, or an error.

Public reports: obspy/obspy#193, chainer/chainer#3066, flagos-ai/Torch-FL#172.
"""
import numpy as np
import pytest

import libsoftmax
from reference import softmax, worst_ulp


def square(dtype="float32"):
    return np.random.default_rng(7).standard_normal((32, 32)).astype(dtype) * 4


VIEWS = {
    "every second row": lambda a: a[::2],
    "every second column": lambda a: a[:, ::2],
    "transposed": lambda a: a.T,
    "rows reversed": lambda a: a[::-1],
    "columns reversed": lambda a: a[:, ::-1],
    "part of each row": lambda a: a[:, 3:20],
    "one column": lambda a: a[:, 0:1],
    "one column as a vector": lambda a: a[:, 5],
    "broadcast": lambda a: np.broadcast_to(a[0], (4, 32)),
    "a middle axis moved": lambda a: np.moveaxis(a.reshape(4, 8, 32), 0, 1),
    "Fortran order": np.asfortranarray,
    "not aligned": lambda a: np.frombuffer(b"x" + a.tobytes(), a.dtype, offset=1).reshape(32, 32),
}


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", VIEWS)
def test_out_of_place_is_right_for_every_view(name, dtype, log):
    base = square(dtype)
    view = VIEWS[name](base)
    kept = view.copy()
    y = (libsoftmax.log_softmax if log else libsoftmax.softmax)(view)
    assert y.flags.c_contiguous and y.shape == view.shape
    assert (view == kept).all()
    expected = (libsoftmax.log_softmax if log else libsoftmax.softmax)(np.ascontiguousarray(kept))
    assert y.tobytes() == expected.tobytes()
    if not (log and view.shape[-1] == 1):
        assert worst_ulp(y, softmax(kept, log)) <= 4


@pytest.mark.parametrize("name", sorted(set(VIEWS) - {"broadcast", "not aligned"}))
def test_in_place_refuses_a_view_by_name_and_writes_nothing(name):
    base = square()
    kept = base.copy()
    with pytest.raises(ValueError, match="not contiguous"):
        libsoftmax.softmax_(VIEWS[name](base))
    assert (base == kept).all()


def test_an_output_that_is_a_view_is_refused_and_not_written():
    out = np.full((32, 64), 7, "float32")
    with pytest.raises(ValueError, match="out is not contiguous"):
        libsoftmax.softmax(square(), out[:, ::2])
    assert (out == 7).all()


def test_in_place_refuses_misaligned_memory():
    memory = np.zeros(4 * 6 + 1, "uint8")
    x = memory[1:].view("float32")
    assert not x.flags.aligned
    with pytest.raises(ValueError, match="not aligned"):
        libsoftmax.softmax_(x)


def test_one_column_of_ones_is_one():  # chainer/chainer#3066
    a = np.ones((2, 2), "float32")
    assert libsoftmax.softmax(a[:, 0:1]).tolist() == [[1.0], [1.0]]
    with pytest.raises(ValueError, match="contiguous"):
        libsoftmax.softmax_(a[:, 0:1])


def test_strides_of_dimensions_of_one_do_not_matter():
    a = np.arange(24, dtype="float32").reshape(4, 6)
    one_row = np.lib.stride_tricks.as_strided(a, (1, 6), (9999, 4))
    expected = libsoftmax.softmax(a[0])
    libsoftmax.softmax_(one_row)
    assert (a[0] == expected).all()


def test_a_view_that_starts_inside_is_used_where_it_is():
    a = np.random.default_rng(3).standard_normal((6, 5)).astype("float32")
    expected = a.copy()
    expected[2:4] = libsoftmax.softmax(a[2:4])
    libsoftmax.softmax_(a[2:4])
    assert (a == expected).all()


def test_an_output_that_overlaps_a_copied_input_is_right():
    a = square()
    expected = libsoftmax.softmax(a[:, ::2].copy())
    out = a.reshape(-1)[:512].reshape(32, 16)
    libsoftmax.softmax(a[:, ::2], out)
    assert (out == expected).all()


def test_partial_overlap_is_refused_by_the_library():
    memory = np.zeros(40, "float32")
    with pytest.raises(libsoftmax.SoftmaxError) as caught:
        libsoftmax.softmax(memory[:20], memory[5:25])
    assert caught.value.name == "SOFTMAX_STATUS_OVERLAP"


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">f2"])
def test_foreign_byte_order_is_converted_out_of_place_and_refused_in_place(dtype):
    x = np.array([[1, 2, 4], [0, 0, 0]], dtype)
    y = libsoftmax.softmax(x)
    assert y.dtype.isnative and (y == libsoftmax.softmax(x.astype(dtype[1:]))).all()
    with pytest.raises(TypeError, match="byte order"):
        libsoftmax.softmax_(x)
    with pytest.raises(TypeError, match="byte order"):
        libsoftmax.softmax(x.astype(dtype[1:]), out=x)
