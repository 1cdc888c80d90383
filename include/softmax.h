/* softmax.h - the C interface of libsoftmax, and its specification.
 *
 * libsoftmax computes softmax and log-softmax over the rows of a matrix, on NVIDIA GPUs and on the
 * CPU, through the same handle and the same calls.
 *
 *     softmax_handle_t h;
 *     if (softmax_create(&h, SOFTMAX_DEVICE_AUTO) != SOFTMAX_SUCCESS) { ... }
 *     softmax_forward(h, SOFTMAX_ALGO_AUTO, logits, M, N, stream);   // in place, float32, (M, N)
 *     softmax_destroy(h);
 *
 * CONTENTS
 *   1  What is computed          5  Threads                    9  Headline calls
 *   2  Edge rows                 6  Memory and ownership      10  The general call
 *   3  Accuracy                  7  Version and ABI           11  Asking without running
 *   4  Bits                      8  Types and constants       12  Errors, names, log
 *
 * ------------------------------------------------
 * 1  WHAT IS COMPUTED
 *
 * For a row x of N elements, with m = max_j x_j and s = sum_j exp(x_j - m):
 *
 *     softmax      y_i = exp(x_i - m) / s
 *     log-softmax  y_i = (x_i - m) - log(s)
 *
 * The maximum is always subtracted first, so a constant added to a whole row does not change the
 * result, and the size of the inputs cannot overflow the exponential. (Safe and online softmax:
 * Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.)
 *
 * A matrix (M, N) is row-major and contiguous: row i starts at element i*N. M and N are 64-bit
 * everywhere; neither is limited by a grid dimension, and M*N may exceed 2^32.
 *
 * ------------------------------------------------
 * 2  EDGE ROWS: the same on every device, for every algorithm and every N, N = 1 included
 *
 *     a NaN in the row             the whole row is NaN
 *     a +inf in the row            the whole row is NaN
 *     a -inf among finite values   that element is exactly 0 (log-softmax: -inf); the others are
 *                                  what they would be without it
 *     every element -inf           the whole row is NaN; with empty_row = SOFTMAX_EMPTY_ROW_ZERO
 *                                  it is 0 (log-softmax: -inf)
 *     x_i - m below the range      0; log-softmax keeps x_i - m - log(s), or -inf where that itself
 *                                  is not representable
 *     M == 0 or N == 0             success, nothing is read or written, pointers may be NULL
 *
 * The sign and payload of a NaN are not specified. Subnormal inputs and outputs are kept: nothing
 * is flushed to zero.
 *
 * ------------------------------------------------
 * 3  ACCURACY, in units in the last place of the correctly rounded result, normal outputs
 *
 *     softmax      F32 output: at most 4, for N up to 2^24 and for any spread of the inputs
 *                  F16 and BF16 output: at most 0.51 (the rounding to the type is 0.5)
 *     log-softmax  F32 output: at most 4; F16 and BF16 output: at most 0.51
 *     F64          at most 4, for both
 *
 * What makes this hold: the rounding error of x_i - m is carried into the exponential, or terms are
 * taken against a power of two, for which there is none; sums are compensated, or a wider type's;
 * log-softmax keeps the maximum's own 1 out of s, so that a confident row's top entry stays
 * accurate near 0. No intermediate is stored in 16 bits.
 *
 * The flag SOFTMAX_FLAG_FAST_MATH permits less than this. No algorithm of this release makes use of
 * the permission, so results are the same with and without it.
 *
 * ------------------------------------------------
 * 4  BITS
 *
 * Results are the same from run to run. The bits of a row depend on the row's values, N, the two
 * data types, the algorithm and the device model alone: not on M, the row's position or alignment,
 * in or out of place, the number of CPU threads, or whether a graph replays the call. Hence
 * SOFTMAX_ALGO_AUTO decides by N (and type and device); by M it may decide how many blocks share a
 * row, only where that changes no bit, unless SOFTMAX_FLAG_M_ADAPTIVE gives the property up for
 * speed. Two devices, two algorithms or two releases may differ in the last bits, within the bounds
 * of section 3.
 *
 * ------------------------------------------------
 * 5  THREADS
 *
 * A handle reads its device's properties once, when it is created, and is not changed by the
 * computing calls: any number of threads may use one handle at once, each with its own buffers and
 * its own stream. softmax_set_workspace and softmax_destroy change the handle: no other call may
 * be using it then. softmax_last_error speaks of the calling thread's last failed call.
 *
 * On a CUDA handle the computing calls enqueue work on `stream` and return; they never synchronise,
 * never use the default stream unless `stream` is NULL (which means the legacy default stream, as
 * in CUDA), allocate nothing (GRID, and CLUSTER for many rows, without a workspace: up to some
 * hundreds of KB in stream order, which a captured graph owns), and are legal during stream capture.
 * From compute capability 9.0 on a call may be launched before the kernel in front of it has ended
 * (programmatic dependent launch; in a captured graph an edge of that kind), but touches no buffer
 * until then; that kernel, if launched so itself, must have waited likewise. CUDA may load a kernel
 * at its first call, which can wait for the device, unless CUDA_MODULE_LOADING=EAGER. The device of
 * the handle is current for the duration of the call and the caller's is restored, on every path.
 * An error that was pending in the CUDA runtime before the call is neither reported as this call's
 * nor cleared; a failure of this call leaves none behind.
 *
 * On a CPU handle the calls are synchronous, `stream` must be NULL, and rows are computed on OpenMP
 * threads (OMP_NUM_THREADS and omp_set_num_threads apply). They may take scratch memory for the
 * duration of the call, and do without where there is none. In the child of a fork they compute on
 * one thread, with the same bits: OpenMP's threads are the parent's. A CUDA handle cannot be used
 * in the child of a fork, as nothing of CUDA can.
 *
 * ------------------------------------------------
 * 6  MEMORY AND OWNERSHIP
 *
 * The caller owns every buffer; the library keeps no pointer past the call, except a workspace
 * given to softmax_set_workspace. On a CUDA handle the buffers must stay alive until the enqueued
 * work is done. Buffers may be aligned to their element only (4 bytes for float32); any larger
 * alignment is used where it is there. y == x is in place. Buffers that overlap in any other way
 * are refused (SOFTMAX_STATUS_OVERLAP). Nothing outside [y, y + M*N) is ever written, and nothing
 * outside [x, x + M*N) is ever read; of a strided tensor no byte between its elements.
 *
 * ------------------------------------------------
 * 7  VERSION AND ABI
 *
 * Functions and constants are added, never changed or removed, within one SONAME. Structs grow by
 * appending: each begins with struct_size, which the caller sets to sizeof the struct that it was
 * compiled with. A size below the first release's is refused (SOFTMAX_STATUS_STRUCT_SIZE). A larger
 * one, from a newer header, is accepted where every byte past the known fields is zero, and refused
 * otherwise (SOFTMAX_STATUS_NEWER_FIELD), so that a field this library does not know is never
 * silently ignored. (Of an output struct the unknown tail is set to zero.) Arguments and fields are
 * int32_t, never of an enum type, so that their size cannot change.
 */
