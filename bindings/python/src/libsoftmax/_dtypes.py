"""The data types that the library computes in, and the names that others give them."""
from __future__ import annotations

import sys
from typing import Optional

from . import _abi

NAMES = {
    _abi.SOFTMAX_DTYPE_F32: "float32",
    _abi.SOFTMAX_DTYPE_F16: "float16",
    _abi.SOFTMAX_DTYPE_BF16: "bfloat16",
    _abi.SOFTMAX_DTYPE_F64: "float64",
}
ITEM_BYTES = {
    _abi.SOFTMAX_DTYPE_F32: 4,
    _abi.SOFTMAX_DTYPE_F16: 2,
    _abi.SOFTMAX_DTYPE_BF16: 2,
    _abi.SOFTMAX_DTYPE_F64: 8,
}
_CODES = {name: code for code, name in NAMES.items()}
_CODES.update(f32=_abi.SOFTMAX_DTYPE_F32, f16=_abi.SOFTMAX_DTYPE_F16,
              bf16=_abi.SOFTMAX_DTYPE_BF16, f64=_abi.SOFTMAX_DTYPE_F64)
SUPPORTED = "float32, float64, float16 and bfloat16"
NATIVE_ORDER = "<" if sys.byteorder == "little" else ">"


def unsupported(what: str) -> TypeError:
    return TypeError(f"elements of type {what} are not supported, only {SUPPORTED} are; "
                     "convert first, for example with x.astype('float32')")


def code_of(dtype: object) -> int:
    """The number of "float32", numpy.float32, numpy.dtype("f4"), torch.float32 and the like."""
    name: Optional[str] = None
    if isinstance(dtype, str):
        name = dtype
    elif isinstance(dtype, type):
        name = dtype.__name__
    else:
        name = getattr(dtype, "name", None) or str(dtype)
    code = _CODES.get(str(name).rsplit(".", 1)[-1])
    if code is None:
        raise unsupported(repr(dtype))
    byte_order = getattr(dtype, "byteorder", "=")
    if byte_order in ("<", ">") and byte_order != NATIVE_ORDER:
        raise unsupported(f"{name} in foreign byte order")
    return code


def code_of_typestr(typestr: str, name: str = "") -> Optional[int]:
    """The number of an array interface's typestr such as "<f4"; None where there is none.

    `name` is the name that the producer's own dtype has: bfloat16 has no typestr of its own.
    """
    if name == "bfloat16":
        return _abi.SOFTMAX_DTYPE_BF16
    order, kind, size = typestr[:1], typestr[1:2], typestr[2:]
    if kind != "f" or order not in (NATIVE_ORDER, "=", "|"):
        return None
    return {"4": _abi.SOFTMAX_DTYPE_F32, "2": _abi.SOFTMAX_DTYPE_F16,
            "8": _abi.SOFTMAX_DTYPE_F64}.get(size)
