// Reductions over the lanes of a warp: maxima that keep a NaN, and the parts of a row.
//
// Every lane gets the same bits, in an order that is a function of the numbers of lanes and parts
// alone, or that does not matter.
#pragma once

#include "core/row_part.h"
#include "cuda/prim/reduce.cuh"

namespace softmax {

// Over groups of `lanes` neighbouring lanes, a power of two that the whole warp agrees on, for
// several rows at once: one question a step, and no row waits for another's shuffles.
template <typename T, int kRows, typename Larger>
__device__ __forceinline__ void lanes_reduce(T (&value)[kRows], int lanes, Larger larger) {
#pragma unroll
  for (int step = kWarpThreads / 2; step > 0; step /= 2) {
    if (step < lanes) {
#pragma unroll
      for (T &v : value) v = larger(v, __shfl_xor_sync(kFullWarp, v, step));
    }
  }
}
template <typename T, int kRows>
__device__ __forceinline__ void lanes_max_or_nan(T (&value)[kRows], int lanes) {
  lanes_reduce(value, lanes, [](T a, T b) { return max_or_nan(a, b); });
}
template <typename T>
__device__ __forceinline__ T lanes_max_or_nan(T value, int lanes) {
  T one[1] = {value};
  lanes_max_or_nan(one, lanes);
  return one[0];
}

// The largest over a whole warp, or a NaN. Whole warps have an instruction for integers, which
// takes a fifth of five shuffles' time: floats are in the order of integers once the negative ones
// are turned round, and a NaN, which max_or_nan has made positive, comes last.
__device__ __forceinline__ float warp_max_or_nan(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  return lanes_max_or_nan(value, kWarpThreads);
#else
  const auto turned = [](int bits) { return bits ^ (bits >> 31 & 0x7fffffff); };
  return __int_as_float(turned(__reduce_max_sync(kFullWarp, turned(__float_as_int(value)))));
#endif
}
__device__ __forceinline__ double warp_max_or_nan(double value) {
  return lanes_max_or_nan(value, kWarpThreads);
}

__device__ __forceinline__ unsigned warp_sum(unsigned value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  for (int step = kWarpThreads / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(kFullWarp, value, step);
  }
  return value;
#else
  return __reduce_add_sync(kFullWarp, value);
#endif
}

__device__ __forceinline__ WideSum<float> shuffled(const WideSum<float> &sum, int step) {
  return {__shfl_xor_sync(kFullWarp, sum.value, step)};
}
__device__ __forceinline__ WideSum<double> shuffled(const WideSum<double> &sum, int step) {
  WideSum<double> other;
  other.value.hi = __shfl_xor_sync(kFullWarp, sum.value.hi, step);
  other.value.lo = __shfl_xor_sync(kFullWarp, sum.value.lo, step);
  return other;
}

// Of parts with the same maximum in every lane of a row.
template <typename T, int kRows>
__device__ __forceinline__ void lanes_part(RowPart<T> (&part)[kRows], bool is_log, int lanes) {
#pragma unroll
  for (int step = kWarpThreads / 2; step > 0; step /= 2) {
    if (step < lanes) {
#pragma unroll
      for (RowPart<T> &p : part) {
        p.others.add(shuffled(p.others, step));
        if (is_log) p.ones += __shfl_xor_sync(kFullWarp, p.ones, step);
      }
    }
  }
}
template <typename T>
__device__ __forceinline__ RowPart<T> lanes_part(const RowPart<T> &part, bool is_log, int lanes) {
  RowPart<T> one[1] = {part};
  lanes_part(one, is_log, lanes);
  return one[0];
}

// As lanes_part, of as many rows as there are lanes or fewer, but that each lane gets one row's
// part alone: row member / (lanes / kRows), `member` being its number among the lanes. Half of the
// rows are given away with every step for what the other lane has of the rest, so that a row costs
// its share of the shuffles. The same additions of the same numbers.
template <typename T, int kRows>
__device__ __forceinline__ RowPart<T> part_of_one_row(RowPart<T> (&part)[kRows], bool is_log,
                                                      int lanes, int member) {
  int step = lanes / 2;
#pragma unroll
  for (int rows = kRows / 2; rows > 0; rows /= 2) {
    const bool is_upper = (member & step) != 0;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const RowPart<T> given = is_upper ? part[r] : part[r + rows];
      part[r] = is_upper ? part[r + rows] : part[r];
      part[r].others.add(shuffled(given.others, step));
      if (is_log) part[r].ones += __shfl_xor_sync(kFullWarp, given.ones, step);
    }
    step /= 2;
  }
  for (; step > 0; step /= 2) {
    part[0].others.add(shuffled(part[0].others, step));
    if (is_log) part[0].ones += __shfl_xor_sync(kFullWarp, part[0].ones, step);
  }
  return part[0];
}

// A sum over a whole warp of softmax terms in units, below 2^kBits of them in each lane and not
// negative: in integers, so in any order. Each lane's is rounded to 2^(kBits - 51) units.
template <int kBits>
__device__ __forceinline__ double warp_sum_of_units(double value) {
  constexpr double kLast = 0x1p64 / (1ll << (51 - kBits));
  constexpr double kRound = 0x1.8p52 * kLast;  // adding it rounds to multiples of kLast
  constexpr int kHalf = 26;                    // bits: 32 of them together are below 2^31
  const long long count = __double_as_longlong(value + kRound) - __double_as_longlong(kRound);
  const unsigned low = warp_sum(static_cast<unsigned>(count) & ((1u << kHalf) - 1));
  const unsigned high = warp_sum(static_cast<unsigned>(count >> kHalf));
  return (double(high) * (1 << kHalf) + double(low)) * kLast;
}

