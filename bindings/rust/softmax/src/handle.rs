//! Handles, and the computing calls through them.
use crate::choice::{Algo, Choice, Op};
use crate::element::{Element, StoredAs};
use crate::error::{check, copied_text, Error};
use crate::sys;
use std::fmt;
use std::mem::{size_of, MaybeUninit};
use std::ptr;

/// A device to make a handle for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// The calling thread's current CUDA device if one is usable, else the CPU.
    Auto,
    Cpu,
    /// A CUDA device by its ordinal.
    Cuda(i32),
}

/// A device with its properties. Any number of threads may use one at once. Dropping it frees it;
/// work that was enqueued through it goes on.
pub struct Handle {
    raw: sys::softmax_handle_t,
    device: Device,
}

// softmax.h, section 5: the computing calls do not change a handle. Those that do are Drop, which
// owns the handle, and softmax_set_workspace, which is not offered.
unsafe impl Send for Handle {}
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        unsafe { sys::softmax_destroy(self.raw) };
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("device", &self.device)
            .finish()
    }
}

impl Handle {
    /// A handle for `device`. Fails where it does not exist or cannot be used; `Device::Auto`
    /// falls back to the CPU instead.
    pub fn new(device: Device) -> Result<Handle, Error> {
        let number = match device {
            Device::Auto => sys::SOFTMAX_DEVICE_AUTO,
            Device::Cpu => sys::SOFTMAX_DEVICE_CPU,
            // A negative ordinal must not turn into one of the two names above.
            Device::Cuda(ordinal) => {
                if ordinal < 0 {
                    i32::MIN
                } else {
                    ordinal
                }
            }
        };
        let mut raw = ptr::null_mut();
        check(unsafe { sys::softmax_create(&mut raw, number) })?;
        let mut handle = Handle { raw, device };
        let mut ordinal = 0;
        check(unsafe { sys::softmax_handle_device(raw, &mut ordinal) })?;
        handle.device = match ordinal {
            sys::SOFTMAX_DEVICE_CPU => Device::Cpu,
            ordinal => Device::Cuda(ordinal),
        };
        Ok(handle)
    }

    /// What the handle computes on: never `Device::Auto`.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The device in one line, for people.
    pub fn description(&self) -> String {
        copied_text(|buffer, size| unsafe {
            sys::softmax_handle_description(self.raw, buffer, size)
        })
    }

    /// The C handle, for calls of [`crate::sys`]; it must not be destroyed.
    pub fn as_raw(&self) -> sys::softmax_handle_t {
        self.raw
    }

    /// The same calls with an algorithm of the caller's choice.
    pub fn with(&self, algo: Algo) -> Call<'_> {
        Call { handle: self, algo }
    }

    /// [`Call::softmax_in_place`] with [`Algo::AUTO`].
    pub fn softmax_in_place<T: Element>(
        &self,
        data: &mut [T],
        rows: usize,
        cols: usize,
    ) -> Result<(), Error> {
        self.with(Algo::AUTO).softmax_in_place(data, rows, cols)
    }

    /// [`Call::log_softmax_in_place`] with [`Algo::AUTO`].
    pub fn log_softmax_in_place<T: Element>(
        &self,
        data: &mut [T],
        rows: usize,
        cols: usize,
    ) -> Result<(), Error> {
        self.with(Algo::AUTO).log_softmax_in_place(data, rows, cols)
    }

    /// [`Call::softmax_to`] with [`Algo::AUTO`].
    pub fn softmax_to<X: StoredAs<Y>, Y: Element>(
        &self,
        x: &[X],
        y: &mut [Y],
        rows: usize,
        cols: usize,
    ) -> Result<(), Error> {
        self.with(Algo::AUTO).softmax_to(x, y, rows, cols)
    }

    /// [`Call::log_softmax_to`] with [`Algo::AUTO`].
    pub fn log_softmax_to<X: StoredAs<Y>, Y: Element>(
        &self,
        x: &[X],
        y: &mut [Y],
        rows: usize,
        cols: usize,
    ) -> Result<(), Error> {
        self.with(Algo::AUTO).log_softmax_to(x, y, rows, cols)
    }

    /// [`Call::select`] with [`Algo::AUTO`].
    pub fn select<X: StoredAs<Y>, Y: Element>(
        &self,
        op: Op,
        rows: usize,
        cols: usize,
    ) -> Result<Choice, Error> {
        self.with(Algo::AUTO).select::<X, Y>(op, rows, cols)
    }
}

/// A handle with an algorithm: what [`Handle::with`] returns.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    handle: &'a Handle,
    algo: Algo,
}