#ifndef SOFTMAX_H
#define SOFTMAX_H

#include <stddef.h>
#include <stdint.h>

/* The version of this header. softmax_version() is that of the library in use. */
#define SOFTMAX_VERSION_MAJOR 0
#define SOFTMAX_VERSION_MINOR 1
#define SOFTMAX_VERSION_PATCH 0

#if defined(_WIN32)
#define SOFTMAX_API
#else
#define SOFTMAX_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------
 * 8  TYPES AND CONSTANTS. The numbers are part of the ABI and never move.
 */

/* A device with its properties; see softmax_create. Opaque. */
typedef struct softmax_context *softmax_handle_t;

/* A CUDA stream: a cudaStream_t or CUstream as it is, no cast needed. NULL on a CPU handle. */
typedef struct CUstream_st *softmax_stream_t;

typedef int32_t softmax_status_t; /* one of SOFTMAX_STATUS_*, or SOFTMAX_SUCCESS */
typedef int32_t softmax_algo_t;   /* one of SOFTMAX_ALGO_* */
typedef int32_t softmax_dtype_t;  /* one of SOFTMAX_DTYPE_* */

/* Status = category * 1000 + detail. A caller that meets a detail it does not know may act on the
 * category, status / 1000. Every status other than SUCCESS means that nothing was enqueued and
 * nothing was written, except CUDA and INTERNAL, after which the output is unspecified.
 */
enum {
  SOFTMAX_SUCCESS = 0,

  /* 1: the call is wrong; the same call will always be refused. */
  SOFTMAX_STATUS_INVALID_ARGUMENT = 1000,
  SOFTMAX_STATUS_NULL_POINTER = 1001, /* a pointer that is needed is NULL */
  SOFTMAX_STATUS_BAD_HANDLE = 1002,   /* not a live handle */
  SOFTMAX_STATUS_BAD_SHAPE = 1003,    /* negative extent, ndim or axis out of range, or overflow */
  SOFTMAX_STATUS_BAD_STRIDE = 1004,   /* negative, out of range, or two outputs in one place */
  SOFTMAX_STATUS_BAD_ENUM = 1005,     /* a constant that does not exist */
  SOFTMAX_STATUS_STRUCT_SIZE = 1006,  /* struct_size is smaller than the first release's */
  SOFTMAX_STATUS_OVERLAP = 1007,      /* an output may overlap another buffer: section 10 */
  SOFTMAX_STATUS_WORKSPACE_TOO_SMALL = 1008,
  SOFTMAX_STATUS_WRONG_DEVICE = 1009, /* host memory on a CUDA handle, memory of another GPU,
                                         a stream on a CPU handle, or no such device */

  /* 2: the call is right, this library or this device cannot do it. */
  SOFTMAX_STATUS_NOT_SUPPORTED = 2000,
  SOFTMAX_STATUS_NOT_SUPPORTED_ALGO = 2001,
  SOFTMAX_STATUS_NOT_SUPPORTED_DTYPE = 2002,
  SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT = 2003,
  SOFTMAX_STATUS_NOT_SUPPORTED_ARCH = 2004,   /* no kernel in this build for this GPU */
  SOFTMAX_STATUS_NOT_SUPPORTED_DRIVER = 2005, /* no NVIDIA driver, or one that is too old */
  SOFTMAX_STATUS_NEWER_FIELD = 2006, /* a struct has a non-zero field this library does not know */

