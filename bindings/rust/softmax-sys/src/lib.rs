//! The C interface of libsoftmax as it is. `softmax.h` is its specification; the `softmax` crate
//! is a safe layer over it.
//!
//! Everything here is generated from the header: constants, structs, functions. Handles and streams
//! are pointers to opaque types: a `cudaStream_t` of any CUDA crate is cast to [`softmax_stream_t`].
//!
//! How the library is found at build time:
//! - `SOFTMAX_DIR`: an install prefix (`lib/`, `include/`);
//! - else `pkg-config softmax`.
//!
//! `SOFTMAX_STATIC=1` links `libsoftmax.a`, with the libraries that softmax.pc names behind it.
//! `DEP_SOFTMAX_LIBDIR` tells build scripts of crates that depend on this one where it lies.
#![allow(non_camel_case_types, non_snake_case)]

mod bindings;
pub use bindings::*;
