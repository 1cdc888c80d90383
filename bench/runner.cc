// One cell of the benchmark. See runner.h.
#include "runner.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "device.h"

namespace bench {
namespace {

constexpr int kColdL2Multiple = 3;
constexpr std::int64_t kPairAlignment = 4096;  // bytes
constexpr float kSigma = 3.0f;                 // logits spread as those of a trained model
constexpr std::uint32_t kSeed = 20261130;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

void check_softmax(softmax_status_t status, const char *what) {
  if (status == SOFTMAX_SUCCESS) return;
  char sentence[512];
  softmax_last_error(sentence, sizeof sentence);
  throw std::runtime_error(std::string(what) + ": " + softmax_status_name(status) + ": " +
                           sentence);
}

Runner::Runner(int device, std::int64_t max_bytes) {
  check_cuda(cudaSetDevice(device), "choosing the device");
  check_cuda(cudaGetDeviceProperties(&properties_, device), "reading the device's properties");
  check_softmax(softmax_create(&handle_, device), "softmax_create");
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  // Room for two of the largest shape, and for three L2s of a small one.
  pool_bytes_ = std::max<std::int64_t>(2 * round_up(max_bytes, kPairAlignment),
                                       kColdL2Multiple * properties_.l2CacheSize);
  check_cuda(cudaMalloc(&x_pool_, pool_bytes_), "allocating the inputs");
  check_cuda(cudaMalloc(&y_pool_, pool_bytes_), "allocating the outputs");
}

Runner::~Runner() {
  cudaFree(x_pool_);
  cudaFree(y_pool_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
  softmax_destroy(handle_);
}

int Runner::pairs() const {
  if (shape_.mode == Mode::kHot) return 1;
  const std::int64_t pair_bytes = 2 * shape_.bytes();
  const std::int64_t past = std::int64_t{kColdL2Multiple} * properties_.l2CacheSize;
  return static_cast<int>(std::max<std::int64_t>(2, (past + pair_bytes - 1) / pair_bytes));
}

void *Runner::x(int pair) const {
  return static_cast<char *>(x_pool_) + pair * round_up(shape_.bytes(), kPairAlignment);
}

void *Runner::y(int pair) const {
  return static_cast<char *>(y_pool_) + pair * round_up(shape_.bytes(), kPairAlignment);
}

void Runner::prepare(const Shape &shape) {
  shape_ = shape;
  if (pairs() * round_up(shape.bytes(), kPairAlignment) > pool_bytes_) {
    throw std::runtime_error("a shape is larger than the buffers that were made for it");
  }
  if (filled_with_ != shape.dtype) {
    fill_normal(x_pool_, shape.dtype, pool_bytes_ / element_bytes(shape.dtype), kSigma, kSeed,
                stream_);
    filled_with_ = shape.dtype;
  }
  check_.emplace(x(0), shape.dtype, shape.rows, shape.cols);
}

CopyTiming Runner::time_copy(const TimingBox &box) {
  const auto bytes = static_cast<std::size_t>(shape_.bytes());
  const Enqueue by_memcpy = [&](int pair, cudaStream_t stream) {
    check_cuda(cudaMemcpyAsync(y(pair), x(pair), bytes, cudaMemcpyDeviceToDevice, stream),
               "enqueueing a copy");
  };
  const Enqueue by_kernel = [&](int pair, cudaStream_t stream) {
    streaming_copy(y(pair), x(pair), bytes, stream);
  };
  by_kernel(0, stream_);
  CopyTiming copy;
  copy.memcpy = time_calls(by_memcpy, pairs(), box, stream_);
  copy.kernel = time_calls(by_kernel, pairs(), box, stream_);
  return copy;
}

void Runner::enqueue(softmax_algo_t algo, int pair, cudaStream_t stream) const {
  check_softmax(softmax_forward_to(handle_, algo, x(pair), shape_.dtype, y(pair), shape_.dtype,
                                   shape_.rows, shape_.cols, stream),
                "softmax_forward_to");
}

softmax_status_t Runner::ask(softmax_algo_t algo, softmax_choice_t *choice) const {
  softmax_desc_t desc;
  check_softmax(softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, shape_.dtype, shape_.rows,
                                  shape_.cols),
                "softmax_desc_init");
  *choice = {};
  choice->struct_size = sizeof *choice;
  return softmax_select(handle_, algo, &desc, choice);
}

softmax_choice_t Runner::choose(softmax_algo_t algo) const {
  softmax_choice_t choice;
  check_softmax(ask(algo, &choice), "softmax_select");
  return choice;
}

bool Runner::accepts(softmax_algo_t algo, std::string *why) const {
  softmax_choice_t choice;
  const softmax_status_t status = ask(algo, &choice);
  if (status != SOFTMAX_STATUS_NOT_SUPPORTED_ALGO) {
    check_softmax(status, "softmax_select");
    return true;
  }
  char sentence[512];
  softmax_last_error(sentence, sizeof sentence);
  *why = sentence;
  return false;
}

AlgoTiming Runner::run(softmax_algo_t algo, const TimingBox &box) {
  AlgoTiming result = run_with(
      [&](const void *x, void *y, cudaStream_t stream) {
        return softmax_forward_to(handle_, algo, x, shape_.dtype, y, shape_.dtype, shape_.rows,
                                  shape_.cols, stream);
      },
      box);
  result.choice = choose(algo);
  return result;
}

AlgoTiming Runner::run_with(const Call &call, const TimingBox &box) {
  const Enqueue enqueue = [&](int pair, cudaStream_t stream) {
    check_softmax(call(x(pair), y(pair), stream), "enqueueing a softmax");
  };
  AlgoTiming result{};
  poison(y(0), static_cast<std::size_t>(shape_.bytes()), stream_);
  enqueue(0, stream_);
  result.nan_count = count_nan(y(0), shape_.dtype, shape_.elements(), stream_);
  result.max_ulp = check_->max_ulp(y(0));
  result.wrong = result.nan_count > 0 || !(result.max_ulp <= promised_ulp(shape_.dtype));
  if (result.wrong) return result;  // the time of a wrong answer says nothing

  result.timing = time_calls(enqueue, pairs(), box, stream_);
  return result;
}

void Runner::launch_once(softmax_algo_t algo) {
  enqueue(algo, 0, stream_);
  check_cuda(cudaStreamSynchronize(stream_), softmax_algo_name(algo));
}

void Runner::copy_once() {
  streaming_copy(y(0), x(0), static_cast<std::size_t>(shape_.bytes()), stream_);
  check_cuda(cudaStreamSynchronize(stream_), "copy");
}

}  // namespace bench
