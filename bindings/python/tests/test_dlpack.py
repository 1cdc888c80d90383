"""Arrays that come through DLPack: read where they are, given back exactly once."""
import gc
import sys

import numpy as np
import pytest

import libsoftmax
from producers import Capsules, ViaNumpy, bfloat16_bits
from reference import softmax, worst_ulp

VERSIONED = pytest.mark.parametrize("versioned", [False, True])


def rows(dtype="float32"):
    return np.random.default_rng(5).standard_normal((4, 9)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numpy_s_own_capsules_are_read(dtype):
    x, out = rows(dtype), np.zeros((4, 9), dtype)
    wrapped = ViaNumpy(out)
    assert libsoftmax.softmax(ViaNumpy(x), wrapped) is wrapped
    assert out.tobytes() == libsoftmax.softmax(x).tobytes()
    libsoftmax.log_softmax_(ViaNumpy(x))
    assert worst_ulp(x, softmax(rows(dtype), True)) <= 4


@VERSIONED
@pytest.mark.parametrize("byte_offset", [0, 24])
@pytest.mark.parametrize("contiguous_strides", [False, True])
def test_a_capsule_is_given_back_exactly_once(versioned, byte_offset, contiguous_strides):
    x = rows()
    expected = libsoftmax.softmax(x)
    producer = Capsules(x, versioned=versioned, byte_offset=byte_offset,
                        contiguous_strides=contiguous_strides)
    libsoftmax.softmax_(producer)
    assert (x == expected).all()
    gc.collect()
    assert (producer.exported, producer.deleted) == (1, 1)


@VERSIONED
def test_a_capsule_is_given_back_after_every_kind_of_error(versioned):
    not_contiguous = Capsules(rows()[:, ::2], versioned=versioned)
    with pytest.raises(ValueError, match="not contiguous"):
        libsoftmax.softmax_(not_contiguous)
    with pytest.raises(ValueError, match="not contiguous"):
        libsoftmax.softmax(not_contiguous, rows()[:, :5].copy())
    assert (not_contiguous.exported, not_contiguous.deleted) == (2, 2)

    integers = Capsules(rows(), versioned=versioned, code=0)
    with pytest.raises(TypeError, match="int32"):
        libsoftmax.softmax_(integers)
    assert (integers.exported, integers.deleted) == (1, 1)

    vectors = Capsules(rows(), versioned=versioned, lanes=4)
    with pytest.raises(TypeError, match="float32x4"):
        libsoftmax.softmax_(vectors)
    assert (vectors.exported, vectors.deleted) == (1, 1)

    elsewhere = Capsules(rows(), versioned=versioned, device=(7, 0))
    with pytest.raises(TypeError, match="device type 7"):
        libsoftmax.softmax_(elsewhere)
    assert (elsewhere.exported, elsewhere.deleted) == (1, 1)

    refused = Capsules(rows(), versioned=versioned)
    with pytest.raises(libsoftmax.SoftmaxError):
        libsoftmax.softmax_(refused, algo="warp")
    with pytest.raises(ValueError, match="shape"):
        libsoftmax.softmax(refused, np.zeros((9, 4), "float32"))
    with pytest.raises(NotImplementedError):
        libsoftmax.softmax_(refused, axis=0)
    assert (refused.exported, refused.deleted) == (3, 3)


def test_an_unknown_major_version_is_given_back_and_refused():
    producer = Capsules(rows(), versioned=True, major=2)
    with pytest.raises(TypeError, match="DLPack 2"):
        libsoftmax.softmax_(producer)
    assert (producer.exported, producer.deleted) == (1, 1)


@pytest.mark.parametrize("flags", [1, 2])
def test_read_only_capsules_and_copies_are_not_written(flags):
    x = rows()
    producer = Capsules(x, versioned=True, flags=flags)
    with pytest.raises(ValueError, match="read-only"):
        libsoftmax.softmax_(producer)
    with pytest.raises(ValueError, match="read-only"):
        libsoftmax.softmax(rows(), producer)
    assert (x == rows()).all()
    out = np.empty_like(x)
    libsoftmax.softmax(producer, out)
    assert (out == libsoftmax.softmax(x)).all()


def test_bfloat16_is_read_and_written():
    values = [[0.0, 1.0, 2.0, -3.5], [8.0, 8.0, 8.0, 8.0]]
    x = bfloat16_bits(values)
    wide = np.zeros((2, 4), "float32")
    libsoftmax.softmax(Capsules(x, code=4, bits=16), wide)
    assert worst_ulp(wide, softmax(values)) <= 4
    libsoftmax.softmax_(Capsules(x, code=4, bits=16))
    found = (x.astype("uint32") << 16).view("float32")
    exact = softmax(values)
    assert (np.abs(found - exact) <= 0.51 * 2.0 ** (np.floor(np.log2(exact)) - 7)).all()
    assert (found[1] == 0.25).all()


def test_pinned_host_memory_is_computed_on_the_cpu():
    x = rows()
    libsoftmax.softmax_(Capsules(x, device=(3, 0)))
    assert (x == libsoftmax.softmax(rows())).all()


def test_what_is_no_capsule_or_was_used_is_refused():
    class Wrong(ViaNumpy):
        def __dlpack__(self, **kwargs):
            return object()

    with pytest.raises(TypeError, match="capsule"):
        libsoftmax.softmax_(Wrong(rows()))

    class Reused(ViaNumpy):
        capsule = None

        def __dlpack__(self, **kwargs):
            self.capsule = self.capsule or self.array.__dlpack__()
            return self.capsule

    reused = Reused(rows())
    libsoftmax.softmax_(reused)
    with pytest.raises(TypeError, match="used"):
        libsoftmax.softmax_(reused)


def test_without_out_a_package_that_makes_no_arrays_is_an_error():
    with pytest.raises(TypeError, match="pass out="):
        libsoftmax.softmax(ViaNumpy(rows()))


def test_without_out_the_producer_s_package_makes_the_array(monkeypatch):
    class Package:
        float32 = "float32"

        @staticmethod
        def empty_like(x, dtype):
            return ViaNumpy(np.empty(x.array.shape, dtype))

    monkeypatch.setitem(sys.modules, "a_package", Package)
    producer = type("Array", (ViaNumpy,), {"__module__": "a_package.arrays"})(rows())
    y = libsoftmax.softmax(producer)
    assert (y.array == libsoftmax.softmax(rows())).all()


def test_references_are_not_leaked():
    x = rows()
    before = sys.getrefcount(x)
    for _ in range(100):
        libsoftmax.softmax_(ViaNumpy(x))
        with pytest.raises(libsoftmax.SoftmaxError):
            libsoftmax.softmax_(ViaNumpy(x), algo="warp")
    gc.collect()
    assert sys.getrefcount(x) == before


def test_torch_cpu_tensors_work():
    torch = pytest.importorskip("torch")
    x = torch.randn(5, 33)
    y = libsoftmax.softmax(x)
    assert isinstance(y, torch.Tensor)
    assert torch.allclose(y, torch.softmax(x, -1), rtol=1e-5, atol=0)
    assert torch.equal(libsoftmax.softmax(x.T), libsoftmax.softmax(x.T.contiguous()))


def test_jax_arrays_are_inputs_and_never_outputs():
    jax = pytest.importorskip("jax")
    x = jax.device_put(rows(), jax.devices("cpu")[0])
    out = np.empty((4, 9), "float32")
    assert (libsoftmax.softmax(x, out) == libsoftmax.softmax(rows())).all()
    with pytest.raises(ValueError, match="read-only"):
        libsoftmax.softmax_(x)
    with pytest.raises(ValueError, match="read-only"):
        libsoftmax.softmax(rows(), x)
    with pytest.raises(TypeError, match="pass out="):
        libsoftmax.softmax(x)
    assert (np.asarray(x) == rows()).all()