  /* 3: out of something; the call may succeed later. */
  SOFTMAX_STATUS_RESOURCE = 3000,
  SOFTMAX_STATUS_HOST_MEMORY = 3001,
  SOFTMAX_STATUS_DEVICE_MEMORY = 3002,

  /* 4: CUDA reported an error; softmax_last_cuda_error() has its number. */
  SOFTMAX_STATUS_CUDA = 4000,

  /* 5: a defect of this library. Please report it. */
  SOFTMAX_STATUS_INTERNAL = 5000
};

/* Devices, for softmax_create. 0, 1, ... are CUDA ordinals as cudaSetDevice takes them. */
enum {
  SOFTMAX_DEVICE_AUTO = -1, /* the calling thread's current CUDA device if usable, else the CPU */
  SOFTMAX_DEVICE_CPU = -2
};

/* Data types. F16 is IEEE 754 binary16; BF16 is the upper half of a binary32; both are passed as
 * 2-byte elements. The 8-bit types are those of the OCP OFP8 specification. Results are rounded to
 * nearest even and saturate at the largest finite number (448, 57344); a NaN stays one, and an
 * infinity in E5M2; in E4M3, which has none, it becomes 448 with its sign.
 */
enum {
  SOFTMAX_DTYPE_F32 = 1,
  SOFTMAX_DTYPE_F16 = 2,
  SOFTMAX_DTYPE_BF16 = 3,
  SOFTMAX_DTYPE_F64 = 4,
  SOFTMAX_DTYPE_F8_E4M3 = 5,
  SOFTMAX_DTYPE_F8_E5M2 = 6
};

/* Algorithms. AUTO is what a user wants. 1 to 6 are the published ladder from naive to two-pass:
 * each is right for every M, N, type and alignment, and they are what faster ones are measured
 * against. 10 to 14 read x once: WARP and BLOCK take rows that fit in registers, TILE rows of up to
 * 4 KB, CLUSTER rows of up to 2 MB (1 MB in float64 and from 16 bits to float32), GRID any. TILE,
 * CLUSTER and GRID need compute capability 9.0 or above. COLUMN is the general call's: it reads x
 * once too, where the softmax axis is not innermost and neighbouring rows are neighbours in memory.
 * A CPU handle takes AUTO, NAIVE, VECTOR, ONLINE and REFERENCE. An algorithm that cannot run a
 * problem is refused with 2001 and a sentence that says why: another one never takes its place
 * silently.
 * docs/algorithms.md has a section on each.
 */
enum {
  SOFTMAX_ALGO_AUTO = 0,         /* chosen from N, types and device */
  SOFTMAX_ALGO_NAIVE = 1,        /* one thread a row, three passes */
  SOFTMAX_ALGO_SHARED = 2,       /* one block a row, tree in shared memory, three passes */
  SOFTMAX_ALGO_SHUFFLE = 3,      /* warp shuffles, several rows a block, three passes */
  SOFTMAX_ALGO_VECTOR = 4,       /* as SHUFFLE with 16-byte loads and stores; CPU: SIMD */
  SOFTMAX_ALGO_ONLINE = 5,       /* running (max, sum): two passes */
  SOFTMAX_ALGO_WARP_ONLINE = 6,  /* one warp a row, running (max, sum), streaming stores */
  SOFTMAX_ALGO_WARP = 10,        /* read once: row in the registers of a warp, up to 4 KB */
  SOFTMAX_ALGO_BLOCK = 11,       /* read once: row in the registers of a block */
  SOFTMAX_ALGO_TILE = 12,        /* read once: runs of short rows by bulk asynchronous copy */
  SOFTMAX_ALGO_CLUSTER = 13,     /* read once: row over the blocks of a thread-block cluster */
  SOFTMAX_ALGO_GRID = 14,        /* read once where it fits on chip: row over many blocks */
  SOFTMAX_ALGO_COLUMN = 15,      /* read once: softmax axis not innermost, held on chip */
  SOFTMAX_ALGO_REFERENCE = 1000  /* slow and obvious, float64 inside; never chosen by AUTO */
};

/* Operations, desc.op. */
enum {
  SOFTMAX_OP_SOFTMAX = 0,
  SOFTMAX_OP_LOGSOFTMAX = 1,
  SOFTMAX_OP_STATS = 2 /* row_max, row_sum and lse alone, y is not written */
};

/* Directions, desc.direction. */
enum {
  SOFTMAX_DIRECTION_FORWARD = 0,
  SOFTMAX_DIRECTION_BACKWARD = 1 /* dx from dy and y, or from dy, x and statistics */
};

