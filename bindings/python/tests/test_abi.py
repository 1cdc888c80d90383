"""Nothing is cut off on its way into the library: every function is declared, every pointer whole.

Public reports: facebookincubator/AITemplate#85, actions/setup-python#442.
"""
import ctypes
import mmap
import re
from pathlib import Path

import numpy as np
import pytest

import libsoftmax
from libsoftmax import _abi, _library

ROOT = Path(__file__).resolve().parents[3]


def test_every_exported_function_has_argtypes_and_restype():
    names = set(re.findall(r"^\s*(\w+);", (ROOT / "cmake/softmax.map").read_text(), re.M)) - {"*"}
    assert len(names) > 20
    assert names == set(_abi.FUNCTIONS)
    for name, (result, arguments) in _abi.FUNCTIONS.items():
        function = getattr(_library.lib, name)
        assert function.restype is result and result is not None
        assert list(function.argtypes) == arguments
    assert _library.lib.softmax_version_string.restype is ctypes.c_char_p


def test_no_argument_has_a_type_that_cuts_off_silently():
    cutting = {ctypes.c_int, ctypes.c_int32, ctypes.c_int64, ctypes.c_size_t, ctypes.c_uint64,
               ctypes.c_void_p, ctypes.c_long, ctypes.c_longlong}
    for name, (_, arguments) in _abi.FUNCTIONS.items():
        assert not cutting & set(arguments), name


def test_the_symbols_themselves_refuse_what_does_not_fit():
    lib = _library.lib
    for rows in (2**63, 2**64 + 3, -2**63 - 1):
        with pytest.raises(ctypes.ArgumentError, match="does not fit"):
            lib.softmax_forward(None, 0, None, rows, 5, None)
    for pointer in (-1, 2**64):
        with pytest.raises(ctypes.ArgumentError, match="does not fit"):
            lib.softmax_forward(None, 0, pointer, 1, 1, None)
    with pytest.raises(ctypes.ArgumentError, match="does not fit"):
        lib.softmax_forward(None, 2**31, None, 1, 1, None)
    with pytest.raises(ctypes.ArgumentError):
        lib.softmax_forward(None, 0, None, 1.5, 1, None)
    with pytest.raises(TypeError):
        lib.softmax_forward(None, 0, None)


def test_counts_beyond_32_bits_arrive_whole():
    desc = _abi.softmax_desc_t()
    status = _library.lib.softmax_desc_init(ctypes.byref(desc), ctypes.sizeof(desc), 0, 1,
                                            2**40 + 1, 2**33 + 7)
    assert (status, desc.shape[0], desc.shape[1]) == (0, 2**40 + 1, 2**33 + 7)
    with pytest.raises(libsoftmax.SoftmaxError) as caught:  # M * N does not fit 63 bits
        libsoftmax.select(2**40, 2**40, device="cpu")
    assert caught.value.name == "SOFTMAX_STATUS_BAD_SHAPE"
    assert libsoftmax.select(2**33, 8, device="cpu").algo == libsoftmax.select(
        1, 8, device="cpu").algo


@pytest.mark.parametrize("where", ["below 2**31", "anywhere"])
def test_addresses_below_and_above_2_to_the_31_work(where):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                          ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    map_32bit = 0x40 if where == "below 2**31" else 0
    address = libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_WRITE,
                        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | map_32bit, -1, 0)
    if address in (None, 2**64 - 1):
        pytest.skip("no such address to be had")
    assert (address < 2**31) == (where == "below 2**31")
    try:
        x = np.frombuffer((ctypes.c_float * 12).from_address(address), "float32").reshape(3, 4)
        x[:] = np.arange(12).reshape(3, 4)
        expected = libsoftmax.softmax(np.arange(12, dtype="float32").reshape(3, 4))
        assert libsoftmax.softmax_(x) is x
        assert (x == expected).all()
        del x
    finally:
        libc.munmap(address, 4096)


def test_constants_and_layouts_are_those_of_this_library():
    for name, number in vars(_abi).items():
        if name == "SOFTMAX_SUCCESS" or name.startswith("SOFTMAX_STATUS_"):
            assert _library.lib.softmax_status_name(number) == name.encode()
        if name.startswith("SOFTMAX_ALGO_"):
            stem = name[len("SOFTMAX_ALGO_"):].lower()
            assert libsoftmax.algorithms()[stem] == number
    for name, (size, offsets) in _abi.LAYOUT.items():
        struct = getattr(_abi, name)
        assert ctypes.sizeof(struct) == size
        assert {field: getattr(struct, field).offset for field, *_ in struct._fields_} == offsets


def test_the_version_is_the_header_s_everywhere():
    header = (ROOT / "include/softmax.h").read_text()
    parts = [re.search(rf"#define SOFTMAX_VERSION_{part} (\d+)", header).group(1)
             for part in ("MAJOR", "MINOR", "PATCH")]
    assert libsoftmax.__version__ == libsoftmax.version() == ".".join(parts)
    abi = re.search(r"set\(SOFTMAX_ABI_VERSION (\d+)\)", (ROOT / "CMakeLists.txt").read_text())
    assert _library.FILE_NAMES[0] == f"libsoftmax.so.{abi.group(1)}"
