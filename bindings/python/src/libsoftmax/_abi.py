"""The C interface in ctypes.

Generated from include/softmax.h by bindings/generate.py; do not edit.
"""
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double,
                    c_int32, c_int64, c_size_t, c_uint64, c_void_p)

from ._checked import Address, Int32, Int64, Size

HEADER_VERSION = "0.1.0"

SOFTMAX_VERSION_MAJOR = 0
SOFTMAX_VERSION_MINOR = 1
SOFTMAX_VERSION_PATCH = 0
SOFTMAX_MAX_NDIM = 8
SOFTMAX_SUCCESS = 0
SOFTMAX_STATUS_INVALID_ARGUMENT = 1000
SOFTMAX_STATUS_NULL_POINTER = 1001
SOFTMAX_STATUS_BAD_HANDLE = 1002
SOFTMAX_STATUS_BAD_SHAPE = 1003
SOFTMAX_STATUS_BAD_STRIDE = 1004
SOFTMAX_STATUS_BAD_ENUM = 1005
SOFTMAX_STATUS_STRUCT_SIZE = 1006
SOFTMAX_STATUS_OVERLAP = 1007
SOFTMAX_STATUS_WORKSPACE_TOO_SMALL = 1008
SOFTMAX_STATUS_WRONG_DEVICE = 1009
SOFTMAX_STATUS_NOT_SUPPORTED = 2000
SOFTMAX_STATUS_NOT_SUPPORTED_ALGO = 2001
SOFTMAX_STATUS_NOT_SUPPORTED_DTYPE = 2002
SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT = 2003
SOFTMAX_STATUS_NOT_SUPPORTED_ARCH = 2004
SOFTMAX_STATUS_NOT_SUPPORTED_DRIVER = 2005
SOFTMAX_STATUS_NEWER_FIELD = 2006
SOFTMAX_STATUS_RESOURCE = 3000
SOFTMAX_STATUS_HOST_MEMORY = 3001
SOFTMAX_STATUS_DEVICE_MEMORY = 3002
SOFTMAX_STATUS_CUDA = 4000
SOFTMAX_STATUS_INTERNAL = 5000
SOFTMAX_DEVICE_AUTO = -1
SOFTMAX_DEVICE_CPU = -2
SOFTMAX_DTYPE_F32 = 1
SOFTMAX_DTYPE_F16 = 2
SOFTMAX_DTYPE_BF16 = 3
SOFTMAX_DTYPE_F64 = 4
SOFTMAX_DTYPE_F8_E4M3 = 5
SOFTMAX_DTYPE_F8_E5M2 = 6
SOFTMAX_ALGO_AUTO = 0
SOFTMAX_ALGO_NAIVE = 1
SOFTMAX_ALGO_SHARED = 2
SOFTMAX_ALGO_SHUFFLE = 3
SOFTMAX_ALGO_VECTOR = 4
SOFTMAX_ALGO_ONLINE = 5
SOFTMAX_ALGO_WARP_ONLINE = 6
SOFTMAX_ALGO_WARP = 10
SOFTMAX_ALGO_BLOCK = 11
SOFTMAX_ALGO_TILE = 12
SOFTMAX_ALGO_CLUSTER = 13
SOFTMAX_ALGO_GRID = 14
SOFTMAX_ALGO_COLUMN = 15
SOFTMAX_ALGO_REFERENCE = 1000
SOFTMAX_OP_SOFTMAX = 0
SOFTMAX_OP_LOGSOFTMAX = 1
SOFTMAX_OP_STATS = 2
SOFTMAX_DIRECTION_FORWARD = 0
SOFTMAX_DIRECTION_BACKWARD = 1
SOFTMAX_MASK_NONE = 0
SOFTMAX_MASK_BOOL_KEEP = 1
SOFTMAX_MASK_ADDITIVE = 2
SOFTMAX_MASK_CAUSAL = 3
SOFTMAX_MASK_ROW_LENGTH = 4
SOFTMAX_EMPTY_ROW_NAN = 0
SOFTMAX_EMPTY_ROW_ZERO = 1
SOFTMAX_FLAG_M_ADAPTIVE = 1
SOFTMAX_FLAG_FAST_MATH = 2
SOFTMAX_FLAG_GIVEN_STATS = 4
SOFTMAX_FLAG_TRUST_POINTERS = 8
SOFTMAX_FLAG_ZERO_STRIDES = 16
SOFTMAX_LOG_OFF = 0
SOFTMAX_LOG_ERROR = 1
SOFTMAX_LOG_INFO = 2
SOFTMAX_LOG_DEBUG = 3


class softmax_desc_t(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("flags", c_uint64),
        ("op", c_int32),
        ("direction", c_int32),
        ("x_dtype", c_int32),
        ("y_dtype", c_int32),
        ("ndim", c_int32),
        ("axis", c_int32),
        ("mask_kind", c_int32),
        ("empty_row", c_int32),
        ("shape", c_int64 * 8),
        ("x_stride", c_int64 * 8),
        ("y_stride", c_int64 * 8),
        ("dy_stride", c_int64 * 8),
        ("mask_stride", c_int64 * 8),
        ("causal_offset", c_int64),
        ("scale", c_double),
        ("alignment", c_uint64),
        ("softcap", c_double),
        ("y_scale", c_double),
        ("sink_stride", c_int64 * 8),
        ("dy_dtype", c_int32),
        ("reserved", c_int32),
    ]


