"""Finds the shared library, loads it, and makes sure that it is the one this package knows."""
from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import List

from . import _abi
from ._errors import SoftmaxError

ENVIRONMENT_VARIABLE = "LIBSOFTMAX_PATH"
FILE_NAMES = ("libsoftmax.so.0", "libsoftmax.so")  # the first carries the ABI number


def _open() -> ctypes.CDLL:
    path = os.environ.get(ENVIRONMENT_VARIABLE)
    if path:
        if not os.path.isfile(path):
            raise ImportError(f"{ENVIRONMENT_VARIABLE} is set to {path!r}, and there is no such "
                              "file; set it to the path of libsoftmax.so itself, or unset it")
        try:
            return ctypes.CDLL(os.path.abspath(path))
        except OSError as error:
            raise ImportError(f"{ENVIRONMENT_VARIABLE} is set to {path!r}, which cannot be "
                              f"loaded: {error}") from error
    tried: List[str] = []
    folder = Path(__file__).resolve().parent
    for name in FILE_NAMES:
        beside = folder / name
        if not beside.is_file():
            tried.append(f"{beside}: no such file")
            continue
        try:
            return ctypes.CDLL(str(beside))
        except OSError as error:
            tried.append(str(error))
    for name in FILE_NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            tried.append(str(error))
    raise ImportError(
        f"the libsoftmax library was not found. Install it, or set {ENVIRONMENT_VARIABLE} to the "
        "path of libsoftmax.so. Tried:\n  " + "\n  ".join(tried))


def declare(library: ctypes.CDLL) -> None:
    """Sets restype and argtypes of every function of the header."""
    for name, (result, arguments) in _abi.FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{library._name} has no function {name}: it is not libsoftmax, or "
                              f"older than {_abi.HEADER_VERSION}; install a newer one") from None
        function.restype = result
        function.argtypes = arguments


def check_version(library: ctypes.CDLL) -> None:
    """Refuses another major version, and a library older than the header of this package."""
    number = library.softmax_version()
    found = (number // 10000, number // 100 % 100)
    if found[0] != _abi.SOFTMAX_VERSION_MAJOR or found[1] < _abi.SOFTMAX_VERSION_MINOR:
        text = library.softmax_version_string().decode()
        raise ImportError(
            f"{library._name} is libsoftmax {text}; this package was made for "
            f"{_abi.HEADER_VERSION} and needs {_abi.SOFTMAX_VERSION_MAJOR}."
            f"{_abi.SOFTMAX_VERSION_MINOR} or later with the same major version")


def check_layout(library: ctypes.CDLL) -> None:
    """Lets the library fill a struct, and looks where the values have landed."""
    desc = _abi.softmax_desc_t()
    size = ctypes.sizeof(desc)
    status = library.softmax_desc_init(ctypes.byref(desc), size, _abi.SOFTMAX_OP_LOGSOFTMAX,
                                       _abi.SOFTMAX_DTYPE_F16, 2**40 + 3, 2**33 + 5)
    found = (status, desc.struct_size, desc.op, desc.x_dtype, desc.y_dtype, desc.ndim,
             desc.shape[0], desc.shape[1], desc.scale)
    expected = (_abi.SOFTMAX_SUCCESS, size, _abi.SOFTMAX_OP_LOGSOFTMAX, _abi.SOFTMAX_DTYPE_F16,
                _abi.SOFTMAX_DTYPE_F16, 2, 2**40 + 3, 2**33 + 5, 1.0)
    if found != expected:
        raise ImportError(f"{library._name} has another ABI than this package: a descriptor came "
                          f"back as {found}, not {expected}; install matching versions")


def load() -> ctypes.CDLL:
    library = _open()
    declare(library)
    check_version(library)
    check_layout(library)
    return library


lib = load()


def check(status: int) -> None:
    """Raises SoftmaxError, with the library's own sentence, unless status is success."""
    if status == _abi.SOFTMAX_SUCCESS:
        return
    buffer = ctypes.create_string_buffer(1024)
    lib.softmax_last_error(buffer, len(buffer))
    raise SoftmaxError(status, lib.softmax_status_name(status).decode(),
                       buffer.value.decode(errors="replace"), lib.softmax_last_cuda_error())
