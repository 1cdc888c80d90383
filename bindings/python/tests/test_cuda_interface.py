"""CUDA arrays on a machine without CUDA: what would reach the library, by a stand-in for it.

test_cuda.py is the same on a real device.
"""
import numpy as np
import pytest

import libsoftmax
from libsoftmax import _cuda, _functions
from producers import Capsules, CudaArray, Recorder

AT = 0x7F12_3456_7800  # above 2**31, and above 2**32


class FakeHandle:
    address = 0x7EEE_0000_1110


@pytest.fixture
def calls(monkeypatch):
    recorder = Recorder(_functions.lib)
    monkeypatch.setattr(_functions, "lib", recorder)
    monkeypatch.setattr(_functions, "default_handle", lambda device: FakeHandle)
    monkeypatch.setattr(_cuda, "device_of", lambda address: 0)
    return recorder.calls


def test_in_place_passes_address_and_counts_whole(calls):
    x = CudaArray(AT, (2**33, 3, 5))
    assert libsoftmax.softmax_(x) is x
    assert calls == [("softmax_forward_to", FakeHandle.address, 0, AT, 1, AT, 1, 3 * 2**33, 5,
                      None)]


def test_types_and_out_are_passed(calls):
    x, out = CudaArray(AT, (4, 2**40), "<f2"), CudaArray(AT * 2, (4, 2**40), "<f4")
    assert libsoftmax.log_softmax(x, out, algo="online") is out
    assert calls == [("logsoftmax_forward_to", FakeHandle.address, 5, AT, 2, AT * 2, 1, 4, 2**40,
                      None)]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("strides", [None, (20, 4)])
def test_contiguous_strides_are_taken(calls, version, strides):
    libsoftmax.softmax_(CudaArray(AT, (3, 5), version=version, strides=strides))
    assert len(calls) == 1


@pytest.mark.parametrize("strides", [(40, 4), (4, 12), (-20, 4), (0, 4), (40, 8)])
def test_other_strides_are_refused_by_name(calls, strides):
    x = CudaArray(AT, (3, 5), strides=strides)
    for function in (lambda: libsoftmax.softmax_(x),
                     lambda: libsoftmax.softmax(x, CudaArray(AT + 4096, (3, 5))),
                     lambda: libsoftmax.softmax(CudaArray(AT + 4096, (3, 5)), x)):
        with pytest.raises(ValueError, match="not contiguous"):
            function()
    assert calls == []


@pytest.mark.parametrize("produced_on", [1, 2, 0x5555_0000_0010])
def test_without_a_stream_the_producer_s_is_used(calls, produced_on):
    libsoftmax.softmax_(CudaArray(AT, (3, 5), stream=produced_on))
    assert calls[0][-1] == produced_on


def test_without_a_stream_the_output_s_producer_decides_if_the_input_s_does_not(calls):
    libsoftmax.softmax(CudaArray(AT, (3, 5)), CudaArray(AT + 4096, (3, 5), stream=2))
    assert calls[0][-1] == 2


def test_a_given_stream_is_used_after_waiting_for_the_producer_s(calls, monkeypatch):
    waited = []
    monkeypatch.setattr(_cuda, "synchronize", waited.append)
    libsoftmax.softmax_(CudaArray(AT, (3, 5), stream=0x77), stream=0x99)
    assert (waited, calls[0][-1]) == ([0x77], 0x99)
    libsoftmax.softmax_(CudaArray(AT, (3, 5), stream=0x99), stream=0x99)
    libsoftmax.softmax_(CudaArray(AT, (3, 5)), stream=0x99)
    libsoftmax.softmax_(CudaArray(AT, (3, 5), stream=1), stream=0)  # two words for one stream
    assert waited == [0x77]


