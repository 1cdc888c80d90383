//! Softmax and log-softmax over the rows of a matrix, on NVIDIA GPUs and the CPU.
//!
//! ```
//! use softmax::{Device, Handle};
//!
//! # fn main() -> Result<(), softmax::Error> {
//! let handle = Handle::new(Device::Cpu)?;
//! let mut logits = [1.0f32, 2.0, 3.0, 0.0, 0.0, 0.0];
//! handle.softmax_in_place(&mut logits, 2, 3)?;
//! assert_eq!(logits[3], 1.0 / 3.0);
//! # Ok(())
//! # }
//! ```
//!
//! Matrices are row-major and contiguous, `rows * cols` elements. What is computed, how exactly, and
//! what happens to NaN and infinities is said in `softmax.h`, the library's specification.
//!
//! A [`Handle`] is a device with its properties. It is `Send` and `Sync`: any number of threads may
//! use one at once. Slices are host memory and need a CPU handle; a CUDA handle refuses them with
//! an error. The `_device` functions take device pointers and a stream, and are unsafe.

mod choice;
mod element;
mod error;
mod half;
mod handle;

pub use choice::{Algo, Choice, Op};
pub use element::{Element, StoredAs};
pub use error::Error;
pub use half::{Bf16, F16};
pub use handle::{Call, Device, Handle};
pub use softmax_sys as sys;

use std::ffi::CStr;

/// The version of the library in use, such as `"0.1.0"`.
pub fn version() -> &'static str {
    static_text(unsafe { sys::softmax_version_string() })
}

/// One line about the library's build: source id, CUDA, GPU architectures, compiler and SIMD.
pub fn build_info() -> &'static str {
    static_text(unsafe { sys::softmax_build_info() })
}

/// How many CUDA devices there are: 0 without a driver, or in a build without CUDA.
pub fn device_count() -> Result<u32, Error> {
    let mut count = 0;
    error::check(unsafe { sys::softmax_device_count(&mut count) })?;
    Ok(u32::try_from(count).unwrap_or(0))
}

/// A static string of the library, which is never NULL and is ASCII.
fn static_text(text: *const std::os::raw::c_char) -> &'static str {
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}