impl Call<'_> {
    /// Softmax over each of the `rows` rows of `cols` elements, in place.
    ///
    /// `data` must have exactly `rows * cols` elements: otherwise `SOFTMAX_STATUS_BAD_SHAPE`, and
    /// nothing is written.
    pub fn softmax_in_place<T: Element>(
        self,
        data: &mut [T],
        rows: usize,
        cols: usize,
    ) -> Result<(), Error> {
        self.in_place(Op::Softmax, data, rows, cols)
    }

    /// Log-softmax, otherwise as [`Call::softmax_in_place`].
    pub fn log_softmax_in_place<T: Element>(
        self,
        data: &mut [T],
        rows: usize,
        cols: usize,
    ) -> Result<(), Error> {
        self.in_place(Op::LogSoftmax, data, rows, cols)
    }

    /// Softmax of the rows of `x` to those of `y`, in any supported pair of types. Each must have
    /// exactly `rows * cols` elements.
    pub fn softmax_to<X: StoredAs<Y>, Y: Element>(
        self,
        x: &[X],
        y: &mut [Y],
        rows: usize,
        cols: usize,
    ) -> Result<(), Error> {
        self.to(Op::Softmax, x, y, rows, cols)
    }

    /// Log-softmax, otherwise as [`Call::softmax_to`].
    pub fn log_softmax_to<X: StoredAs<Y>, Y: Element>(
        self,
        x: &[X],
        y: &mut [Y],
        rows: usize,
        cols: usize,
    ) -> Result<(), Error> {
        self.to(Op::LogSoftmax, x, y, rows, cols)
    }

    /// Enqueues softmax of device memory on `stream`, and returns without waiting.
    ///
    /// # Safety
    /// `x` and `y` must point to `rows * cols` elements on the handle's device (host memory for a
    /// CPU handle, with a NULL stream) that stay alive, and that nothing else writes or, for `y`,
    /// reads, until the work on `stream` is done. `y` may be `x` where the types are the same.
    pub unsafe fn softmax_device<X: StoredAs<Y>, Y: Element>(
        self,
        x: *const X,
        y: *mut Y,
        rows: usize,
        cols: usize,
        stream: sys::softmax_stream_t,
    ) -> Result<(), Error> {
        self.run(Op::Softmax, x, y, rows, cols, stream)
    }

    /// Log-softmax, otherwise as [`Call::softmax_device`].
    ///
    /// # Safety
    /// As for [`Call::softmax_device`].
    pub unsafe fn log_softmax_device<X: StoredAs<Y>, Y: Element>(
        self,
        x: *const X,
        y: *mut Y,
        rows: usize,
        cols: usize,
        stream: sys::softmax_stream_t,
    ) -> Result<(), Error> {
        self.run(Op::LogSoftmax, x, y, rows, cols, stream)
    }

    /// What would run for a problem on the handle's device, and why. Runs nothing.
    pub fn select<X: StoredAs<Y>, Y: Element>(
        self,
        op: Op,
        rows: usize,
        cols: usize,
    ) -> Result<Choice, Error> {
        let (rows, cols) = (extent(rows)?, extent(cols)?);
        let mut desc = MaybeUninit::<sys::softmax_desc_t>::uninit();
        let size = size_of::<sys::softmax_desc_t>();
        let status = unsafe {
            sys::softmax_desc_init(desc.as_mut_ptr(), size, op.number(), X::DTYPE, rows, cols)
        };
        check(status)?;
        let mut desc = unsafe { desc.assume_init() };
        desc.y_dtype = Y::DTYPE;
        let mut choice = unsafe { MaybeUninit::<sys::softmax_choice_t>::zeroed().assume_init() };
        choice.struct_size = size_of::<sys::softmax_choice_t>() as u64;
        check(unsafe { sys::softmax_select(self.handle.raw, self.algo.0, &desc, &mut choice) })?;
        Ok(Choice::from_c(&choice))
    }

    fn in_place<T: Element>(
        self,
        op: Op,
        data: &mut [T],
        rows: usize,
        cols: usize,
    ) -> Result<(), Error> {
        check_length("data", data.len(), rows, cols)?;
        let pointer: *mut T = data.as_mut_ptr();
        unsafe {
            self.run(
                op,
                pointer as *const T,
                pointer,
                rows,
                cols,
                ptr::null_mut(),
            )
        }
    }

    fn to<X: StoredAs<Y>, Y: Element>(
        self,
        op: Op,
        x: &[X],
        y: &mut [Y],
        rows: usize,
        cols: usize,
    ) -> Result<(), Error> {
        check_length("x", x.len(), rows, cols)?;
        check_length("y", y.len(), rows, cols)?;
        unsafe { self.run(op, x.as_ptr(), y.as_mut_ptr(), rows, cols, ptr::null_mut()) }
    }

    unsafe fn run<X: Element, Y: Element>(
        self,
        op: Op,
        x: *const X,
        y: *mut Y,
        rows: usize,
        cols: usize,
        stream: sys::softmax_stream_t,
    ) -> Result<(), Error> {
        let function = match op {
            Op::Softmax => sys::softmax_forward_to,
            Op::LogSoftmax => sys::logsoftmax_forward_to,
        };
        check(function(
            self.handle.raw,
            self.algo.0,
            x.cast(),
            X::DTYPE,
            y.cast(),
            Y::DTYPE,
            extent(rows)?,
            extent(cols)?,
            stream,
        ))
    }
}

fn extent(value: usize) -> Result<i64, Error> {
    i64::try_from(value).map_err(|_| Error::bad_shape(format!("{} does not fit 63 bits", value)))
}

fn check_length(name: &str, length: usize, rows: usize, cols: usize) -> Result<(), Error> {
    if rows.checked_mul(cols) == Some(length) {
        return Ok(());
    }
    Err(Error::bad_shape(format!(
        "{} has {} elements, which is not {} rows of {}",
        name, length, rows, cols
    )))
}