/* Masks, desc.mask_kind: see "Masks" in section 10. */
enum {
  SOFTMAX_MASK_NONE = 0,
  SOFTMAX_MASK_BOOL_KEEP = 1, /* uint8_t: non-zero keeps the element, zero makes it -inf */
  SOFTMAX_MASK_ADDITIVE = 2,  /* float: added to the scaled input */
  SOFTMAX_MASK_CAUSAL = 3,    /* row i keeps the columns j <= i + causal_offset; no buffer */
  SOFTMAX_MASK_ROW_LENGTH = 4 /* int32_t a row: columns at and past the length are not read */
};

/* Rows without any element above -inf, desc.empty_row. */
enum {
  SOFTMAX_EMPTY_ROW_NAN = 0, /* the whole row NaN: what PyTorch, JAX and SciPy return */
  SOFTMAX_EMPTY_ROW_ZERO = 1 /* softmax 0, log-softmax -inf: what attention wants */
};

/* Flags, desc.flags, or-ed together. A flag that does not exist is refused with 1005. */
enum {
  SOFTMAX_FLAG_M_ADAPTIVE = 1,    /* permit a choice by M: section 4 no longer holds over M */
  SOFTMAX_FLAG_FAST_MATH = 2,     /* permit less accuracy than section 3 */
  SOFTMAX_FLAG_GIVEN_STATS = 4,   /* row_max and row_sum are inputs */
  SOFTMAX_FLAG_TRUST_POINTERS = 8, /* skip the check of where x and y live (for memory that the
                                      CUDA runtime does not know, and a little less host time) */
  SOFTMAX_FLAG_ZERO_STRIDES = 16   /* an all-zero mask_stride or sink_stride is what it says, one
                                      entry for all, and does not stand for contiguous */
};

/* Log levels, for softmax_set_log. */
enum {
  SOFTMAX_LOG_OFF = 0,
  SOFTMAX_LOG_ERROR = 1, /* the sentence of every failed call */
  SOFTMAX_LOG_INFO = 2,  /* also: handles created, and what was chosen for a call */
  SOFTMAX_LOG_DEBUG = 3  /* also: every candidate that declined, and why */
};

#define SOFTMAX_MAX_NDIM 8

/* ------------------------------------------------
 * Handle
 */

/* Creates a handle for `device`: SOFTMAX_DEVICE_AUTO, SOFTMAX_DEVICE_CPU or a CUDA ordinal.
 *
 * On a CUDA device this makes sure that the driver is there and new enough and that this build has
 * kernels for the GPU. It initialises that device's primary context and no other's, and leaves the
 * calling thread's current device as it was. It allocates no device memory.
 *
 * AUTO falls back to the CPU when no CUDA device is usable, and never fails for lack of one.
 *
 * On success *handle is a new handle, to be freed with softmax_destroy. On failure it is NULL.
 *
 * Errors: NULL_POINTER (handle is NULL); WRONG_DEVICE (no such ordinal); NOT_SUPPORTED (built
 * without CUDA); NOT_SUPPORTED_DRIVER; NOT_SUPPORTED_ARCH; HOST_MEMORY; CUDA.
 */
SOFTMAX_API softmax_status_t softmax_create(softmax_handle_t *handle, int32_t device);

/* Frees a handle. NULL is a no-op. Work that was enqueued through the handle goes on and need not
 * be waited for, and captured graphs stay valid. Safe at process exit, after the CUDA runtime has
 * shut down too. A handle that was freed already is refused with BAD_HANDLE where that can be seen;
 * do not rely on it.
 */
SOFTMAX_API softmax_status_t softmax_destroy(softmax_handle_t handle);

/* Writes to *device what the handle computes on: SOFTMAX_DEVICE_CPU or a CUDA ordinal, never AUTO.
 * Errors: BAD_HANDLE; NULL_POINTER.
 */
SOFTMAX_API softmax_status_t softmax_handle_device(softmax_handle_t handle, int32_t *device);

/* Describes the handle's device in one line for people ("NVIDIA H200, sm_90, 132 SMs, ..."), copied
 * to buf with a terminating NUL and cut to `cap` bytes. The wording is not part of the ABI.
 * Returns the length of the whole line without the NUL, or 0 for a bad handle; buf may be NULL when
 * cap is 0.
 */
SOFTMAX_API size_t softmax_handle_description(softmax_handle_t handle, char *buf, size_t cap);

/* Writes the number of CUDA devices that the driver shows to *count: 0 without a driver, without a
 * GPU, or in a build without CUDA. Creates no context. Errors: NULL_POINTER.
 */
SOFTMAX_API softmax_status_t softmax_device_count(int32_t *count);

/* Gives the handle device memory to work in, instead of what it would take from a stream-ordered
 * pool; NULL and 0 take it away again. The caller keeps ownership and must keep it alive as long as
 * the handle uses it. GRID and CLUSTER for many rows work in it (see softmax_choice_t), and take
 * memory from the pool where it is too small or not aligned to 128 bytes.
 * Calls that share one workspace must be in one stream, or otherwise ordered.
 *
 * Errors: BAD_HANDLE; NULL_POINTER (NULL with bytes > 0).
 */
SOFTMAX_API softmax_status_t softmax_set_workspace(softmax_handle_t handle, void *ptr,
                                                   size_t bytes);

/* ------------------------------------------------
 * 9  HEADLINE CALLS
 */

