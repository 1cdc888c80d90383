"""What cannot be computed is refused with an error that says why, before anything is written."""
import subprocess
import sys

import numpy as np
import pytest

import libsoftmax

X = np.array([[1, 2, 3], [4, 5, 6]], "float32")


@pytest.mark.parametrize("x", [[[1.0, 2.0]], (1.0, 2.0), 3.5, "text", None, {1.0}, object()])
def test_what_is_no_array_is_refused_with_a_hint(x):
    for function in (libsoftmax.softmax, libsoftmax.softmax_):
        with pytest.raises(TypeError, match="numpy.asarray"):
            function(x)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint16", "bool", "complex64",
                                   "complex128", "longdouble", "O", "U3", "M8[s]"])
def test_other_elements_are_refused_by_name(dtype):
    x = np.zeros((2, 3), dtype)
    with pytest.raises(TypeError, match="only float32, float64, float16 and bfloat16"):
        libsoftmax.softmax(x)
    with pytest.raises(TypeError):
        libsoftmax.softmax_(x)


def test_bytes_are_refused():
    with pytest.raises(TypeError, match="buffer format"):
        libsoftmax.softmax_(bytearray(8))


def test_an_array_without_dimensions_is_refused():
    for x in (np.array(3.0, "float32"), np.float32(3)):
        with pytest.raises(ValueError, match="no dimensions|read-only"):
            libsoftmax.softmax(x)


def test_a_read_only_array_is_an_input_and_no_output():
    x = X.copy()
    x.flags.writeable = False
    assert libsoftmax.softmax(x).shape == (2, 3)
    with pytest.raises(ValueError, match="read-only"):
        libsoftmax.softmax_(x)
    with pytest.raises(ValueError, match="out is read-only"):
        libsoftmax.softmax(X, out=x)
    assert (x == X).all()


def test_masked_arrays_are_refused():
    with pytest.raises(TypeError, match="mask"):
        libsoftmax.softmax(np.ma.masked_array(X, X > 2))


@pytest.mark.parametrize("axis", [0, 1, -2, -3])
def test_an_axis_that_is_not_the_last_is_refused(axis):
    with pytest.raises(NotImplementedError, match="not the last"):
        libsoftmax.softmax(X.reshape(1, 2, 3), axis=axis)


@pytest.mark.parametrize("axis", [2, -3, 10**30])
def test_an_axis_that_does_not_exist_is_refused(axis):
    with pytest.raises(ValueError, match="out of range"):
        libsoftmax.softmax(X, axis=axis)


def test_an_axis_that_is_no_integer_is_refused():
    with pytest.raises(TypeError):
        libsoftmax.softmax(X, axis=1.0)


@pytest.mark.parametrize("shape", [(3, 2), (6,), (2, 3, 1), (2, 4)])
def test_an_output_of_another_shape_is_refused(shape):
    out = np.full(shape, 9, "float32")
    with pytest.raises(ValueError, match="shape"):
        libsoftmax.softmax(X, out)
    assert (out == 9).all()


def test_a_pair_of_types_beyond_the_headline_s_is_computed_on_the_cpu():
    exact = np.exp(X.astype("float64") - X.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    for kwargs in ({"dtype": "float64"}, {"out": np.empty((2, 3))}):
        y = libsoftmax.softmax(X, **kwargs)
        assert y.dtype == np.float64
        np.testing.assert_allclose(y, exact, rtol=1e-14)
    with pytest.raises(libsoftmax.SoftmaxError) as caught:
        libsoftmax.softmax(X, dtype="float64", algo="naive")
    assert caught.value.name == "SOFTMAX_STATUS_NOT_SUPPORTED_ALGO"


def test_dtype_must_agree_with_out():
    with pytest.raises(ValueError, match="dtype asks for"):
        libsoftmax.softmax(X, np.empty((2, 3), "float32"), dtype="float64")


@pytest.mark.parametrize("dtype", ["int32", int, np.dtype(">f4"), "float33", 7])
def test_dtype_must_be_one_that_exists(dtype):
    with pytest.raises(TypeError, match="not supported"):
        libsoftmax.softmax(X, dtype=dtype)


def test_algorithms_that_do_not_exist_or_do_not_run_here_are_refused():
    for algo, status in (("fastest", 1005), (777, 1005), ("warp", 2001), ("shared", 2001)):
        with pytest.raises(libsoftmax.SoftmaxError) as caught:
            libsoftmax.softmax(X, algo=algo)
        assert caught.value.status == status
    for algo in (None, 1.5, True):
        with pytest.raises(TypeError):
            libsoftmax.softmax(X, algo=algo)


def test_a_stream_on_the_cpu_is_refused():
    with pytest.raises(libsoftmax.SoftmaxError) as caught:
        libsoftmax.softmax(X, stream=1)
    assert caught.value.name == "SOFTMAX_STATUS_WRONG_DEVICE"
    with pytest.raises(TypeError, match="stream"):
        libsoftmax.softmax(X, stream="main")


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:-1", "cpu:0", ""])
def test_device_names_that_do_not_exist_are_refused(device):
    with pytest.raises(ValueError, match="device"):
        libsoftmax.Handle(device)


@pytest.mark.parametrize("device", [None, 1.0, True])
def test_devices_of_other_types_are_refused(device):
    with pytest.raises(TypeError, match="device"):
        libsoftmax.Handle(device)


def test_a_cuda_device_that_does_not_exist_is_the_library_s_error():
    for device in (libsoftmax.device_count(), "cuda:99"):
        with pytest.raises(libsoftmax.SoftmaxError) as caught:
            libsoftmax.Handle(device)
        assert caught.value.status // 1000 in (1, 2)
        assert str(caught.value)


def test_importing_and_computing_does_not_import_numpy():
    program = ("import sys, array, libsoftmax; x = array.array('f', [0, 0]); "
               "libsoftmax.softmax_(x); assert list(x) == [0.5, 0.5]; "
               "assert 'numpy' not in sys.modules")
    subprocess.run([sys.executable, "-c", program], check=True)
