"""What this package needs of CUDA itself: streams of others, and the driver by ctypes."""
from __future__ import annotations

import ctypes
import operator
import sys
from typing import Any, Optional

from ._checked import Address

_LEGACY_DEFAULT = 1  # cudaStreamLegacy; the library takes NULL for it too
_POINTER_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_driver: Optional[ctypes.CDLL] = None


def driver() -> ctypes.CDLL:
    global _driver
    if _driver is None:
        _driver = ctypes.CDLL("libcuda.so.1")
        _driver.cuPointerGetAttribute.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64]
        _driver.cuStreamSynchronize.argtypes = [ctypes.c_void_p]
    return _driver


def device_of(address: int) -> int:
    """The CUDA ordinal that holds `address`; 0 where CUDA cannot say.

    Never the CPU: a pointer that claims to be device memory must not be read by it.
    """
    ordinal = ctypes.c_int(-1)
    try:
        error = driver().cuPointerGetAttribute(ctypes.byref(ordinal), _POINTER_DEVICE_ORDINAL,
                                               address)
    except (OSError, AttributeError):
        return 0
    return ordinal.value if error == 0 else 0


def synchronize(stream: int) -> None:
    """Waits on the host until the work in `stream` is done."""
    error = driver().cuStreamSynchronize(stream)
    if error != 0:
        raise RuntimeError(f"cannot wait for the producer's stream {stream:#x}: CUDA error "
                           f"{error}; leave stream out, or make the array on the stream that you "
                           "pass")


def same_stream(a: Optional[int], b: Optional[int]) -> bool:
    return (a or _LEGACY_DEFAULT) == (b or _LEGACY_DEFAULT)


def stream_address(stream: Any) -> Optional[int]:
    """The cudaStream_t of an integer, or of a stream object of torch, cupy or another package."""
    if stream is None:
        return None
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__  # (version, cudaStream_t); a method or a property
        return int((protocol() if callable(protocol) else protocol)[1])
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    try:
        address = operator.index(stream)
    except TypeError:
        raise TypeError(f"stream must be an integer (a cudaStream_t) or a stream object, not "
                        f"{type(stream).__name__}") from None
    return Address.checked(address)


def _is_torch(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def producer_stream(x: Any) -> Optional[int]:
    """The stream that x's package works on for x; None where it does not say."""
    if _is_torch(x):
        if not x.is_cuda:
            return None
        return int(sys.modules["torch"].cuda.current_stream(x.device).cuda_stream)
    interface = getattr(x, "__cuda_array_interface__", None)
    return None if interface is None else interface.get("stream")


def record_use(x: Any, stream: Optional[int]) -> None:
    """Tells torch's allocator that `stream` uses x: memory is not reused before that is done."""
    if _is_torch(x) and x.is_cuda and not same_stream(stream, producer_stream(x)):
        cuda = sys.modules["torch"].cuda
        if same_stream(stream, None):
            x.record_stream(cuda.default_stream(x.device))
        else:
            x.record_stream(cuda.ExternalStream(stream, device=x.device))
