/* softmax.hpp - the C++ interface of libsoftmax: RAII, exceptions and types over softmax.h.
 *
 *     softmax::Handle handle;                        // on a GPU if there is one
 *     handle.forward(logits, rows, cols);            // softmax, in place, of float *logits
 *     handle.log_forward(x, y, rows, cols, stream);  // log-softmax from x to y
 *
 * Header-only, C++17, and nothing but calls of the C functions: what they compute, which memory and
 * streams they take, which threads may call them and how accurate they are is said in softmax.h,
 * and holds here word for word. This page says only what C++ adds.
 *
 * OWNERSHIP. A Handle owns a softmax_handle_t and frees it. It can be moved and not copied. It owns
 * no buffer and no stream: those stay the caller's, as in softmax.h.
 *
 * THREADS. The computing members are const: any number of threads may use one Handle at once.
 * Moving it, assigning to it, destroying it and set_workspace need it for themselves.
 *
 * ERRORS. A call that fails throws softmax::Error, which holds the status and the sentence of
 * softmax_last_error. As in C, nothing was enqueued and nothing was written then, save after
 * SOFTMAX_STATUS_CUDA and SOFTMAX_STATUS_INTERNAL. Destructors and moves do not throw. Code that is
 * compiled without exceptions uses softmax.h.
 *
 * ABI. Everything here is inline and compiled into the caller. The functions behind it are those of
 * softmax.h, with its promise. The inline namespace keeps these names apart from those of another
 * version of this header, and from the library's own, in one program.
 */
#ifndef SOFTMAX_HPP
#define SOFTMAX_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "softmax.h"

#if __cplusplus < 201703L
#error "softmax.hpp needs C++17; softmax.h is for C++11 and for C"
#endif
#if !defined(__cpp_exceptions)
#error "softmax.hpp throws softmax::Error; without exceptions, use softmax.h"
#endif
#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_span)
#include <span>
#endif
#if defined(__STDCPP_FLOAT16_T__) || defined(__STDCPP_BFLOAT16_T__)
#include <stdfloat>
#endif

