"""Looks at arrays of other packages: where their memory is, its shape, type, device and stream."""
from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, Optional, Sequence, Tuple

from . import _abi, _cuda, _dlpack
from ._dtypes import ITEM_BYTES, NATIVE_ORDER, code_of_typestr, unsupported

# Packages whose arrays must not be written, whatever their capsules say.
_IMMUTABLE = {"jax", "jaxlib", "tensorflow"}
_BUFFER_FORMATS = {"f": _abi.SOFTMAX_DTYPE_F32, "d": _abi.SOFTMAX_DTYPE_F64,
                   "e": _abi.SOFTMAX_DTYPE_F16}


class Buffer:
    """The memory of one array. Keeps the array alive until release()."""

    def __init__(self, owner: Any, address: int, shape: Sequence[int], dtype: int, *,
                 strides_bytes: Optional[Sequence[int]] = None,
                 device: int = _abi.SOFTMAX_DEVICE_CPU, writable: bool = True,
                 ready_on: Optional[int] = None,
                 on_release: Optional[Callable[[], None]] = None) -> None:
        self.owner = owner
        self.address = address
        self.shape: Tuple[int, ...] = tuple(shape)
        self.dtype = dtype
        self.device = device
        self.writable = writable
        self.ready_on = ready_on  # the stream that orders the producer's work; None: unknown
        self._on_release = on_release
        self.contiguous = is_contiguous(self.shape, strides_bytes, ITEM_BYTES[dtype])
        self.aligned = address % ITEM_BYTES[dtype] == 0

    @property
    def on_cuda(self) -> bool:
        return self.device != _abi.SOFTMAX_DEVICE_CPU

    def matrix(self) -> Tuple[int, int]:
        """(M, N): the leading dimensions together, and the last."""
        rows = 1
        for extent in self.shape[:-1]:
            rows *= extent
        return rows, self.shape[-1]

    def release(self) -> None:
        if self._on_release is not None:
            self._on_release()
            self._on_release = None


def is_contiguous(shape: Sequence[int], strides_bytes: Optional[Sequence[int]],
                  item_bytes: int) -> bool:
    """Whether the elements lie in row-major order without gaps."""
    if strides_bytes is None or 0 in shape:
        return True
    expected = item_bytes
    for extent, stride in zip(reversed(shape), reversed(strides_bytes)):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


def numpy_module(x: Any) -> Any:
    """numpy where x is one of its arrays, else None. Never imports it."""
    numpy = sys.modules.get("numpy")
    return numpy if numpy is not None and isinstance(x, numpy.ndarray) else None


def is_native(x: Any) -> bool:
    """Whether a numpy array has this machine's byte order."""
    return bool(x.dtype.isnative)


def _from_numpy(x: Any, numpy: Any) -> Buffer:
    if isinstance(x, numpy.ma.MaskedArray):
        raise TypeError("masked arrays are not supported: the mask would be ignored; pass "
                        "x.filled(-numpy.inf)")
    interface = x.__array_interface__
    typestr = interface["typestr"]
    dtype = code_of_typestr(typestr, x.dtype.name)
    if dtype is None:
        if code_of_typestr(NATIVE_ORDER + typestr[1:]) is not None:
            raise TypeError(f"{x.dtype.name} in foreign byte order ({typestr}) cannot be used in "
                            "place; convert with x.astype(x.dtype.newbyteorder('='))")
        raise unsupported(x.dtype.name)
    address, read_only = interface["data"]
    return Buffer(x, address, x.shape, dtype, strides_bytes=x.strides, writable=not read_only)


def _from_dlpack(x: Any, stream: Optional[int]) -> Buffer:
    ready_on = stream if stream is not None else _cuda.producer_stream(x)
    tensor = _dlpack.export(x, ready_on)
    strides_bytes = None
    if tensor.strides is not None:
        strides_bytes = [stride * ITEM_BYTES[tensor.dtype] for stride in tensor.strides]
    packages = {base.__module__.split(".")[0] for base in type(x).__mro__}
    writable = not (tensor.read_only or tensor.is_copy or packages & _IMMUTABLE)
    return Buffer(x, tensor.address, tensor.shape, tensor.dtype, strides_bytes=strides_bytes,
                  device=tensor.device, writable=writable, ready_on=ready_on,
                  on_release=tensor.release)


def _from_cuda_array_interface(x: Any, interface: Any, stream: Optional[int]) -> Buffer:
    version = interface.get("version", 0)
    if version < 2:
        raise TypeError(f"__cuda_array_interface__ version {version} is not supported, only 2 "
                        "and 3")
    if interface.get("mask") is not None:
        raise TypeError("masked arrays are not supported: the mask would be ignored")
    typestr = interface["typestr"]
    dtype = code_of_typestr(typestr, getattr(getattr(x, "dtype", None), "name", ""))
    if dtype is None:
        raise unsupported(typestr)
    address, read_only = interface["data"]
    produced_on = interface.get("stream")
    if produced_on == 0:
        raise ValueError("__cuda_array_interface__ gives stream 0, which is ambiguous and not "
                         "allowed: 1 is the legacy default stream, 2 the per-thread one")
    if stream is not None and produced_on is not None and \
            not _cuda.same_stream(stream, produced_on):
        _cuda.synchronize(produced_on)
    address = address or 0
    device = _cuda.device_of(address)
    return Buffer(x, address, interface["shape"], dtype,
                  strides_bytes=interface.get("strides"), device=device, writable=not read_only,
                  ready_on=stream if stream is not None else produced_on)


def _from_buffer_protocol(x: Any) -> Buffer:
    view = memoryview(x)
    dtype = _BUFFER_FORMATS.get(view.format.lstrip("@=" + NATIVE_ORDER))
    if dtype is None:
        raise unsupported(f"with buffer format {view.format!r}")
    if view.readonly:
        raise ValueError(f"the memory of this {type(x).__name__} is read-only; "
                         "pass numpy.asarray(x)")
    address = 0
    if view.nbytes > 0:
        if not view.c_contiguous:
            raise ValueError("the buffer is not contiguous")
        address = ctypes.addressof(ctypes.c_char.from_buffer(view))
    # The view holds the exporter's memory where it is: an array.array cannot be resized meanwhile.
    return Buffer(x, address, view.shape or (), dtype, on_release=view.release)


def open_buffer(x: Any, stream: Optional[int]) -> Buffer:
    """Describes x's memory, ready to be used on `stream` (None: on the producer's own)."""
    numpy = numpy_module(x)
    if numpy is not None:
        return _from_numpy(x, numpy)
    if hasattr(type(x), "__dlpack__") and hasattr(type(x), "__dlpack_device__"):
        return _from_dlpack(x, stream)
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_cuda_array_interface(x, interface, stream)
    try:
        memoryview(x)
    except TypeError:
        hint = "pass numpy.asarray(x, dtype='float32')"
        raise TypeError(f"{type(x).__name__} is no array that libsoftmax can use: it takes numpy "
                        "arrays, writable buffers, and objects with __dlpack__ or "
                        f"__cuda_array_interface__; {hint}") from None
    return _from_buffer_protocol(x)


def require_writable(buffer: Buffer, what: str) -> None:
    if not buffer.writable:
        raise ValueError(f"{what} is read-only (or shares no memory with its producer) and cannot "
                         "be written")
    if not buffer.contiguous:
        raise ValueError(f"{what} is not contiguous: rows must lie one after the other in memory; "
                         "pass a contiguous array, such as numpy.ascontiguousarray makes")
    if not buffer.aligned:
        raise ValueError(f"{what} is not aligned to its elements")
