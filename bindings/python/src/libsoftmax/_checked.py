"""Argument types for ctypes that refuse what does not fit.

ctypes' own integers keep the low bits of a number that is too large and say nothing: a count of
2**64 + 3 would arrive as 3. These raise instead.
"""
from __future__ import annotations

import ctypes
import operator
from typing import Any


class _Checked:
    _ctype: type
    _low: int
    _high: int

    @classmethod
    def checked(cls, value: Any) -> int:
        """The value as an integer; TypeError or OverflowError where it is none that fits."""
        number = operator.index(value)
        if not cls._low <= number <= cls._high:
            raise OverflowError(f"{number} does not fit {cls._ctype.__name__}")
        return number

    @classmethod
    def from_param(cls, value: Any) -> Any:
        return cls._ctype(cls.checked(value))


class Int32(_Checked):
    _ctype, _low, _high = ctypes.c_int32, -(2**31), 2**31 - 1


class Int64(_Checked):
    _ctype, _low, _high = ctypes.c_int64, -(2**63), 2**63 - 1


class Size(_Checked):
    _ctype, _low, _high = ctypes.c_size_t, 0, 2 ** (8 * ctypes.sizeof(ctypes.c_size_t)) - 1


class Address(_Checked):
    """A pointer as an integer, or None for NULL."""

    _ctype, _low, _high = ctypes.c_void_p, 0, 2 ** (8 * ctypes.sizeof(ctypes.c_void_p)) - 1

    @classmethod
    def from_param(cls, value: Any) -> Any:
        if isinstance(value, ctypes.c_void_p):
            return value
        return ctypes.c_void_p(None) if value is None else super().from_param(value)
