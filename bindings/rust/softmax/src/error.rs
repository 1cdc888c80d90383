//! What a refused or failed call returns.
use crate::{static_text, sys};
use std::fmt;
use std::os::raw::c_char;

/// A call that was refused or failed: the library's status, and a sentence with the values that
/// were wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    status: i32,
    sentence: String,
    cuda_error: i32,
}

impl Error {
    /// `SOFTMAX_STATUS_*`; see [`crate::sys`].
    pub fn status(&self) -> i32 {
        self.status
    }

    /// The category: 1 the call is wrong, 2 not supported, 3 out of something, 4 CUDA, 5 a defect
    /// of the library.
    pub fn category(&self) -> i32 {
        self.status / 1000
    }

    /// The constant's name, such as `"SOFTMAX_STATUS_BAD_SHAPE"`.
    pub fn name(&self) -> &'static str {
        static_text(unsafe { sys::softmax_status_name(self.status) })
    }

    /// What was wrong, in words.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// The `cudaError_t` behind it, or 0.
    pub fn cuda_error(&self) -> i32 {
        self.cuda_error
    }

    pub(crate) fn bad_shape(sentence: String) -> Error {
        Error {
            status: sys::SOFTMAX_STATUS_BAD_SHAPE,
            sentence,
            cuda_error: 0,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.sentence, self.name())
    }
}

impl std::error::Error for Error {}

/// A text that the library copies out: `copy` fills a buffer and returns the whole length.
pub(crate) fn copied_text(copy: impl Fn(*mut c_char, usize) -> usize) -> String {
    let mut bytes = vec![0u8; copy(std::ptr::null_mut(), 0) + 1];
    let length = copy(bytes.as_mut_ptr().cast(), bytes.len());
    bytes.truncate(length.min(bytes.len() - 1));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The status as a result, with the calling thread's last sentence.
pub(crate) fn check(status: i32) -> Result<(), Error> {
    if status == sys::SOFTMAX_SUCCESS {
        return Ok(());
    }
    let sentence = copied_text(|buffer, size| unsafe { sys::softmax_last_error(buffer, size) });
    Err(Error {
        status,
        sentence,
        cuda_error: unsafe { sys::softmax_last_cuda_error() },
    })
}