/* Softmax over each of the M rows of N float32 values at ptr, in place.
 *
 *   handle  from softmax_create
 *   algo    SOFTMAX_ALGO_AUTO, or one by name
 *   ptr     M*N floats on the handle's device (host memory for a CPU handle), read and written;
 *           may be NULL if M or N is 0
 *   M, N    rows and columns, >= 0
 *   stream  CUDA stream to enqueue on; NULL on a CPU handle
 *
 * Errors: BAD_HANDLE; BAD_SHAPE (negative, or M*N*4 does not fit 63 bits); NULL_POINTER; BAD_ENUM
 * (no such algorithm); WRONG_DEVICE (ptr or stream of another device); INVALID_ARGUMENT (ptr not
 * aligned to 4 bytes); NOT_SUPPORTED_ALGO; CUDA.
 */
SOFTMAX_API softmax_status_t softmax_forward(softmax_handle_t handle, softmax_algo_t algo,
                                             float *ptr, int64_t M, int64_t N,
                                             softmax_stream_t stream);

/* Log-softmax, otherwise as softmax_forward. */
SOFTMAX_API softmax_status_t logsoftmax_forward(softmax_handle_t handle, softmax_algo_t algo,
                                                float *ptr, int64_t M, int64_t N,
                                                softmax_stream_t stream);

/* Softmax from x to y, in any supported pair of types:
 *
 *     F32 -> F32, F16 -> F16, BF16 -> BF16, F64 -> F64, F16 -> F32, BF16 -> F32
 *
 * and on a CPU handle every other pair (AUTO, VECTOR, REFERENCE).
 *
 * y == x is in place and needs x_dtype == y_dtype; any other overlap is refused. Both buffers are
 * (M, N) and each is aligned to its own element at least.
 *
 * Errors: as softmax_forward; NOT_SUPPORTED_DTYPE (another pair); OVERLAP.
 */
SOFTMAX_API softmax_status_t softmax_forward_to(softmax_handle_t handle, softmax_algo_t algo,
                                                const void *x, softmax_dtype_t x_dtype, void *y,
                                                softmax_dtype_t y_dtype, int64_t M, int64_t N,
                                                softmax_stream_t stream);

/* Log-softmax, otherwise as softmax_forward_to. */
SOFTMAX_API softmax_status_t logsoftmax_forward_to(softmax_handle_t handle, softmax_algo_t algo,
                                                   const void *x, softmax_dtype_t x_dtype, void *y,
                                                   softmax_dtype_t y_dtype, int64_t M, int64_t N,
                                                   softmax_stream_t stream);