class softmax_args_t(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("reserved", c_uint64),
        ("x", c_void_p),
        ("y", c_void_p),
        ("mask", c_void_p),
        ("row_scale", c_void_p),
        ("lse", c_void_p),
        ("row_max", c_void_p),
        ("row_sum", c_void_p),
        ("dy", c_void_p),
        ("dx", c_void_p),
        ("workspace", c_void_p),
        ("workspace_bytes", c_uint64),
        ("sink", c_void_p),
    ]


class softmax_choice_t(Structure):
    _fields_ = [
        ("struct_size", c_uint64),
        ("workspace_bytes", c_uint64),
        ("algo", c_int32),
        ("rows_per_block", c_int32),
        ("threads", c_int32),
        ("cluster", c_int32),
        ("stages", c_int32),
        ("vec_bytes", c_int32),
        ("smem_bytes", c_int64),
        ("kernel", c_char * 64),
        ("reason", c_char * 128),
    ]


softmax_log_fn = CFUNCTYPE(None, c_int32, c_char_p, c_void_p)

# name: (size, {field: offset}) in bytes, as a C compiler lays the structs out.
LAYOUT = {
    "softmax_desc_t": (480, {
        "struct_size": 0,
        "flags": 8,
        "op": 16,
        "direction": 20,
        "x_dtype": 24,
        "y_dtype": 28,
        "ndim": 32,
        "axis": 36,
        "mask_kind": 40,
        "empty_row": 44,
        "shape": 48,
        "x_stride": 112,
        "y_stride": 176,
        "dy_stride": 240,
        "mask_stride": 304,
        "causal_offset": 368,
        "scale": 376,
        "alignment": 384,
        "softcap": 392,
        "y_scale": 400,
        "sink_stride": 408,
        "dy_dtype": 472,
        "reserved": 476,
    }),
    "softmax_args_t": (112, {
        "struct_size": 0,
        "reserved": 8,
        "x": 16,
        "y": 24,
        "mask": 32,
        "row_scale": 40,
        "lse": 48,
        "row_max": 56,
        "row_sum": 64,
        "dy": 72,
        "dx": 80,
        "workspace": 88,
        "workspace_bytes": 96,
        "sink": 104,
    }),
    "softmax_choice_t": (240, {
        "struct_size": 0,
        "workspace_bytes": 8,
        "algo": 16,
        "rows_per_block": 20,
        "threads": 24,
        "cluster": 28,
        "stages": 32,
        "vec_bytes": 36,
        "smem_bytes": 40,
        "kernel": 48,
        "reason": 112,
    }),
}

# name: (restype, argtypes) of every exported function.
FUNCTIONS = {
    "softmax_create": (
        c_int32,
        [POINTER(c_void_p), Int32],
    ),
    "softmax_destroy": (
        c_int32,
        [Address],
    ),
    "softmax_handle_device": (
        c_int32,
        [Address, POINTER(c_int32)],
    ),
    "softmax_handle_description": (
        c_size_t,
        [Address, c_char_p, Size],
    ),
    "softmax_device_count": (
        c_int32,
        [POINTER(c_int32)],
    ),
    "softmax_set_workspace": (
        c_int32,
        [Address, Address, Size],
    ),
    "softmax_forward": (
        c_int32,
        [Address, Int32, Address, Int64, Int64, Address],
    ),
    "logsoftmax_forward": (
        c_int32,
        [Address, Int32, Address, Int64, Int64, Address],
    ),
    "softmax_forward_to": (
        c_int32,
        [Address, Int32, Address, Int32, Address, Int32, Int64, Int64, Address],
    ),
    "logsoftmax_forward_to": (
        c_int32,
        [Address, Int32, Address, Int32, Address, Int32, Int64, Int64, Address],
    ),
    "softmax_desc_init": (
        c_int32,
        [POINTER(softmax_desc_t), Size, Int32, Int32, Int64, Int64],
    ),
    "softmax_desc_check": (
        c_int32,
        [POINTER(softmax_desc_t)],
    ),
    "softmax_execute": (
        c_int32,
        [Address, Int32, POINTER(softmax_desc_t), POINTER(softmax_args_t), Address],
    ),
    "softmax_merge_stats": (
        c_int32,
        [Address, Int64, Int64, Address, Address, Address, Address, Address, Address],
    ),
    "softmax_select": (
        c_int32,
        [Address, Int32, POINTER(softmax_desc_t), POINTER(softmax_choice_t)],
    ),
    "softmax_version": (
        c_int32,
        [],
    ),
    "softmax_version_string": (
        c_char_p,
        [],
    ),
    "softmax_build_info": (
        c_char_p,
        [],
    ),
    "softmax_status_name": (
        c_char_p,
        [Int32],
    ),
    "softmax_status_string": (
        c_char_p,
        [Int32],
    ),
    "softmax_last_error": (
        c_size_t,
        [c_char_p, Size],
    ),
    "softmax_last_cuda_error": (
        c_int32,
        [],
    ),
    "softmax_algo_name": (
        c_char_p,
        [Int32],
    ),
    "softmax_algo_from_name": (
        c_int32,
        [c_char_p, POINTER(c_int32)],
    ),
    "softmax_set_log": (
        c_int32,
        [softmax_log_fn, Address, Int32],
    ),
}
