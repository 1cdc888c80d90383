//! A shared library in Rust that uses libsoftmax: what a plug-in or a Python extension does.
use softmax::{Device, Handle};

/// Softmax of `rows` rows of `cols` floats at `data`; 0, or the status.
///
/// # Safety
/// `data` points to `rows * cols` floats.
#[no_mangle]
pub unsafe extern "C" fn plugin_softmax(data: *mut f32, rows: usize, cols: usize) -> i32 {
    let data = std::slice::from_raw_parts_mut(data, rows * cols);
    let result = Handle::new(Device::Cpu).and_then(|h| h.softmax_in_place(data, rows, cols));
    result.map_or_else(|error| error.status(), |()| 0)
}
