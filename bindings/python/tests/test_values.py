"""Results of the package on numpy arrays are within the header's bounds."""
import numpy as np
import pytest

import libsoftmax
from reference import BOUND_ULP, softmax, worst_ulp

RNG = np.random.default_rng(20240601)
BOTH = pytest.mark.parametrize("log", [False, True])


def call(log, *args, **kwargs):
    return (libsoftmax.log_softmax if log else libsoftmax.softmax)(*args, **kwargs)


def call_in_place(log, *args, **kwargs):
    return (libsoftmax.log_softmax_ if log else libsoftmax.softmax_)(*args, **kwargs)


@BOTH
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (3, 5), (2, 3, 4), (17,), (2, 1, 3, 33),
                                   (5, 1000), (1, 50257)])
def test_every_shape_and_dtype_is_within_the_bound(shape, dtype, log):
    x = (RNG.standard_normal(shape) * 5).astype(dtype)
    before = x.copy()
    y = call(log, x)
    assert type(y) is np.ndarray and y.dtype == x.dtype and y.shape == shape
    assert y is not x and (x == before).all()
    expected = softmax(x, log)
    if log and shape[-1] == 1:
        assert (y == 0).all()
    else:
        assert worst_ulp(y, expected) <= BOUND_ULP[dtype]
    assert call_in_place(log, x) is x
    assert x.tobytes() == y.tobytes()


@BOTH
def test_float16_to_float32_has_the_float32_bound(log):
    x = (RNG.standard_normal((9, 333)) * 3).astype("float16")
    y = call(log, x, dtype=np.float32)
    assert y.dtype == np.float32
    assert worst_ulp(y, softmax(x, log)) <= BOUND_ULP["float32"]
    out = np.empty((9, 333), "float32")
    assert call(log, x, out) is out
    assert out.tobytes() == y.tobytes()


@BOTH
def test_bfloat16_of_ml_dtypes_works(log):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = RNG.standard_normal((4, 100)).astype(ml_dtypes.bfloat16)
    y = call(log, x)
    assert y.dtype == x.dtype
    exact = softmax(x.astype("float32"), log)
    error = np.abs(y.astype("float32") - exact)
    assert (error <= 0.51 * 2.0 ** (np.floor(np.log2(np.abs(exact))) - 7)).all()
    wide = call(log, x, dtype="float32")
    assert worst_ulp(wide, exact) <= BOUND_ULP["float32"]


@pytest.mark.parametrize("algo", ["auto", "naive", "vector", "online", "reference", "ONLINE", 5])
def test_every_cpu_algorithm_can_be_asked_for(algo):
    x = RNG.standard_normal((3, 77)).astype("float32")
    assert worst_ulp(libsoftmax.softmax(x, algo=algo), softmax(x)) <= 4


def test_out_may_be_x_itself():
    x = RNG.standard_normal((3, 8)).astype("float32")
    expected = libsoftmax.softmax(x)
    assert libsoftmax.softmax(x, out=x) is x
    assert (x == expected).all()


@BOTH
def test_edge_rows_follow_the_header(log):
    inf, nan = np.inf, np.nan
    x = np.array([[0, nan, 1], [0, inf, 1], [-inf, 0, 0], [-inf, -inf, -inf]], "float32")
    y = call(log, x)
    assert np.isnan(y[[0, 1, 3]]).all()
    half = -np.log(2.0) if log else 0.5
    assert y[2, 0] == (-inf if log else 0)
    assert y[2, 1] == y[2, 2] == np.float32(half)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,), (3, 0, 4), (2**33, 0), (0, 2**40)])
def test_an_empty_array_gives_an_empty_array(shape):
    x = np.empty(shape, "float32")
    y = libsoftmax.softmax(x)
    assert y.shape == shape
    assert libsoftmax.log_softmax_(x) is x


def test_the_last_axis_may_be_named_from_the_front():
    x = RNG.standard_normal((2, 3, 4)).astype("float32")
    assert (libsoftmax.softmax(x, axis=2) == libsoftmax.softmax(x)).all()


def test_memory_maps_and_subclasses_work(tmp_path):
    np.save(tmp_path / "x.npy", RNG.standard_normal((4, 6)).astype("float32"))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert worst_ulp(libsoftmax.softmax(x), softmax(x)) <= 4
    with pytest.raises(ValueError, match="read-only"):
        libsoftmax.softmax_(x)


def test_array_array_is_computed_in_place_without_numpy():
    import array

    x = array.array("d", [1.0, 2.0, 3.0, 4.0])
    expected = softmax(np.array(x))
    assert libsoftmax.softmax_(x) is x
    assert worst_ulp(np.array(x), expected) <= 4
    x.append(1.0)  # the buffer was given back


def test_out_of_another_kind_than_x_works():
    import array

    x = np.array([1, 2, 3], "float32")
    out = array.array("f", [0, 0, 0])
    assert libsoftmax.softmax(x, out) is out
    assert (np.array(out) == libsoftmax.softmax(x)).all()