/* ------------------------------------------------
 * 10  THE GENERAL CALL
 *
 * softmax_desc_t is the problem, softmax_args_t its buffers. Everything is checked before anything
 * runs.
 *
 * On a CPU handle AUTO, VECTOR and REFERENCE compute all of this, ONLINE any layout of the headline
 * types, NAIVE what the headline calls compute. On a CUDA handle AUTO and ONLINE compute all of it;
 * WARP, BLOCK and CLUSTER take dense rows and COLUMN rows that are neighbours in memory, but for
 * F64 and soft-cap. Contiguous rows with nothing of this section have kernels of their own there:
 * padded, or with statistics, the same rows may differ in the last bits.
 *
 * Layouts. The softmax axis is any of 1 to 8 dimensions. Strides are in elements and not negative;
 * dx has those of x. 0 on an input broadcasts. An output's strides, sorted, must each be as large
 * as what the smaller ones span, so that no two elements are in one place, or they are refused with
 * BAD_STRIDE. Rows are numbered in row-major order of the other dimensions as they stand in shape,
 * whatever the strides; row_scale and statistics are contiguous in that order.
 *
 * Overlap. In place means the same address, type and strides: y on x, dx on dy, y or x. Other
 * outputs whose range of bytes meets another buffer's are refused with OVERLAP, unless strides
 * prove them apart (halves of a matrix).
 *
 * Values. Each element goes through these steps, in this order, and sections 1 to 3 then speak of v
 * in place of x:
 *
 *     v = x * scale * row_scale[r]                  scale multiplies first
 *     v = softcap * tanh(v / softcap)               where softcap > 0
 *     v = v + mask, or -inf where the mask says so
 *
 * scale may have either sign and may be 0; 0 * inf is NaN. It is also the place for an 8-bit x's
 * dequantisation scale. The steps are taken in float64. The bounds of section 3 hold against real
 * arithmetic for |v| up to 2^26, or, where x or y is F64, against v as float64 gives it.
 * row_scale[r] is an inverse temperature, and 0 means the limit of temperature 0: with v as if
 * row_scale[r] were 1, the row is 1 at its first maximum and 0 elsewhere (log-softmax: 0 and -inf),
 * its row_sum is 1 and its lse is its row_max. With GIVEN_STATS it is 1 only where that maximum, in
 * float32, is not below the given row_max, and lse is that. Edge rows are as in section 2; a NaN
 * row_scale[r] makes the row NaN, unless all of it is masked.
 *
 * Masks. A masked element is -inf, whatever x holds there (ADDITIVE: unless that is NaN or +inf).
 * BOOL_KEEP and ADDITIVE have a mask as large as x; an all-zero mask_stride stands for contiguous
 * over shape. CAUSAL has no buffer: element j of the axis is kept where j <= i + causal_offset, i
 * being the index along the dimension just before the axis, or 0 where ndim is 1; axis 0 of several
 * dimensions is refused with NOT_SUPPORTED_LAYOUT. ROW_LENGTH has one int32_t a row, over shape
 * with the axis' entry of mask_stride ignored, all-zero standing for one a row, contiguous; lengths
 * are clamped to 0 to N.
 * Elements that CAUSAL or ROW_LENGTH mask are never read; on a CPU handle the others have the bits
 * of a row that ends there.
 *
 * Sink. args.sink adds one more logit to a row's maximum and sum, which has no output: neither
 * scaled nor capped nor masked, one float32 a row over shape with the axis' entry of sink_stride
 * ignored. All-zero strides stand for one a row, contiguous; with SOFTMAX_FLAG_ZERO_STRIDES they
 * stand for one sink for all rows. One a head is the head's dimension with stride 1 and 0 for the
 * others. A row with a finite sink is not empty: masked throughout, it is 0 (log-softmax: -inf).
 *
 * Statistics. row_max, row_sum and lse are by-products of SOFTMAX and LOGSOFTMAX wherever they are
 * not NULL, and change no bit of y; STATS computes them alone.
 *
 *     row_max   the maximum of v, rounded to float32
 *     row_sum   the sum of exp(v - row_max), with row_max as it is returned
 *     lse       row_max + log(row_sum), computed in float64 and rounded once
 *
 * On CUDA a row_sum is within section 3's bound for F32, and lse within 2^-21 + 1 ulp. An empty
 * row has -inf, 0 and -inf; a NaN row has three NaN. A maximum beyond float32 becomes an infinity:
 * then row_sum is 0 and lse that infinity.
 *
 * With SOFTMAX_FLAG_GIVEN_STATS, row_max and row_sum are inputs, and a row is exp(v - row_max) /
 * row_sum or (v - row_max) - log(row_sum): the last pass of a row that devices share. Bounds hold
 * for the numbers as given; where the two cancel, to 1e-15. Under finite statistics an x that is
 * NaN or +inf decides over its own element alone. row_max -inf with row_sum 0 is an empty row; a NaN
 * or +inf row_max makes the row NaN. A sink is in the statistics already: one in args is not read.
 * lse is an output still. Not with STATS.
 *
 * Backward. With s = scale * row_scale[r] times the derivative of the soft-cap, p = softmax(x), and
 * sums over the row's elements that are not masked,
 *
 *     SOFTMAX       dx = s * p * (dy - sum(p * dy))
 *     LOGSOFTMAX    dx = s * (dy - p * sum(dy))
 *
 * p comes from args.y, the result of the forward call (an 8-bit y is divided by y_scale, and the
 * exponential is taken for LOGSOFTMAX), which is not written; x is not looked at. Or, with
 * GIVEN_STATS and y NULL, from x, row_max and row_sum as above. softcap needs the second. dx has
 * x_dtype, dy has dy_dtype. A masked element has dx = 0 exactly (ADDITIVE: where the mask is -inf),
 * and its dy is not looked at; so does an empty row with SOFTMAX_EMPTY_ROW_ZERO (from y of SOFTMAX,
 * where dy is finite). Sums are kept in float64, F64's with compensation; dx is rounded once.
 */
typedef struct softmax_desc_t {
  uint64_t struct_size; /* sizeof(softmax_desc_t); softmax_desc_init sets it */
  uint64_t flags;       /* SOFTMAX_FLAG_* */

  int32_t op;        /* SOFTMAX_OP_* */
  int32_t direction; /* SOFTMAX_DIRECTION_* */
  int32_t x_dtype;   /* SOFTMAX_DTYPE_* of x and dx (and of dy: see dy_dtype) */
  int32_t y_dtype;   /* SOFTMAX_DTYPE_* of y */
  int32_t ndim;      /* number of dimensions, 1 to SOFTMAX_MAX_NDIM */
  int32_t axis;      /* the softmax axis, -ndim to ndim - 1 */
  int32_t mask_kind; /* SOFTMAX_MASK_* */
  int32_t empty_row; /* SOFTMAX_EMPTY_ROW_* */

  /* Extents, and strides in elements; entries at and past ndim are ignored. A stride array that is
   * all zero up to ndim, ignored entries among them, stands for contiguous, row-major. Else the
   * stride of a dimension of extent 1 is ignored, whatever its sign.
   */
  int64_t shape[SOFTMAX_MAX_NDIM];
  int64_t x_stride[SOFTMAX_MAX_NDIM]; /* of x and dx */
  int64_t y_stride[SOFTMAX_MAX_NDIM];
  int64_t dy_stride[SOFTMAX_MAX_NDIM];   /* used by BACKWARD alone */
  int64_t mask_stride[SOFTMAX_MAX_NDIM]; /* used with a mask buffer alone */

  int64_t causal_offset; /* used by SOFTMAX_MASK_CAUSAL alone */

  /* Multiplies x before everything else. Not finite: INVALID_ARGUMENT. softmax_desc_init sets 1. */
  double scale;

  /* A promise in bytes, a power of two, that x and y and each of their rows are aligned to, for
   * softmax_select, which sees no pointers; 0 promises the element's own alignment. A larger actual
   * alignment is found and used without it. Not a power of two: INVALID_ARGUMENT.
   */
  uint64_t alignment;

  /* Appended to the first 392 bytes. */

  double softcap; /* 0: none. Negative or not finite: INVALID_ARGUMENT */

  /* Multiplies results of an 8-bit y_dtype before they are rounded to it; 0 stands for 1. Negative
   * or not finite: INVALID_ARGUMENT. Neither 0 nor 1 with a wider y_dtype: NOT_SUPPORTED.
   */
  double y_scale;

  int64_t sink_stride[SOFTMAX_MAX_NDIM]; /* used with args.sink alone; the axis' entry is ignored */

  int32_t dy_dtype; /* SOFTMAX_DTYPE_* of dy, used by BACKWARD alone; 0 stands for x_dtype */
  int32_t reserved; /* 0, or NEWER_FIELD */
} softmax_desc_t;

