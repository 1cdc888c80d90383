"""Reads DLPack capsules, plain and versioned, in ctypes."""
from __future__ import annotations

import ctypes
from ctypes import (POINTER, PYFUNCTYPE, Structure, c_char_p, c_int, c_int32, c_int64, c_uint8,
                    c_uint16, c_uint32, c_uint64, c_void_p, py_object)
from typing import Any, Dict, Optional, Tuple

from . import _abi
from ._dtypes import unsupported

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
FLAG_READ_ONLY, FLAG_IS_COPIED = 1, 2
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6  # DLDataTypeCode
_CODE_NAMES = {_INT: "int", _UINT: "uint", _FLOAT: "float", _BFLOAT: "bfloat",
               _COMPLEX: "complex", _BOOL: "bool"}
_DTYPES = {(_FLOAT, 32): _abi.SOFTMAX_DTYPE_F32, (_FLOAT, 16): _abi.SOFTMAX_DTYPE_F16,
           (_BFLOAT, 16): _abi.SOFTMAX_DTYPE_BF16, (_FLOAT, 64): _abi.SOFTMAX_DTYPE_F64}


class DLDevice(Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device", DLDevice), ("ndim", c_int32),
                ("dtype", DLDataType), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class DLManagedTensor(Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class DLManagedTensorVersioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("dl_tensor", DLTensor)]


# A deleter may touch Python objects; called as PYFUNCTYPE it finds the GIL held.
_Deleter = PYFUNCTYPE(None, c_void_p)

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c_int, [py_object, c_char_p]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = c_void_p, [py_object, c_char_p]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = c_int, [py_object, c_char_p]

# A capsule keeps the pointer to its name, not a copy: these live as long as the module.
_NAME, _USED = c_char_p(b"dltensor"), c_char_p(b"used_dltensor")
_NAME_VERSIONED, _USED_VERSIONED = (c_char_p(b"dltensor_versioned"),
                                    c_char_p(b"used_dltensor_versioned"))


class Tensor:
    """A consumed capsule: this object owns the managed tensor until release()."""

    def __init__(self, capsule: object) -> None:
        self._managed: Any = None
        if _is_valid(capsule, _NAME_VERSIONED):
            address = _get_pointer(capsule, _NAME_VERSIONED)
            managed: Any = DLManagedTensorVersioned.from_address(address)
            _set_name(capsule, _USED_VERSIONED)
            self._managed, self._address = managed, address
            if managed.major != 1:  # nothing past the deleter may be read then
                self.release()
                raise TypeError(f"DLPack {managed.major} is not supported, only 1 and before")
            flags = managed.flags
        elif _is_valid(capsule, _NAME):
            address = _get_pointer(capsule, _NAME)
            managed = DLManagedTensor.from_address(address)
            _set_name(capsule, _USED)
            self._managed, self._address = managed, address
            flags = 0
        else:
            raise TypeError("__dlpack__ did not return a DLPack capsule, or one that was used")
        try:
            self._read(managed.dl_tensor, flags)
        except BaseException:
            self.release()
            raise

    def _read(self, tensor: DLTensor, flags: int) -> None:
        self.read_only = bool(flags & FLAG_READ_ONLY)
        self.is_copy = bool(flags & FLAG_IS_COPIED)
        self.address: int = (tensor.data or 0) + tensor.byte_offset
        self.shape: Tuple[int, ...] = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self.strides: Optional[Tuple[int, ...]] = None  # in elements; None: contiguous
        if tensor.strides:
            self.strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
        kind = tensor.dtype
        dtype = _DTYPES.get((kind.code, kind.bits)) if kind.lanes == 1 else None
        if dtype is None:
            name = _CODE_NAMES.get(kind.code, f"DLPack type {kind.code}, ")
            raise unsupported(f"{name}{kind.bits}" + (f"x{kind.lanes}" if kind.lanes > 1 else ""))
        self.dtype: int = dtype
        device = tensor.device
        if device.device_type in (CPU, CUDA_HOST):
            self.device = _abi.SOFTMAX_DEVICE_CPU
        elif device.device_type in (CUDA, CUDA_MANAGED):
            self.device = device.device_id
        else:
            raise TypeError(f"DLPack device type {device.device_type} is not supported, only CPU "
                            "and CUDA memory")

    def release(self) -> None:
        """Gives the tensor back to its producer. A second call does nothing."""
        managed, self._managed = self._managed, None
        if managed is not None and managed.deleter:
            _Deleter(managed.deleter)(self._address)


def export(x: Any, stream: Optional[int]) -> Tensor:
    """Asks x for its capsule. `stream` is the CUDA stream that the data must be ready on."""
    device_type, _ = x.__dlpack_device__()
    arguments: Dict[str, Any] = {}
    if device_type in (CUDA, CUDA_MANAGED):
        arguments["stream"] = stream or 1  # 1 is DLPack's word for the legacy default stream
    try:
        capsule = x.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError:  # a producer from before versions
        capsule = x.__dlpack__(**arguments)
    return Tensor(capsule)
