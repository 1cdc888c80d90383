"""Stand-ins for other packages' arrays: DLPack capsules and CUDA array interfaces."""
import ctypes

import numpy as np

from libsoftmax import _dlpack

CPU = (1, 0)


class ViaNumpy:
    """An object with numpy's own DLPack capsules, and nothing else of an array."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)


class Capsules:
    """Makes DLPack capsules by hand over numpy memory, and counts how often each is given back."""

    _make = ctypes.pythonapi.PyCapsule_New
    _make.restype = ctypes.py_object
    _make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    _deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

    def __init__(self, array, *, versioned=False, code=2, bits=32, lanes=1, device=CPU,
                 contiguous_strides=False, byte_offset=0, flags=0, major=1, shape=None,
                 address=None):
        self.array, self.versioned, self.device = array, versioned, device
        self.exported = self.deleted = 0
        self.streams = []
        self._call = self._deleter(self._delete)
        shape = array.shape if shape is None else shape
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._strides = (ctypes.c_int64 * len(shape))(
            *(stride // array.itemsize for stride in array.strides))
        kind = _dlpack.DLManagedTensorVersioned if versioned else _dlpack.DLManagedTensor
        self._managed = kind()
        tensor = self._managed.dl_tensor
        tensor.data = (array.ctypes.data if address is None else address) - byte_offset
        tensor.byte_offset = byte_offset
        tensor.device.device_type, tensor.device.device_id = device
        tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = code, bits, lanes
        tensor.ndim = len(shape)
        tensor.shape = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
        if not contiguous_strides:
            tensor.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))
        self._managed.deleter = ctypes.cast(self._call, ctypes.c_void_p).value
        if versioned:
            self._managed.major, self._managed.flags = major, flags
        self._name = b"dltensor_versioned" if versioned else b"dltensor"

    def _delete(self, address):
        assert address == ctypes.addressof(self._managed)
        self.deleted += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **kwargs):
        if not self.versioned and "max_version" in kwargs:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.streams.append(kwargs.get("stream"))
        self.exported += 1
        return self._make(ctypes.addressof(self._managed), self._name, None)


class CudaArray:
    """An object with __cuda_array_interface__ alone."""

    def __init__(self, address, shape, typestr="<f4", **more):
        self.__cuda_array_interface__ = {"data": (address, False), "shape": shape,
                                         "typestr": typestr, "version": 3, **more}


class Recorder:
    """Stands in for the library's computing calls: keeps their arguments and succeeds."""

    def __init__(self, real):
        self._real = real
        self.calls = []

    def __getattr__(self, name):
        if name not in ("softmax_forward_to", "logsoftmax_forward_to"):
            return getattr(self._real, name)

        def call(*arguments):
            self.calls.append((name, *arguments))
            return 0

        return call


def bfloat16_bits(values):
    """The upper halves of float32 values, which must be exact in bfloat16."""
    bits = np.asarray(values, "float32").view("uint32")
    assert (bits & 0xFFFF == 0).all()
    return (bits >> 16).astype("uint16")