/* The buffers of one call. Zero the struct, set struct_size, then the fields that are needed. A
 * buffer that the call has no use for is refused with INVALID_ARGUMENT unless it is said otherwise.
 */
typedef struct softmax_args_t {
  uint64_t struct_size; /* sizeof(softmax_args_t) */
  uint64_t reserved;    /* 0, or NEWER_FIELD */
  const void *x;        /* input; BACKWARD from y: not looked at */
  void *y;              /* output; STATS: not looked at; BACKWARD: an input, or NULL */
  const void *mask;     /* NULL with SOFTMAX_MASK_NONE and CAUSAL, or INVALID_ARGUMENT */
  const float *row_scale; /* one factor a row on top of desc.scale, or NULL */
  float *lse;             /* log-sum-exp a row, or NULL */
  float *row_max;         /* maximum a row, or NULL; an input with GIVEN_STATS */
  float *row_sum;         /* sum of exp(v - row_max) a row, or NULL; an input with GIVEN_STATS */
  const void *dy;         /* used by BACKWARD alone */
  void *dx;               /* used by BACKWARD alone */
  void *workspace;        /* device memory for this call, before the handle's own; may be NULL */
  uint64_t workspace_bytes;
  const float *sink; /* one logit a row that has no output, or NULL */
} softmax_args_t;

/* Fills *desc for op over (M, N), one data type, contiguous, scale 1, no mask, no flags, and sets
 * desc->struct_size = struct_size. Pass sizeof(softmax_desc_t) as struct_size: exactly so many
 * bytes are written, the unknown tail of a newer header's struct as zeros.
 *
 * Errors: NULL_POINTER; STRUCT_SIZE (below the first release's, or above 65536). The values of the
 * other arguments are stored as they are and checked by softmax_desc_check.
 */
SOFTMAX_API softmax_status_t softmax_desc_init(softmax_desc_t *desc, size_t struct_size, int32_t op,
                                               softmax_dtype_t dtype, int64_t M, int64_t N);

/* Checks everything about a descriptor that needs no device and no pointers: sizes, constants,
 * shapes, strides, overflow, and whether this release can compute it. Needs no GPU.
 *
 * Errors: NULL_POINTER; STRUCT_SIZE; NEWER_FIELD; BAD_ENUM; BAD_SHAPE; BAD_STRIDE;
 * INVALID_ARGUMENT; NOT_SUPPORTED; NOT_SUPPORTED_DTYPE; NOT_SUPPORTED_LAYOUT. A malformed
 * descriptor (1xxx) is reported before an unsupported one (2xxx).
 */
SOFTMAX_API softmax_status_t softmax_desc_check(const softmax_desc_t *desc);

/* Computes what desc says with the buffers of args. The headline calls are this call.
 *
 * Errors: all of softmax_desc_check and of softmax_forward_to.
 */
SOFTMAX_API softmax_status_t softmax_execute(softmax_handle_t handle, softmax_algo_t algo,
                                             const softmax_desc_t *desc,
                                             const softmax_args_t *args, softmax_stream_t stream);

/* Merges the statistics of rows whose parts were computed apart: by STATS over slices of the axis,
 * or on other devices.
 *
 *   parts               number of parts of each row, >= 1
 *   rows                number of rows, >= 0
 *   part_max, part_sum  (parts, rows) row-major: row r of part p is at p*rows + r
 *   row_max, row_sum, lse  outputs of `rows` floats; each may be NULL, not all three
 *
 * For each row: the maximum of the parts' maxima; the sum, over the parts in order, of
 * part_sum * exp(part_max - maximum), accumulated in float64 and rounded once; and
 * maximum + log(sum), with the sum before its rounding, rounded once. A part whose maximum is -inf
 * adds nothing, whatever its sum; if all are, the row is empty: -inf, 0, -inf. A NaN in any other
 * part, or a maximum of +inf, makes all three NaN, of one part too; else one part comes back as it
 * is. Parts are added in order, with the same bits on every device.
 *
 * A sink belongs into one part alone.
 *
 * Errors: BAD_HANDLE; BAD_SHAPE; NULL_POINTER; INVALID_ARGUMENT (alignment); OVERLAP (of an output
 * and any other buffer); WRONG_DEVICE; CUDA.
 */