// The same as lanes_part over a whole warp, whose order does not matter where kBits says what a
// lane's sum is below. A sum without the maximum's own terms (is_log) is needed to full relative
// precision, however small it is.
template <int kBits, typename T>
__device__ __forceinline__ RowPart<T> warp_part(RowPart<T> part, bool is_log) {
  if constexpr (sizeof(T) == 4 && kBits > 0) {
    if (!is_log) {
      part.others.value = warp_sum_of_units<kBits>(part.others.value);
      return part;
    }
  }
  return lanes_part(part, is_log, kWarpThreads);
}

// For kBits: the sum of so many terms, each at most 2^(1/2) units, is below 2^bits of them.
constexpr int unit_bits(int terms) {
  int bits = 1;
  while ((1 << bits) * 2 < terms * 3) ++bits;
  return bits;
}

// The same of a lane's parts, when all of a row's runs are merged by one warp: 16 of 512 runs, each
// of 32 lanes with up to 72 terms. One number for all who share an order of additions: rounding
// depends on it.
constexpr int kRunsBits = 16;

// Parts of a row whose maximum is near. Where a part's is near too their references are powers of
// two, and the exponents are added; a part so far below adds nothing that a sum would show.
class NearMerge {
 public:
  __device__ __forceinline__ NearMerge(float max, float limit, bool is_log)
      : row_(RowPart<float>::of(max)),
        limit_(limit),
        is_log_(is_log),
        bits_(reference_exponent_bits(max)) {}

  // Without a branch: where lanes have several parts each, all of them are under way together. What
  // is no near part's is left for add_far.
  __device__ __forceinline__ void add(const RowPart<float> &part) {
    const bool counts = is_part(part);
    const bool near = is_near(part.max, limit_);
    double sum = part.others.value;  // 0 only where exponents are equal
    if (is_log_) {
      const bool is_max = part.max == row_.max;
      row_.ones += is_max ? part.ones : 0.0f;
      sum += is_max ? 0.0 : double(part.ones * 0x1p-64f * NearTerms(part.max)(part.max));
    }
    const std::uint32_t exponent = reference_exponent_bits(part.max) - bits_;
    const auto high = static_cast<std::uint32_t>(__double2hiint(sum));
    sum = __hiloint2double(static_cast<int>(high + (exponent << 20)), __double2loint(sum));
    row_.others.value += counts && near ? sum : 0.0;
    has_far_ |= counts && !near;
  }
  __device__ __forceinline__ bool has_far() const { return has_far_; }
  __device__ __forceinline__ void add_far(RowPart<float> part) {
    if (!is_part(part) || is_near(part.max, limit_)) return;
    part.rescale(row_.max, limit_);
    row_.others.add(part.others);
  }
  __device__ __forceinline__ const RowPart<float> &row() const { return row_; }

 private:
  __device__ __forceinline__ bool is_part(const RowPart<float> &part) const {
    constexpr float kNothingBelow = 120.0f;
    return part.max > row_.max - kNothingBelow;
  }

  RowPart<float> row_;
  float limit_;
  bool is_log_;
  std::uint32_t bits_;
  bool has_far_ = false;
};

// The union of the parts 0 .. count - 1, which `read` gives: lane i takes parts first + i,
// first + i + stride, .... `limit`: see part_scale. kBits: of a lane's sum, see warp_part.
template <typename T, int kBits, typename Read>
__device__ __forceinline__ RowPart<T> merge_parts(int first, int stride, int count, float limit,
                                                  bool is_log, Read read) {
  const int begin = first + static_cast<int>(threadIdx.x) % kWarpThreads;
  T max = -Limits<T>::infinity();
  for (int i = begin; i < count; i += stride) max = max_or_nan(max, read(i).max);
  max = warp_max_or_nan(max);
  if constexpr (sizeof(T) == 4) {
    if (is_near(max, limit)) {
      NearMerge merge(max, limit, is_log);
      for (int i = begin; i < count; i += stride) merge.add(read(i));
      if (merge.has_far()) {
#pragma unroll 1
        for (int i = begin; i < count; i += stride) merge.add_far(read(i));
      }
      return warp_part<kBits>(merge.row(), is_log);
    }
  }
  RowPart<T> row = RowPart<T>::of(max);
  for (int i = begin; i < count; i += stride) {
    RowPart<T> part = read(i);
    part.rescale(max, limit);
    row.add(part);
  }
  return warp_part<kBits>(row, is_log);
}

// The same of no more parts than a warp has lanes.
template <typename T, int kBits, typename Read>
__device__ __forceinline__ RowPart<T> merge_lone_parts(int count, float limit, bool is_log,
                                                       Read read) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  RowPart<T> part = RowPart<T>::of(-Limits<T>::infinity());
  if (lane < count) part = read(lane);
  const T max = warp_max_or_nan(part.max);
  if constexpr (sizeof(T) == 4) {
    if (is_near(max, limit)) {
      NearMerge merge(max, limit, is_log);
      merge.add(part);
      if (merge.has_far()) merge.add_far(part);
      return warp_part<kBits>(merge.row(), is_log);
    }
  }
  RowPart<T> row = RowPart<T>::of(max);
  if (lane < count) {
    part.rescale(max, limit);
    row.add(part);
  }
  return warp_part<kBits>(row, is_log);
}

// Parts in shared memory, which cannot have initialisers: as bytes.
template <typename T, int kCount>
struct PartSlots {
  alignas(RowPart<T>) unsigned char bytes[kCount * sizeof(RowPart<T>)];

  __device__ __forceinline__ RowPart<T> &operator[](int i) {
    return reinterpret_cast<RowPart<T> *>(bytes)[i];
  }
};

}  // namespace softmax
