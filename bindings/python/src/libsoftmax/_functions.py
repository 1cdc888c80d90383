"""The functions of this package: softmax and log-softmax, in place and out of place."""
from __future__ import annotations

import ctypes
import operator
import sys
from typing import Any, Optional, Tuple

from . import _abi, _cuda, _dtypes
from ._arrays import Buffer, is_native, numpy_module, open_buffer, require_writable
from ._handle import Algo, Handle, algo_number, default_handle
from ._library import check, lib


def _check_axis(axis: Any, shape: Tuple[int, ...]) -> None:
    ndim = len(shape)
    if ndim == 0:
        raise ValueError("x has no dimensions, so it has no axis; pass x.reshape(1)")
    number = operator.index(axis)
    if not -ndim <= number < ndim:
        raise ValueError(f"axis {number} is out of range for {ndim} dimensions")
    if number % ndim != ndim - 1:
        raise NotImplementedError(
            f"axis {number} of {ndim} dimensions is not the last one, and this release computes "
            "the last one alone; move it with numpy.moveaxis and make the result contiguous")


def _compute(log: bool, x: Buffer, y: Buffer, algo: Algo, handle: Optional[Handle],
             stream: Optional[int]) -> None:
    """Runs the library on two buffers that were checked."""
    if x.device != y.device:
        raise ValueError("x and out are on different devices")
    if stream is None and x.on_cuda:
        stream = x.ready_on if x.ready_on is not None else y.ready_on
    if handle is None:
        handle = default_handle(x.device)
    function = lib.logsoftmax_forward_to if log else lib.softmax_forward_to
    rows, columns = x.matrix()
    check(function(handle.address, algo_number(algo), x.address, x.dtype, y.address, y.dtype,
                   rows, columns, stream))
    if x.on_cuda:
        _cuda.record_use(x.owner, stream)
        _cuda.record_use(y.owner, stream)


def _usable(x: Any, on_stream: Optional[int]) -> Tuple[Any, Buffer]:
    """x, or a copy of it that is contiguous, aligned and in native byte order, and its buffer."""
    numpy = numpy_module(x)
    if numpy is not None and not is_native(x):
        x = x.astype(x.dtype.newbyteorder("="))
    buffer = open_buffer(x, on_stream)
    if buffer.contiguous and buffer.aligned:
        return x, buffer
    if numpy is not None:
        x = numpy.array(x, order="C")
    elif not buffer.on_cuda and hasattr(x, "contiguous"):
        x = x.contiguous()
    else:
        kind = "contiguous" if not buffer.contiguous else "aligned to its elements"
        buffer.release()
        raise ValueError(f"x is not {kind}: rows must lie one after the other in memory; pass a "
                         "contiguous copy")
    buffer.release()
    return x, open_buffer(x, on_stream)


def _check_pair(log: bool, x_dtype: int, y_dtype: int) -> None:
    """Raises what the library says to this pair of types, before any memory is taken for it."""
    desc = _abi.softmax_desc_t()
    op = _abi.SOFTMAX_OP_LOGSOFTMAX if log else _abi.SOFTMAX_OP_SOFTMAX
    check(lib.softmax_desc_init(ctypes.byref(desc), ctypes.sizeof(desc), op, x_dtype, 1, 1))
    desc.y_dtype = y_dtype
    check(lib.softmax_desc_check(ctypes.byref(desc)))


def _new_output(x: Any, x_dtype: int, y_dtype: int) -> Any:
    """An uninitialised array like x, of x's own package."""
    numpy = numpy_module(x)
    if numpy is not None:
        return numpy.empty(x.shape, x.dtype if y_dtype == x_dtype else _dtypes.NAMES[y_dtype])
    for base in type(x).__mro__:
        module: Any = sys.modules.get(base.__module__.split(".")[0])
        dtype = getattr(module, _dtypes.NAMES[y_dtype], None)
        if hasattr(module, "empty_like") and dtype is not None:
            return module.empty_like(x, dtype=dtype)
    raise TypeError(f"there is no way to make an output like a {type(x).__name__}; pass out=")


