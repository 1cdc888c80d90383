//! The element types, and which may be stored as which.
use crate::{sys, Bf16, F16};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for crate::F16 {}
    impl Sealed for crate::Bf16 {}
}

/// A type that the library computes on: `f32`, `f64`, [`F16`] and [`Bf16`].
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// `SOFTMAX_DTYPE_*`.
    const DTYPE: sys::softmax_dtype_t;
}

impl Element for f32 {
    const DTYPE: sys::softmax_dtype_t = sys::SOFTMAX_DTYPE_F32;
}
impl Element for f64 {
    const DTYPE: sys::softmax_dtype_t = sys::SOFTMAX_DTYPE_F64;
}
impl Element for F16 {
    const DTYPE: sys::softmax_dtype_t = sys::SOFTMAX_DTYPE_F16;
}
impl Element for Bf16 {
    const DTYPE: sys::softmax_dtype_t = sys::SOFTMAX_DTYPE_BF16;
}

/// Results on rows of `Self` may be stored as `Y`: any type as itself, and the 16-bit types as
/// `f32`. Other pairs do not compile.
pub trait StoredAs<Y: Element>: Element {}

impl<T: Element> StoredAs<T> for T {}
impl StoredAs<f32> for F16 {}
impl StoredAs<f32> for Bf16 {}
