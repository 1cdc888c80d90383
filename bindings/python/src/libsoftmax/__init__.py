"""Softmax and log-softmax over rows, on NVIDIA GPUs and the CPU.

    import numpy, libsoftmax
    y = libsoftmax.softmax(numpy.random.rand(4, 1000).astype("float32"))

Importing this package loads the libsoftmax shared library: the file that the environment variable
LIBSOFTMAX_PATH names, else one in the package's own folder, else the system's. numpy is not
needed, unless arrays are numpy's.
"""
from __future__ import annotations

import ctypes
from typing import Any, Dict, Optional

from . import _abi
from ._errors import SoftmaxError
from ._functions import log_softmax, log_softmax_, softmax, softmax_
from ._handle import Algo, Choice, Device, Handle, default_handle, device_number
from ._library import check as _check
from ._library import lib as _lib

__all__ = ["Choice", "Handle", "SoftmaxError", "algorithms", "build_info", "device_count",
           "log_softmax", "log_softmax_", "select", "softmax", "softmax_", "version"]
__version__ = _abi.HEADER_VERSION


def version() -> str:
    """The version of the library that was loaded, such as "0.1.0"."""
    text: bytes = _lib.softmax_version_string()
    return text.decode()


def build_info() -> str:
    """One line about the library's build: source id, CUDA, GPU architectures, compiler, SIMD."""
    text: bytes = _lib.softmax_build_info()
    return text.decode()


def algorithms() -> Dict[str, int]:
    """The names of the algorithms and their numbers. Not every device takes every one."""
    numbers = sorted(value for name, value in vars(_abi).items()
                     if name.startswith("SOFTMAX_ALGO_"))
    names = ((_lib.softmax_algo_name(number), number) for number in numbers)
    return {name.decode(): number for name, number in names if name is not None}


def device_count() -> int:
    """How many CUDA devices there are: 0 without a driver, or in a build without CUDA."""
    count = ctypes.c_int32()
    _check(_lib.softmax_device_count(ctypes.byref(count)))
    return count.value


def select(M: int, N: int, *, dtype: Any = "float32", out_dtype: Any = None, log: bool = False,
           algo: Algo = "auto", device: Device = "auto",
           handle: Optional[Handle] = None) -> Choice:
    """What would run for M rows of N elements, and why. Runs nothing; see Handle.select()."""
    if handle is None:
        handle = default_handle(device_number(device))
    return handle.select(M, N, dtype=dtype, out_dtype=out_dtype, log=log, algo=algo)