SOFTMAX_API softmax_status_t softmax_merge_stats(softmax_handle_t handle, int64_t parts,
                                                 int64_t rows, const float *part_max,
                                                 const float *part_sum, float *row_max,
                                                 float *row_sum, float *lse,
                                                 softmax_stream_t stream);

/* ------------------------------------------------
 * 11  ASKING WITHOUT RUNNING
 */

/* What softmax_execute would run. An output: the caller sets struct_size, the library fills the
 * rest, and never writes past struct_size. A field that means nothing for an algorithm or a device
 * is 0.
 */
typedef struct softmax_choice_t {
  uint64_t struct_size;
  uint64_t workspace_bytes; /* scratch that the call would need */
  int32_t algo;             /* SOFTMAX_ALGO_*, never AUTO */
  int32_t rows_per_block;   /* rows that one thread block works on at a time */
  int32_t threads;          /* threads in a block; CPU: OpenMP threads at most */
  int32_t cluster;          /* blocks in a cluster */
  int32_t stages;           /* tiles in flight */
  int32_t vec_bytes;        /* width of the widest load */
  int64_t smem_bytes;       /* shared memory a block, dynamic and static */
  char kernel[64];          /* name of the kernel, NUL-terminated */
  char reason[128];         /* one sentence: why this one, NUL-terminated */
} softmax_choice_t;

/* Tells what would run for desc on the handle's device, and why. Pure host code: nothing is
 * enqueued and the device is not touched. It is the same function that the computing calls use.
 *
 * With the log at SOFTMAX_LOG_DEBUG, every candidate that AUTO did not take is logged with the
 * reason.
 *
 * Errors: BAD_HANDLE; NULL_POINTER; STRUCT_SIZE (of out or desc); all of softmax_desc_check;
 * BAD_ENUM; NOT_SUPPORTED_ALGO (softmax_last_error says why). On failure *out is unchanged.
 */
SOFTMAX_API softmax_status_t softmax_select(softmax_handle_t handle, softmax_algo_t algo,
                                            const softmax_desc_t *desc, softmax_choice_t *out);

/* ------------------------------------------------
 * 12  ERRORS, NAMES, LOG. None of these fails, allocates or touches a device.
 */

/* The library's version: major * 10000 + minor * 100 + patch, and as text ("0.1.0"). */
SOFTMAX_API int32_t softmax_version(void);
SOFTMAX_API const char *softmax_version_string(void);

/* One line about this build: version, source id, CUDA runtime, GPU architectures, compiler and
 * SIMD target.
 */
SOFTMAX_API const char *softmax_build_info(void);

/* The constant's name ("SOFTMAX_STATUS_BAD_SHAPE") and a sentence about it. Static strings, never
 * NULL: an unknown status gets "SOFTMAX_STATUS_UNKNOWN".
 */
SOFTMAX_API const char *softmax_status_name(softmax_status_t status);
SOFTMAX_API const char *softmax_status_string(softmax_status_t status);

/* The sentence of the calling thread's last failed call, with the values that were wrong, copied to
 * buf with a terminating NUL and cut to `cap` bytes. Empty before the first failure; successful
 * calls do not clear it. Returns the sentence's whole length without the NUL; buf may be NULL when
 * cap is 0.
 */
SOFTMAX_API size_t softmax_last_error(char *buf, size_t cap);

/* The cudaError_t behind the calling thread's last failed call, or 0 where CUDA had no part in it.
 * */
SOFTMAX_API int32_t softmax_last_cuda_error(void);

/* An algorithm's name in lower case ("warp_online"), NULL for a number that has none. */
SOFTMAX_API const char *softmax_algo_name(softmax_algo_t algo);

/* The number of a name, in any case, into *algo. Errors: NULL_POINTER; BAD_ENUM (no such name). */
SOFTMAX_API softmax_status_t softmax_algo_from_name(const char *name, softmax_algo_t *algo);

/* Sets the function that gets log lines of `level` and below, for the whole process; NULL or
 * SOFTMAX_LOG_OFF turns the log off. `message` lives for the duration of the call only, has no
 * newline, and fn may be called from any thread that calls the library, several at once. fn must
 * not call the library, except softmax_*_name, and must not throw.
 *
 * The environment variable SOFTMAX_LOG (error, info, debug or 1, 2, 3), read once, turns on a log
 * to stderr without a callback; a callback replaces it. Otherwise the library never writes to
 * stdout or stderr, and it never aborts the process.
 *
 * Errors: BAD_ENUM (no such level).
 */
typedef void (*softmax_log_fn)(int32_t level, const char *message, void *user);
SOFTMAX_API softmax_status_t softmax_set_log(softmax_log_fn fn, void *user, int32_t level);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SOFTMAX_H */