namespace softmax {
inline namespace cxx0 {

/* -------------------------------------------------------------------------------------------------
 * Errors
 */

/* A refused or failed call. what() is the sentence of softmax_last_error, which names the values
 * that were wrong.
 */
class Error : public std::runtime_error {
 public:
  Error(softmax_status_t status, const std::string &sentence)
      : std::runtime_error(sentence), status_(status) {}

  /* One of SOFTMAX_STATUS_*; status() / 1000 is its category. */
  softmax_status_t status() const noexcept { return status_; }

  /* "SOFTMAX_STATUS_BAD_SHAPE" */
  const char *name() const noexcept { return softmax_status_name(status_); }

 private:
  softmax_status_t status_;
};

/* Throws an Error for any status but SOFTMAX_SUCCESS. For callers of the C functions: call it in
 * the thread that made the failed call, before its next one.
 */
inline void throw_on_error(softmax_status_t status) {
  if (status == SOFTMAX_SUCCESS) return;
  std::string sentence(softmax_last_error(nullptr, 0), '\0');
  softmax_last_error(sentence.data(), sentence.size() + 1);
  if (sentence.empty()) sentence = softmax_status_string(status);
  throw Error(status, sentence);
}

/* -------------------------------------------------------------------------------------------------
 * Element types
 */

/* A 16-bit element, as its bits: no arithmetic, only a type to tell the two formats apart. */
struct F16 {
  std::uint16_t bits; /* IEEE 754 binary16 */
};
struct BF16 {
  std::uint16_t bits; /* the upper half of a binary32 */
};

/* The SOFTMAX_DTYPE_* of a C++ type. A program that has another 16-bit type of the same bits may
 * say so, for example for CUDA's __half:
 *
 *     template <> struct softmax::DtypeOf<__half> : softmax::DtypeOf<softmax::F16> {};
 */
template <typename T>
struct DtypeOf;
template <>
struct DtypeOf<float> : std::integral_constant<softmax_dtype_t, SOFTMAX_DTYPE_F32> {};
template <>
struct DtypeOf<double> : std::integral_constant<softmax_dtype_t, SOFTMAX_DTYPE_F64> {};
template <>
struct DtypeOf<F16> : std::integral_constant<softmax_dtype_t, SOFTMAX_DTYPE_F16> {};
template <>
struct DtypeOf<BF16> : std::integral_constant<softmax_dtype_t, SOFTMAX_DTYPE_BF16> {};
#if defined(__STDCPP_FLOAT16_T__)
template <>
struct DtypeOf<std::float16_t> : DtypeOf<F16> {};
#endif
#if defined(__STDCPP_BFLOAT16_T__)
template <>
struct DtypeOf<std::bfloat16_t> : DtypeOf<BF16> {};
#endif

/* -------------------------------------------------------------------------------------------------
 * The general call's descriptor
 */

/* softmax_desc_init: op over (rows, cols) of one type, contiguous. Fields may be set afterwards. */
inline softmax_desc_t make_desc(std::int32_t op, softmax_dtype_t dtype, std::int64_t rows,
                                std::int64_t cols) {
  softmax_desc_t desc;
  throw_on_error(softmax_desc_init(&desc, sizeof desc, op, dtype, rows, cols));
  return desc;
}

/* -------------------------------------------------------------------------------------------------
 * Handle
 */

/* A device, ready to compute: see softmax_create. */
class Handle {
 public:
  /* SOFTMAX_DEVICE_AUTO, SOFTMAX_DEVICE_CPU or a CUDA ordinal. */
  explicit Handle(std::int32_t device = SOFTMAX_DEVICE_AUTO) {
    throw_on_error(softmax_create(&handle_, device));
  }

  ~Handle() { softmax_destroy(handle_); }

  /* The handle moved from is empty: it may be assigned to or destroyed, and a computing call on it
   * throws SOFTMAX_STATUS_BAD_HANDLE.
   */
  Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle &operator=(Handle &&other) noexcept {
    if (this != &other) {
      softmax_destroy(handle_);
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;

  /* The C handle, still owned by this object; NULL after a move. */
  softmax_handle_t get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  /* SOFTMAX_DEVICE_CPU or a CUDA ordinal. */
  std::int32_t device() const {
    std::int32_t device = 0;
    throw_on_error(softmax_handle_device(handle_, &device));
    return device;
  }

  /* One line about the device, for people. */
  std::string description() const {
    std::string line(softmax_handle_description(handle_, nullptr, 0), '\0');
    softmax_handle_description(handle_, line.data(), line.size() + 1);
    return line;
  }

  /* softmax_set_workspace. */
  void set_workspace(void *ptr, std::size_t bytes) {
    throw_on_error(softmax_set_workspace(handle_, ptr, bytes));
  }

  /* Softmax over each row of the row-major (rows, cols) matrix at `data`, in place. T is float,
   * double, F16, BF16 or any type with a DtypeOf. `data` lies on the handle's device.
   */
  template <typename T>
  void forward(T *data, std::int64_t rows, std::int64_t cols, softmax_stream_t stream = nullptr,
               softmax_algo_t algo = SOFTMAX_ALGO_AUTO) const {
    if constexpr (std::is_same_v<T, float>) {
      throw_on_error(softmax_forward(handle_, algo, data, rows, cols, stream));
    } else {
      forward(static_cast<const T *>(data), data, rows, cols, stream, algo);
    }
  }

  /* The same from x to y, in one of the pairs of types of softmax_forward_to. */
  template <typename X, typename Y>
  void forward(const X *x, Y *y, std::int64_t rows, std::int64_t cols,
               softmax_stream_t stream = nullptr, softmax_algo_t algo = SOFTMAX_ALGO_AUTO) const {
    throw_on_error(softmax_forward_to(handle_, algo, x, DtypeOf<X>::value, y, DtypeOf<Y>::value,
                                      rows, cols, stream));
  }

  /* Log-softmax, otherwise as forward. */
  template <typename T>
  void log_forward(T *data, std::int64_t rows, std::int64_t cols, softmax_stream_t stream = nullptr,
                   softmax_algo_t algo = SOFTMAX_ALGO_AUTO) const {
    if constexpr (std::is_same_v<T, float>) {
      throw_on_error(logsoftmax_forward(handle_, algo, data, rows, cols, stream));
    } else {
      log_forward(static_cast<const T *>(data), data, rows, cols, stream, algo);
    }
  }
  template <typename X, typename Y>
  void log_forward(const X *x, Y *y, std::int64_t rows, std::int64_t cols,
                   softmax_stream_t stream = nullptr,
                   softmax_algo_t algo = SOFTMAX_ALGO_AUTO) const {
    throw_on_error(logsoftmax_forward_to(handle_, algo, x, DtypeOf<X>::value, y, DtypeOf<Y>::value,
                                         rows, cols, stream));
  }

#if defined(__cpp_lib_span)
  /* The same over spans, in C++20. A span whose size is not rows * cols is refused with
   * SOFTMAX_STATUS_BAD_SHAPE.
   */
  template <typename T, std::size_t Extent>
  void forward(std::span<T, Extent> data, std::int64_t rows, std::int64_t cols,
               softmax_stream_t stream = nullptr, softmax_algo_t algo = SOFTMAX_ALGO_AUTO) const {
    require_size(data.size(), rows, cols);
    forward(data.data(), rows, cols, stream, algo);
  }
  template <typename X, std::size_t ExtentX, typename Y, std::size_t ExtentY>
  void forward(std::span<X, ExtentX> x, std::span<Y, ExtentY> y, std::int64_t rows,
               std::int64_t cols, softmax_stream_t stream = nullptr,
               softmax_algo_t algo = SOFTMAX_ALGO_AUTO) const {
    require_size(x.size(), rows, cols);
    require_size(y.size(), rows, cols);
    forward(static_cast<const X *>(x.data()), y.data(), rows, cols, stream, algo);
  }
  template <typename T, std::size_t Extent>
  void log_forward(std::span<T, Extent> data, std::int64_t rows, std::int64_t cols,
                   softmax_stream_t stream = nullptr,
                   softmax_algo_t algo = SOFTMAX_ALGO_AUTO) const {
    require_size(data.size(), rows, cols);
    log_forward(data.data(), rows, cols, stream, algo);
  }
  template <typename X, std::size_t ExtentX, typename Y, std::size_t ExtentY>
  void log_forward(std::span<X, ExtentX> x, std::span<Y, ExtentY> y, std::int64_t rows,
                   std::int64_t cols, softmax_stream_t stream = nullptr,
                   softmax_algo_t algo = SOFTMAX_ALGO_AUTO) const {
    require_size(x.size(), rows, cols);
    require_size(y.size(), rows, cols);
    log_forward(static_cast<const X *>(x.data()), y.data(), rows, cols, stream, algo);
  }
#endif

  /* softmax_execute. */
  void execute(const softmax_desc_t &desc, const softmax_args_t &args,
               softmax_stream_t stream = nullptr, softmax_algo_t algo = SOFTMAX_ALGO_AUTO) const {
    throw_on_error(softmax_execute(handle_, algo, &desc, &args, stream));
  }

  /* softmax_select: what would run, and why. */
  softmax_choice_t select(const softmax_desc_t &desc,
                          softmax_algo_t algo = SOFTMAX_ALGO_AUTO) const {
    softmax_choice_t choice{};
    choice.struct_size = sizeof choice;
    throw_on_error(softmax_select(handle_, algo, &desc, &choice));
    return choice;
  }

 private:
  static void require_size(std::size_t size, std::int64_t rows, std::int64_t cols) {
    const auto r = static_cast<std::uint64_t>(rows), c = static_cast<std::uint64_t>(cols);
    const bool fits = rows >= 0 && cols >= 0 && (c == 0 || r <= UINT64_MAX / c) && r * c == size;
    if (!fits) {
      throw Error(SOFTMAX_STATUS_BAD_SHAPE,
                  "a span of " + std::to_string(size) + " elements is not a matrix of " +
                      std::to_string(rows) + " x " + std::to_string(cols));
    }
  }

  softmax_handle_t handle_ = nullptr;
};

/* -------------------------------------------------------------------------------------------------
 * Around it
 */

/* Of the library in use: major * 10000 + minor * 100 + patch, and as text. */
inline std::int32_t version() noexcept { return softmax_version(); }
inline std::string version_string() { return softmax_version_string(); }

/* CUDA devices that the driver shows; 0 without a GPU, a driver, or CUDA in the build. */
inline std::int32_t device_count() {
  std::int32_t count = 0;
  throw_on_error(softmax_device_count(&count));
  return count;
}

/* The number of an algorithm's name, in any case: "warp_online". */
inline softmax_algo_t algorithm_from_name(const std::string &name) {
  softmax_algo_t algo = SOFTMAX_ALGO_AUTO;
  throw_on_error(softmax_algo_from_name(name.c_str(), &algo));
  return algo;
}

} /* namespace cxx0 */
} /* namespace softmax */

#endif /* SOFTMAX_HPP */