def _out_of_place(log: bool, x: Any, out: Any, axis: Any, algo: Algo, stream: Any, dtype: Any,
                  handle: Optional[Handle]) -> Any:
    on_stream = _cuda.stream_address(stream)
    x, x_buffer = _usable(x, on_stream)
    try:
        _check_axis(axis, x_buffer.shape)
        y_dtype = None if dtype is None else _dtypes.code_of(dtype)
        if out is None:
            if y_dtype is None:
                y_dtype = x_buffer.dtype
            _check_pair(log, x_buffer.dtype, y_dtype)
            out = _new_output(x, x_buffer.dtype, y_dtype)
        # The stream that will write to out has to wait for what its own package does with it.
        y_buffer = open_buffer(out, x_buffer.ready_on if on_stream is None else on_stream)
        try:
            require_writable(y_buffer, "out")
            if y_buffer.shape != x_buffer.shape:
                raise ValueError(f"out has shape {y_buffer.shape}, x has {x_buffer.shape}")
            if y_dtype is not None and y_buffer.dtype != y_dtype:
                raise ValueError(f"out holds {_dtypes.NAMES[y_buffer.dtype]}, dtype asks for "
                                 f"{_dtypes.NAMES[y_dtype]}")
            _compute(log, x_buffer, y_buffer, algo, handle, on_stream)
        finally:
            y_buffer.release()
    finally:
        x_buffer.release()
    return out


def _in_place(log: bool, x: Any, axis: Any, algo: Algo, stream: Any,
              handle: Optional[Handle]) -> Any:
    on_stream = _cuda.stream_address(stream)
    buffer = open_buffer(x, on_stream)
    try:
        _check_axis(axis, buffer.shape)
        require_writable(buffer, "x")
        _compute(log, buffer, buffer, algo, handle, on_stream)
    finally:
        buffer.release()
    return x


def softmax(x: Any, out: Any = None, *, axis: int = -1, algo: Algo = "auto", stream: Any = None,
            dtype: Any = None, handle: Optional[Handle] = None) -> Any:
    """Softmax of x over its last axis, out of place.

    x       an array of shape (..., N) of float32, float64, float16 or bfloat16: a numpy array, a
            writable buffer such as array.array, or an object with __dlpack__ or
            __cuda_array_interface__, such as a torch or cupy array on the CPU or on a CUDA device.
            A numpy array that is not contiguous, not aligned or in foreign byte order is copied
            first; a CUDA array must be contiguous.
    out     an array of x's shape on x's device, contiguous, to write to; it may be x itself. None
            makes a new array of x's package, where that is numpy, torch or cupy.
    axis    the last axis, -1 or x.ndim - 1. Others are not computed by this release.
    algo    "auto", or an algorithm's name or number; see algorithms().
    stream  the CUDA stream to enqueue on: an integer or a stream object. None takes the stream
            that x's package works on. Not for CPU arrays.
    dtype   the type of the new array: that of x, or float32 for float16 and bfloat16.
    handle  a Handle to use instead of the one kept for x's device.

    Returns out, or the new array.

    On the CPU the call returns when the result is there, and lets other threads run meanwhile. On
    a CUDA device it returns when the work is enqueued:

    - Without `stream`, on the stream that torch, or the array interface (cupy, numba), says x's
      package works on. The work is ordered with the package's own, and x and out may be dropped
      at once. A package that names no stream gets the legacy default stream. An `out` of another
      package is waited for; what that package does with it next is the caller's to order.
    - With `stream`, that stream waits for what produced x (for an array that has
      __cuda_array_interface__ alone, the call itself waits). Reading out only after that stream's
      work, and keeping x and out alive until then, is the caller's part; torch's allocator is
      told, so torch tensors may be dropped.

    Raises TypeError for what is no array or has other elements; ValueError for wrong shapes, axes,
    read-only or not contiguous outputs; NotImplementedError for an axis that is not the last;
    SoftmaxError for what the library refuses.
    """
    return _out_of_place(False, x, out, axis, algo, stream, dtype, handle)


def log_softmax(x: Any, out: Any = None, *, axis: int = -1, algo: Algo = "auto",
                stream: Any = None, dtype: Any = None, handle: Optional[Handle] = None) -> Any:
    """Log-softmax of x over its last axis, out of place; otherwise as softmax()."""
    return _out_of_place(True, x, out, axis, algo, stream, dtype, handle)


def softmax_(x: Any, *, axis: int = -1, algo: Algo = "auto", stream: Any = None,
             handle: Optional[Handle] = None) -> Any:
    """Softmax of x over its last axis, in place; returns x. The arguments are softmax()'s.

    x must be writable, contiguous, aligned to its elements and in native byte order: nothing is
    ever computed in a copy. ValueError or TypeError says what it is not.
    """
    return _in_place(False, x, axis, algo, stream, handle)


def log_softmax_(x: Any, *, axis: int = -1, algo: Algo = "auto", stream: Any = None,
                 handle: Optional[Handle] = None) -> Any:
    """Log-softmax of x over its last axis, in place; otherwise as softmax_()."""
    return _in_place(True, x, axis, algo, stream, handle)
