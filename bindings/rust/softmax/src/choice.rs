//! Algorithms, operations, and what would run for a problem.
use crate::error::{check, Error};
use crate::{static_text, sys};
use std::ffi::CString;
use std::os::raw::c_char;

/// An algorithm, by its number. `docs/algorithms.md` has a section on each; a handle refuses those
/// that its device cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Algo(pub i32);

impl Algo {
    pub const AUTO: Algo = Algo(sys::SOFTMAX_ALGO_AUTO);
    pub const NAIVE: Algo = Algo(sys::SOFTMAX_ALGO_NAIVE);
    pub const SHARED: Algo = Algo(sys::SOFTMAX_ALGO_SHARED);
    pub const SHUFFLE: Algo = Algo(sys::SOFTMAX_ALGO_SHUFFLE);
    pub const VECTOR: Algo = Algo(sys::SOFTMAX_ALGO_VECTOR);
    pub const ONLINE: Algo = Algo(sys::SOFTMAX_ALGO_ONLINE);
    pub const WARP_ONLINE: Algo = Algo(sys::SOFTMAX_ALGO_WARP_ONLINE);
    pub const WARP: Algo = Algo(sys::SOFTMAX_ALGO_WARP);
    pub const BLOCK: Algo = Algo(sys::SOFTMAX_ALGO_BLOCK);
    pub const TILE: Algo = Algo(sys::SOFTMAX_ALGO_TILE);
    pub const CLUSTER: Algo = Algo(sys::SOFTMAX_ALGO_CLUSTER);
    pub const GRID: Algo = Algo(sys::SOFTMAX_ALGO_GRID);
    pub const COLUMN: Algo = Algo(sys::SOFTMAX_ALGO_COLUMN);
    pub const REFERENCE: Algo = Algo(sys::SOFTMAX_ALGO_REFERENCE);

    /// The algorithm of a name such as `"warp_online"`, in any case.
    pub fn from_name(name: &str) -> Result<Algo, Error> {
        // A NUL cannot be in a name: what is before it would be another one.
        let name = CString::new(name.replace('\0', "?")).unwrap_or_default();
        let mut number = 0;
        check(unsafe { sys::softmax_algo_from_name(name.as_ptr(), &mut number) })?;
        Ok(Algo(number))
    }

    /// Its name, or `None` where the library in use has no such algorithm.
    pub fn name(self) -> Option<&'static str> {
        let name = unsafe { sys::softmax_algo_name(self.0) };
        if name.is_null() {
            return None;
        }
        Some(static_text(name))
    }
}

/// What to compute over each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Softmax,
    LogSoftmax,
}

impl Op {
    pub(crate) fn number(self) -> i32 {
        match self {
            Op::Softmax => sys::SOFTMAX_OP_SOFTMAX,
            Op::LogSoftmax => sys::SOFTMAX_OP_LOGSOFTMAX,
        }
    }
}

/// What would run for a problem, and why; see `softmax_choice_t` in `softmax.h`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    pub algo: Algo,
    pub kernel: String,
    pub reason: String,
    pub workspace_bytes: u64,
    pub rows_per_block: i32,
    pub threads: i32,
    pub cluster: i32,
    pub stages: i32,
    pub vec_bytes: i32,
    pub smem_bytes: i64,
}

impl Choice {
    pub(crate) fn from_c(c: &sys::softmax_choice_t) -> Choice {
        Choice {
            algo: Algo(c.algo),
            kernel: text(&c.kernel),
            reason: text(&c.reason),
            workspace_bytes: c.workspace_bytes,
            rows_per_block: c.rows_per_block,
            threads: c.threads,
            cluster: c.cluster,
            stages: c.stages,
            vec_bytes: c.vec_bytes,
            smem_bytes: c.smem_bytes,
        }
    }
}

/// The text of a field up to its NUL, or all of it.
fn text(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field
        .iter()
        .map(|c| *c as u8)
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