def test_stream_objects_are_understood(calls):
    class Torch:
        cuda_stream = 0x11

    class Cupy:
        ptr = 0x22

    class Protocol:
        def __cuda_stream__(self):
            return (0, 0x33)

    for stream, address in ((Torch(), 0x11), (Cupy(), 0x22), (Protocol(), 0x33), (0x44, 0x44)):
        libsoftmax.softmax_(CudaArray(AT, (3, 5)), stream=stream)
        assert calls[-1][-1] == address


def test_the_producer_of_out_is_waited_for(calls, monkeypatch):
    waited = []
    monkeypatch.setattr(_cuda, "synchronize", waited.append)
    libsoftmax.softmax(CudaArray(AT, (3, 5), stream=0x55), CudaArray(AT + 4096, (3, 5), stream=2))
    assert (waited, calls[0][-1]) == ([2], 0x55)
    out = Capsules(np.zeros((3, 5), "float32"), device=(2, 0), address=AT)
    libsoftmax.softmax(CudaArray(AT + 4096, (3, 5), stream=0x55), out)
    assert (out.streams, calls[1][-1]) == ([0x55], 0x55)


def test_stream_0_of_a_producer_is_refused(calls):
    with pytest.raises(ValueError, match="stream 0"):
        libsoftmax.softmax_(CudaArray(AT, (3, 5), stream=0))


@pytest.mark.parametrize("change, error", [
    ({"version": 1}, "version 1"), ({"typestr": "<i4"}, "<i4"), ({"typestr": ">f4"}, ">f4"),
    ({"mask": object()}, "mask"), ({"data": (AT, True)}, "read-only"), ({"shape": ()}, "no dim"),
    ({"data": (AT + 1, False)}, "not aligned"),
])
def test_what_cannot_be_used_is_refused(calls, change, error):
    x = CudaArray(AT, (3, 5))
    x.__cuda_array_interface__.update(change)
    with pytest.raises((TypeError, ValueError), match=error):
        libsoftmax.softmax_(x)
    assert calls == []


def test_an_empty_cuda_array_needs_no_memory(calls):
    libsoftmax.softmax_(CudaArray(0, (0, 5)))
    assert calls[0][3] in (0, None) and calls[0][7:9] == (0, 5)


def test_without_out_and_without_a_package_the_error_says_pass_out(calls):
    with pytest.raises(TypeError, match="pass out="):
        libsoftmax.softmax(CudaArray(AT, (3, 5)))


def test_host_and_device_arrays_do_not_mix(calls):
    with pytest.raises(ValueError, match="different devices"):
        libsoftmax.softmax(CudaArray(AT, (3, 5)), np.zeros((3, 5), "float32"))
    assert calls == []


def test_dlpack_producers_are_told_the_stream(calls):
    x = Capsules(np.zeros((3, 5), "float32"), device=(2, 1), address=AT, versioned=True)
    libsoftmax.softmax_(x)
    assert calls[-1][3] == AT and calls[-1][-1] is None
    libsoftmax.softmax_(x, stream=0x66)
    assert calls[-1][-1] == 0x66
    assert x.streams == [1, 0x66]  # 1: the legacy default stream
    assert x.deleted == 2


def test_dlpack_arrays_of_two_devices_do_not_mix(calls):
    memory = np.zeros((3, 5), "float32")
    with pytest.raises(ValueError, match="different devices"):
        libsoftmax.softmax(Capsules(memory, device=(2, 0)), Capsules(memory, device=(2, 1)))


@pytest.mark.parametrize("stream", [-1, 2**64])
def test_a_stream_that_is_no_address_is_refused(calls, stream):
    with pytest.raises(OverflowError, match="does not fit"):
        libsoftmax.softmax_(CudaArray(AT, (3, 5)), stream=stream)
    assert calls == []


def test_a_claim_of_device_memory_is_never_read_by_the_cpu():
    if libsoftmax.device_count() > 0:
        pytest.skip("there is a CUDA device")
    with pytest.raises(libsoftmax.SoftmaxError) as caught:
        libsoftmax.softmax_(CudaArray(0x1000, (3, 5)))
    assert caught.value.status // 1000 == 2
