// The C interface.
//
// Generated from include/softmax.h by bindings/generate.py; do not edit.

use core::ffi::c_void;
use core::mem::{align_of, size_of};
use std::os::raw::c_char;

pub const HEADER_VERSION: &str = "0.1.0";

pub type softmax_status_t = i32;
pub type softmax_algo_t = i32;
pub type softmax_dtype_t = i32;

/// Opaque: what a [`softmax_handle_t`] points to.
#[repr(C)]
pub struct softmax_context {
    _private: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}
pub type softmax_handle_t = *mut softmax_context;

/// Opaque: what a [`softmax_stream_t`] points to.
#[repr(C)]
pub struct CUstream_st {
    _private: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}
pub type softmax_stream_t = *mut CUstream_st;

pub type softmax_log_fn =
    unsafe extern "C" fn(level: i32, message: *const c_char, user: *mut c_void);

pub const SOFTMAX_VERSION_MAJOR: i32 = 0;
pub const SOFTMAX_VERSION_MINOR: i32 = 1;
pub const SOFTMAX_VERSION_PATCH: i32 = 0;
pub const SOFTMAX_MAX_NDIM: usize = 8;
pub const SOFTMAX_SUCCESS: softmax_status_t = 0;
pub const SOFTMAX_STATUS_INVALID_ARGUMENT: softmax_status_t = 1000;
pub const SOFTMAX_STATUS_NULL_POINTER: softmax_status_t = 1001;
pub const SOFTMAX_STATUS_BAD_HANDLE: softmax_status_t = 1002;
pub const SOFTMAX_STATUS_BAD_SHAPE: softmax_status_t = 1003;
pub const SOFTMAX_STATUS_BAD_STRIDE: softmax_status_t = 1004;
pub const SOFTMAX_STATUS_BAD_ENUM: softmax_status_t = 1005;
pub const SOFTMAX_STATUS_STRUCT_SIZE: softmax_status_t = 1006;
pub const SOFTMAX_STATUS_OVERLAP: softmax_status_t = 1007;
pub const SOFTMAX_STATUS_WORKSPACE_TOO_SMALL: softmax_status_t = 1008;
pub const SOFTMAX_STATUS_WRONG_DEVICE: softmax_status_t = 1009;
pub const SOFTMAX_STATUS_NOT_SUPPORTED: softmax_status_t = 2000;
pub const SOFTMAX_STATUS_NOT_SUPPORTED_ALGO: softmax_status_t = 2001;
pub const SOFTMAX_STATUS_NOT_SUPPORTED_DTYPE: softmax_status_t = 2002;
pub const SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT: softmax_status_t = 2003;
pub const SOFTMAX_STATUS_NOT_SUPPORTED_ARCH: softmax_status_t = 2004;
pub const SOFTMAX_STATUS_NOT_SUPPORTED_DRIVER: softmax_status_t = 2005;
pub const SOFTMAX_STATUS_NEWER_FIELD: softmax_status_t = 2006;
pub const SOFTMAX_STATUS_RESOURCE: softmax_status_t = 3000;
pub const SOFTMAX_STATUS_HOST_MEMORY: softmax_status_t = 3001;
pub const SOFTMAX_STATUS_DEVICE_MEMORY: softmax_status_t = 3002;
pub const SOFTMAX_STATUS_CUDA: softmax_status_t = 4000;
pub const SOFTMAX_STATUS_INTERNAL: softmax_status_t = 5000;
pub const SOFTMAX_DEVICE_AUTO: i32 = -1;
pub const SOFTMAX_DEVICE_CPU: i32 = -2;
pub const SOFTMAX_DTYPE_F32: softmax_dtype_t = 1;
pub const SOFTMAX_DTYPE_F16: softmax_dtype_t = 2;
pub const SOFTMAX_DTYPE_BF16: softmax_dtype_t = 3;
pub const SOFTMAX_DTYPE_F64: softmax_dtype_t = 4;
pub const SOFTMAX_DTYPE_F8_E4M3: softmax_dtype_t = 5;
pub const SOFTMAX_DTYPE_F8_E5M2: softmax_dtype_t = 6;
pub const SOFTMAX_ALGO_AUTO: softmax_algo_t = 0;
pub const SOFTMAX_ALGO_NAIVE: softmax_algo_t = 1;
pub const SOFTMAX_ALGO_SHARED: softmax_algo_t = 2;
pub const SOFTMAX_ALGO_SHUFFLE: softmax_algo_t = 3;
pub const SOFTMAX_ALGO_VECTOR: softmax_algo_t = 4;
pub const SOFTMAX_ALGO_ONLINE: softmax_algo_t = 5;
pub const SOFTMAX_ALGO_WARP_ONLINE: softmax_algo_t = 6;
pub const SOFTMAX_ALGO_WARP: softmax_algo_t = 10;
pub const SOFTMAX_ALGO_BLOCK: softmax_algo_t = 11;
pub const SOFTMAX_ALGO_TILE: softmax_algo_t = 12;
pub const SOFTMAX_ALGO_CLUSTER: softmax_algo_t = 13;
pub const SOFTMAX_ALGO_GRID: softmax_algo_t = 14;
pub const SOFTMAX_ALGO_COLUMN: softmax_algo_t = 15;
pub const SOFTMAX_ALGO_REFERENCE: softmax_algo_t = 1000;
pub const SOFTMAX_OP_SOFTMAX: i32 = 0;
pub const SOFTMAX_OP_LOGSOFTMAX: i32 = 1;
pub const SOFTMAX_OP_STATS: i32 = 2;
pub const SOFTMAX_DIRECTION_FORWARD: i32 = 0;
pub const SOFTMAX_DIRECTION_BACKWARD: i32 = 1;
pub const SOFTMAX_MASK_NONE: i32 = 0;
pub const SOFTMAX_MASK_BOOL_KEEP: i32 = 1;
pub const SOFTMAX_MASK_ADDITIVE: i32 = 2;
pub const SOFTMAX_MASK_CAUSAL: i32 = 3;
pub const SOFTMAX_MASK_ROW_LENGTH: i32 = 4;
pub const SOFTMAX_EMPTY_ROW_NAN: i32 = 0;
pub const SOFTMAX_EMPTY_ROW_ZERO: i32 = 1;
pub const SOFTMAX_FLAG_M_ADAPTIVE: u64 = 1;
pub const SOFTMAX_FLAG_FAST_MATH: u64 = 2;
pub const SOFTMAX_FLAG_GIVEN_STATS: u64 = 4;
pub const SOFTMAX_FLAG_TRUST_POINTERS: u64 = 8;
pub const SOFTMAX_FLAG_ZERO_STRIDES: u64 = 16;
pub const SOFTMAX_LOG_OFF: i32 = 0;
pub const SOFTMAX_LOG_ERROR: i32 = 1;
pub const SOFTMAX_LOG_INFO: i32 = 2;
pub const SOFTMAX_LOG_DEBUG: i32 = 3;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct softmax_desc_t {
    pub struct_size: u64,
    pub flags: u64,
    pub op: i32,
    pub direction: i32,
    pub x_dtype: i32,
    pub y_dtype: i32,
    pub ndim: i32,
    pub axis: i32,
    pub mask_kind: i32,
    pub empty_row: i32,
    pub shape: [i64; 8],
    pub x_stride: [i64; 8],
    pub y_stride: [i64; 8],
    pub dy_stride: [i64; 8],
    pub mask_stride: [i64; 8],
    pub causal_offset: i64,
    pub scale: f64,
    pub alignment: u64,
    pub softcap: f64,
    pub y_scale: f64,
    pub sink_stride: [i64; 8],
    pub dy_dtype: i32,
    pub reserved: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct softmax_args_t {
    pub struct_size: u64,
    pub reserved: u64,
    pub x: *const c_void,
    pub y: *mut c_void,
    pub mask: *const c_void,
    pub row_scale: *const f32,
    pub lse: *mut f32,
    pub row_max: *mut f32,
    pub row_sum: *mut f32,
    pub dy: *const c_void,
    pub dx: *mut c_void,
    pub workspace: *mut c_void,
    pub workspace_bytes: u64,
    pub sink: *const f32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct softmax_choice_t {
    pub struct_size: u64,
    pub workspace_bytes: u64,
    pub algo: i32,
    pub rows_per_block: i32,
    pub threads: i32,
    pub cluster: i32,
    pub stages: i32,
    pub vec_bytes: i32,
    pub smem_bytes: i64,
    pub kernel: [c_char; 64],
    pub reason: [c_char; 128],
}

const _: () = assert!(size_of::<usize>() == 8); // as size_t

#[cfg(test)]
macro_rules! offset_of {
    ($type:ty, $field:ident) => {{
        let value = core::mem::MaybeUninit::<$type>::uninit();
        let start = value.as_ptr();
        unsafe { core::ptr::addr_of!((*start).$field) as usize - start as usize }
    }};
}

const _: () = assert!(size_of::<softmax_desc_t>() == 480);
const _: () = assert!(align_of::<softmax_desc_t>() == 8);

#[test]
fn fields_of_softmax_desc_t_are_where_c_has_them() {
    assert_eq!(offset_of!(softmax_desc_t, struct_size), 0);
    assert_eq!(offset_of!(softmax_desc_t, flags), 8);
    assert_eq!(offset_of!(softmax_desc_t, op), 16);
    assert_eq!(offset_of!(softmax_desc_t, direction), 20);
    assert_eq!(offset_of!(softmax_desc_t, x_dtype), 24);
    assert_eq!(offset_of!(softmax_desc_t, y_dtype), 28);
    assert_eq!(offset_of!(softmax_desc_t, ndim), 32);
    assert_eq!(offset_of!(softmax_desc_t, axis), 36);
    assert_eq!(offset_of!(softmax_desc_t, mask_kind), 40);
    assert_eq!(offset_of!(softmax_desc_t, empty_row), 44);
    assert_eq!(offset_of!(softmax_desc_t, shape), 48);
    assert_eq!(offset_of!(softmax_desc_t, x_stride), 112);
    assert_eq!(offset_of!(softmax_desc_t, y_stride), 176);
    assert_eq!(offset_of!(softmax_desc_t, dy_stride), 240);
    assert_eq!(offset_of!(softmax_desc_t, mask_stride), 304);
    assert_eq!(offset_of!(softmax_desc_t, causal_offset), 368);
    assert_eq!(offset_of!(softmax_desc_t, scale), 376);
    assert_eq!(offset_of!(softmax_desc_t, alignment), 384);
    assert_eq!(offset_of!(softmax_desc_t, softcap), 392);
    assert_eq!(offset_of!(softmax_desc_t, y_scale), 400);
    assert_eq!(offset_of!(softmax_desc_t, sink_stride), 408);
    assert_eq!(offset_of!(softmax_desc_t, dy_dtype), 472);
    assert_eq!(offset_of!(softmax_desc_t, reserved), 476);
}

const _: () = assert!(size_of::<softmax_args_t>() == 112);
const _: () = assert!(align_of::<softmax_args_t>() == 8);

#[test]
fn fields_of_softmax_args_t_are_where_c_has_them() {
    assert_eq!(offset_of!(softmax_args_t, struct_size), 0);
    assert_eq!(offset_of!(softmax_args_t, reserved), 8);
    assert_eq!(offset_of!(softmax_args_t, x), 16);
    assert_eq!(offset_of!(softmax_args_t, y), 24);
    assert_eq!(offset_of!(softmax_args_t, mask), 32);
    assert_eq!(offset_of!(softmax_args_t, row_scale), 40);
    assert_eq!(offset_of!(softmax_args_t, lse), 48);
    assert_eq!(offset_of!(softmax_args_t, row_max), 56);
    assert_eq!(offset_of!(softmax_args_t, row_sum), 64);
    assert_eq!(offset_of!(softmax_args_t, dy), 72);
    assert_eq!(offset_of!(softmax_args_t, dx), 80);
    assert_eq!(offset_of!(softmax_args_t, workspace), 88);
    assert_eq!(offset_of!(softmax_args_t, workspace_bytes), 96);
    assert_eq!(offset_of!(softmax_args_t, sink), 104);
}

const _: () = assert!(size_of::<softmax_choice_t>() == 240);
const _: () = assert!(align_of::<softmax_choice_t>() == 8);

#[test]
fn fields_of_softmax_choice_t_are_where_c_has_them() {
    assert_eq!(offset_of!(softmax_choice_t, struct_size), 0);
    assert_eq!(offset_of!(softmax_choice_t, workspace_bytes), 8);
    assert_eq!(offset_of!(softmax_choice_t, algo), 16);
    assert_eq!(offset_of!(softmax_choice_t, rows_per_block), 20);
    assert_eq!(offset_of!(softmax_choice_t, threads), 24);
    assert_eq!(offset_of!(softmax_choice_t, cluster), 28);
    assert_eq!(offset_of!(softmax_choice_t, stages), 32);
    assert_eq!(offset_of!(softmax_choice_t, vec_bytes), 36);
    assert_eq!(offset_of!(softmax_choice_t, smem_bytes), 40);
    assert_eq!(offset_of!(softmax_choice_t, kernel), 48);
    assert_eq!(offset_of!(softmax_choice_t, reason), 112);
}

extern "C" {
    pub fn softmax_create(handle: *mut softmax_handle_t, device: i32) -> softmax_status_t;
    pub fn softmax_destroy(handle: softmax_handle_t) -> softmax_status_t;
    pub fn softmax_handle_device(handle: softmax_handle_t, device: *mut i32) -> softmax_status_t;
    pub fn softmax_handle_description(
        handle: softmax_handle_t,
        buf: *mut c_char,
        cap: usize,
    ) -> usize;
    pub fn softmax_device_count(count: *mut i32) -> softmax_status_t;
    pub fn softmax_set_workspace(
        handle: softmax_handle_t,
        ptr: *mut c_void,
        bytes: usize,
    ) -> softmax_status_t;
    pub fn softmax_forward(
        handle: softmax_handle_t,
        algo: softmax_algo_t,
        ptr: *mut f32,
        M: i64,
        N: i64,
        stream: softmax_stream_t,
    ) -> softmax_status_t;
    pub fn logsoftmax_forward(
        handle: softmax_handle_t,
        algo: softmax_algo_t,
        ptr: *mut f32,
        M: i64,
        N: i64,
        stream: softmax_stream_t,
    ) -> softmax_status_t;
    pub fn softmax_forward_to(
        handle: softmax_handle_t,
        algo: softmax_algo_t,
        x: *const c_void,
        x_dtype: softmax_dtype_t,
        y: *mut c_void,
        y_dtype: softmax_dtype_t,
        M: i64,
        N: i64,
        stream: softmax_stream_t,
    ) -> softmax_status_t;
    pub fn logsoftmax_forward_to(
        handle: softmax_handle_t,
        algo: softmax_algo_t,
        x: *const c_void,
        x_dtype: softmax_dtype_t,
        y: *mut c_void,
        y_dtype: softmax_dtype_t,
        M: i64,
        N: i64,
        stream: softmax_stream_t,
    ) -> softmax_status_t;
    pub fn softmax_desc_init(
        desc: *mut softmax_desc_t,
        struct_size: usize,
        op: i32,
        dtype: softmax_dtype_t,
        M: i64,
        N: i64,
    ) -> softmax_status_t;
    pub fn softmax_desc_check(desc: *const softmax_desc_t) -> softmax_status_t;
    pub fn softmax_execute(
        handle: softmax_handle_t,
        algo: softmax_algo_t,
        desc: *const softmax_desc_t,
        args: *const softmax_args_t,
        stream: softmax_stream_t,
    ) -> softmax_status_t;
    pub fn softmax_merge_stats(
        handle: softmax_handle_t,
        parts: i64,
        rows: i64,
        part_max: *const f32,
        part_sum: *const f32,
        row_max: *mut f32,
        row_sum: *mut f32,
        lse: *mut f32,
        stream: softmax_stream_t,
    ) -> softmax_status_t;
    pub fn softmax_select(
        handle: softmax_handle_t,
        algo: softmax_algo_t,
        desc: *const softmax_desc_t,
        out: *mut softmax_choice_t,
    ) -> softmax_status_t;
    pub fn softmax_version() -> i32;
    pub fn softmax_version_string() -> *const c_char;
    pub fn softmax_build_info() -> *const c_char;
    pub fn softmax_status_name(status: softmax_status_t) -> *const c_char;
    pub fn softmax_status_string(status: softmax_status_t) -> *const c_char;
    pub fn softmax_last_error(buf: *mut c_char, cap: usize) -> usize;
    pub fn softmax_last_cuda_error() -> i32;
    pub fn softmax_algo_name(algo: softmax_algo_t) -> *const c_char;
    pub fn softmax_algo_from_name(
        name: *const c_char,
        algo: *mut softmax_algo_t,
    ) -> softmax_status_t;
    pub fn softmax_set_log(
        fn_: Option<softmax_log_fn>,
        user: *mut c_void,
        level: i32,
    ) -> softmax_status_t;
}
