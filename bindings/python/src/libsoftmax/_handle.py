"""Handles: a device with its properties, and one kept for each device that is used."""
from __future__ import annotations

import ctypes
import re
import threading
from typing import Any, Dict, NamedTuple, Optional, Union

from . import _abi, _dtypes
from ._checked import Int32, Int64
from ._library import check, lib

Device = Union[str, int]
Algo = Union[str, int]


class Choice(NamedTuple):
    """What would run for a problem, and why. See softmax_choice_t in softmax.h."""

    algo: str
    kernel: str
    reason: str
    workspace_bytes: int
    rows_per_block: int
    threads: int
    cluster: int
    stages: int
    vec_bytes: int
    smem_bytes: int


def device_number(device: Device) -> int:
    """The library's number of "auto", "cpu", "cuda", "cuda:1" or an ordinal."""
    if isinstance(device, str):
        text = device.lower()
        if text == "auto":
            return _abi.SOFTMAX_DEVICE_AUTO
        if text == "cpu":
            return _abi.SOFTMAX_DEVICE_CPU
        match = re.fullmatch(r"cuda(?::(\d+))?", text)
        if match is None:
            raise ValueError(f"device {device!r} is none of 'auto', 'cpu', 'cuda' and 'cuda:N'")
        return int(match.group(1) or 0)
    if isinstance(device, bool):
        raise TypeError("device must be a string or an ordinal, not a bool")
    try:
        return Int32.checked(device)
    except TypeError:
        raise TypeError(f"device must be a string or an ordinal, not {type(device).__name__}"
                        ) from None


def algo_number(algo: Algo) -> int:
    """The library's number of an algorithm's name, in any case; a number stays as it is."""
    if isinstance(algo, str):
        number = ctypes.c_int32()
        check(lib.softmax_algo_from_name(algo.encode(), ctypes.byref(number)))
        return number.value
    if isinstance(algo, bool):
        raise TypeError("algo must be a name or a number, not a bool")
    try:
        return Int32.checked(algo)
    except TypeError:
        raise TypeError(f"algo must be a name or a number, not {type(algo).__name__}") from None


class Handle:
    """Computes on one device: "auto" (a CUDA device if one is usable, else the CPU), "cpu",
    "cuda:N", or N for a CUDA ordinal.

    A handle may be used from any number of threads at once; close it when none of them does. It
    is a context manager, and closes itself when it is collected. The functions of this package
    keep a handle for each device, so that most programs need none of their own.

    Raises SoftmaxError where the device does not exist or cannot be used.
    """

    def __init__(self, device: Device = "auto") -> None:
        self._address: Optional[int] = None
        pointer = ctypes.c_void_p()
        check(lib.softmax_create(ctypes.byref(pointer), device_number(device)))
        self._address = pointer.value
        ordinal = ctypes.c_int32()
        check(lib.softmax_handle_device(pointer, ctypes.byref(ordinal)))
        self._ordinal = ordinal.value

    @property
    def address(self) -> int:
        """The softmax_handle_t, as an integer. ValueError once the handle is closed."""
        if self._address is None:
            raise ValueError("the handle is closed")
        return self._address

    @property
    def device(self) -> str:
        """"cpu" or "cuda:N"."""
        if self._ordinal == _abi.SOFTMAX_DEVICE_CPU:
            return "cpu"
        return f"cuda:{self._ordinal}"

    @property
    def description(self) -> str:
        """One line about the device, for people."""
        buffer = ctypes.create_string_buffer(512)
        lib.softmax_handle_description(self.address, buffer, len(buffer))
        return buffer.value.decode(errors="replace")

    def select(self, M: int, N: int, *, dtype: Any = "float32", out_dtype: Any = None,
               log: bool = False, algo: Algo = "auto") -> Choice:
        """What would run for M rows of N elements on this device, and why. Runs nothing.

        Raises SoftmaxError where nothing can run it, with the reason.
        """
        desc = _abi.softmax_desc_t()
        op = _abi.SOFTMAX_OP_LOGSOFTMAX if log else _abi.SOFTMAX_OP_SOFTMAX
        check(lib.softmax_desc_init(ctypes.byref(desc), ctypes.sizeof(desc), op,
                                    _dtypes.code_of(dtype), Int64.checked(M), Int64.checked(N)))
        if out_dtype is not None:
            desc.y_dtype = _dtypes.code_of(out_dtype)
        choice = _abi.softmax_choice_t(struct_size=ctypes.sizeof(_abi.softmax_choice_t))
        check(lib.softmax_select(self.address, algo_number(algo), ctypes.byref(desc),
                                 ctypes.byref(choice)))
        return Choice(lib.softmax_algo_name(choice.algo).decode(), choice.kernel.decode(),
                      choice.reason.decode(errors="replace"), choice.workspace_bytes,
                      choice.rows_per_block, choice.threads, choice.cluster, choice.stages,
                      choice.vec_bytes, choice.smem_bytes)

    def close(self) -> None:
        """Frees the handle. Work that was enqueued goes on. A second call does nothing."""
        address, self._address = self._address, None
        if address is not None:
            check(lib.softmax_destroy(address))

    def __enter__(self) -> "Handle":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        address, self._address = getattr(self, "_address", None), None
        # While the interpreter shuts down, the module's names may be gone.
        if address is not None and lib is not None:
            lib.softmax_destroy(address)

    def __repr__(self) -> str:
        state = self.device if self._address is not None else "closed"
        return f"<libsoftmax.Handle {state}>"


_defaults: Dict[int, Handle] = {}
_defaults_lock = threading.Lock()


def default_handle(device: int) -> Handle:
    """The handle that this package keeps for `device`, one of the library's numbers."""
    handle = _defaults.get(device)
    if handle is None:
        with _defaults_lock:
            handle = _defaults.get(device)
            if handle is None:
                handle = Handle(device)
                # AUTO stands for whatever device is current at the call: it is not kept.
                if device != _abi.SOFTMAX_DEVICE_AUTO:
                    _defaults[device] = handle
    return handle
