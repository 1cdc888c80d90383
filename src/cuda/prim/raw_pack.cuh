// Sixteen bytes of a row as they are, in four registers, and the elements in them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/prim/pack.cuh"

namespace softmax {

// Sixteen bytes as four registers: 16-bit elements two by two, as arithmetic on pairs takes them.
// An array of single ones would take a register each.
struct RawPack {
  std::uint32_t part[4];
};

__device__ __forceinline__ RawPack load_raw(const void *p) {
  const uint4 word = *static_cast<const uint4 *>(p);
  return {{word.x, word.y, word.z, word.w}};
}

// Global memory: not by an assignment, of which the compiler has made four stores of a quarter
// each, and four times the traffic to L2: of the first pack of a row, and beside stores of pieces.
template <StoreHint hint>
__device__ __forceinline__ void store_raw(void *p, const RawPack &raw) {
  const uint4 word = make_uint4(raw.part[0], raw.part[1], raw.part[2], raw.part[3]);
  if (hint == StoreHint::kStreaming) {
    __stcs(static_cast<uint4 *>(p), word);
  } else if (hint == StoreHint::kNone) {
    __stwb(static_cast<uint4 *>(p), word);
  } else {
    *static_cast<uint4 *>(p) = word;
  }
}

// Half of a word, likewise.
__device__ __forceinline__ void store_half(void *p, std::uint32_t first, std::uint32_t second) {
  __stwb(static_cast<uint2 *>(p), make_uint2(first, second));
}

// Words that lie together, of two neighbouring lanes, so that each store of a warp writes whole
// sectors of 32 bytes, and not every other half of twice as many: `first` and `second` are two
// neighbouring words of this lane, and afterwards each is the first or the second of the even
// lane's
// (`first`) and the odd lane's (`second`), as this lane is even or odd. By all lanes of a warp.
__device__ __forceinline__ void share_sectors(RawPack *first, RawPack *second) {
  const bool is_odd = (threadIdx.x & 1) != 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t given = is_odd ? first->part[i] : second->part[i];
    const std::uint32_t taken = __shfl_xor_sync(0xffffffffu, given, 1);
    (is_odd ? first->part[i] : second->part[i]) = taken;
  }
}

// How elements of a type lie in a raw pack.
template <typename T>
struct RawElements;

template <>
struct RawElements<float> {
  static constexpr std::uint32_t kMinusInf[2] = {0xff800000u, 0xff800000u};
  static __device__ __forceinline__ void unpack(const RawPack &raw, float (&value)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) value[i] = __uint_as_float(raw.part[i]);
  }
  static __device__ __forceinline__ RawPack pack(const float *value) {
    RawPack raw;
#pragma unroll
    for (int i = 0; i < 4; ++i) raw.part[i] = __float_as_uint(value[i]);
    return raw;
  }
};
template <>
struct RawElements<double> {
  static constexpr std::uint32_t kMinusInf[2] = {0u, 0xfff00000u};
  static __device__ __forceinline__ void unpack(const RawPack &raw, double (&value)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      value[i] = __hiloint2double(static_cast<int>(raw.part[2 * i + 1]),
                                  static_cast<int>(raw.part[2 * i]));
    }
  }
  static __device__ __forceinline__ RawPack pack(const double *value) {
    RawPack raw;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      raw.part[2 * i] = static_cast<std::uint32_t>(__double2loint(value[i]));
      raw.part[2 * i + 1] = static_cast<std::uint32_t>(__double2hiint(value[i]));
    }
    return raw;
  }
};

// Two in a register.
template <typename Pair>
__device__ __forceinline__ Pair pair_of(std::uint32_t part) {
  Pair pair;
  memcpy(&pair, &part, sizeof pair);
  return pair;
}
template <typename Pair>
__device__ __forceinline__ std::uint32_t part_of(Pair pair) {
  std::uint32_t part;
  memcpy(&part, &pair, sizeof part);
  return part;
}
// The larger of each of the two, or a NaN.
template <typename Pair>
__device__ __forceinline__ std::uint32_t pair_max(std::uint32_t a, std::uint32_t b) {
  return part_of(__hmax2_nan(pair_of<Pair>(a), pair_of<Pair>(b)));
}

// All ones where the two are equal.
template <typename Pair>
__device__ __forceinline__ std::uint32_t pair_equal_mask(std::uint32_t a, std::uint32_t b) {
  return __heq2_mask(pair_of<Pair>(a), pair_of<Pair>(b));
}

template <>
struct RawElements<__half> {
  using Pair = __half2;
  static constexpr std::uint32_t kMinusInf[2] = {0xfc00fc00u, 0xfc00fc00u};
  static __device__ __forceinline__ float2 unpack(std::uint32_t part) {
    return __half22float2(pair_of<__half2>(part));
  }
  static __device__ __forceinline__ std::uint32_t pack(float a, float b) {
    return part_of(__floats2half2_rn(a, b));
  }
};
template <>
struct RawElements<__nv_bfloat16> {
  using Pair = __nv_bfloat162;
  static constexpr std::uint32_t kMinusInf[2] = {0xff80ff80u, 0xff80ff80u};
  static __device__ __forceinline__ float2 unpack(std::uint32_t part) {
    return make_float2(__uint_as_float(part << 16), __uint_as_float(part & 0xffff0000u));
  }
  static __device__ __forceinline__ std::uint32_t pack(float a, float b) {
    return part_of(__floats2bfloat162_rn(a, b));
  }
};

template <typename X>
__device__ __forceinline__ void unpack(const RawPack &raw, AccOf<X> (&value)[kPackCols<X>]) {
  if constexpr (sizeof(X) == 2) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 two = RawElements<X>::unpack(raw.part[i]);
      value[2 * i] = two.x;
      value[2 * i + 1] = two.y;
    }
  } else {
    RawElements<X>::unpack(raw, value);
  }
}

// A pack of X from as many elements: a word, or of 16-bit ones that become float32 half of one.
template <typename X, typename Source>
__device__ __forceinline__ RawPack load_whole(const Source *from) {
  if constexpr (std::is_same_v<X, Source>) {
    return load_raw(from);
  } else {
    static_assert(sizeof(X) == 4 && sizeof(Source) == 2, "values that are widened");
    const uint2 half = *reinterpret_cast<const uint2 *>(from);
    const float2 first = RawElements<Source>::unpack(half.x);
    const float2 second = RawElements<Source>::unpack(half.y);
    const float value[4] = {first.x, first.y, second.x, second.y};
    return RawElements<X>::pack(value);
  }
}

// As many values as make a word of Y.
template <typename Y>
__device__ __forceinline__ RawPack pack(const AccOf<Y> *value) {
  if constexpr (sizeof(Y) == 2) {
    RawPack raw;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      raw.part[i] = RawElements<Y>::pack(value[2 * i], value[2 * i + 1]);
    }
    return raw;
  } else {
    return RawElements<Y>::pack(value);
  }
}

// A pack of input without a column: -inf throughout.
template <typename X>
__device__ __forceinline__ RawPack empty_pack() {
  constexpr std::uint32_t kEven = RawElements<X>::kMinusInf[0];
  constexpr std::uint32_t kOdd = RawElements<X>::kMinusInf[1];
  return {{kEven, kOdd, kEven, kOdd}};
}

// -inf instead of the elements before `from`, or from `to` on.
template <typename X>
__device__ __forceinline__ void clear_before(int from, RawPack *raw) {
  const RawPack empty = empty_pack<X>();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(X) == 2) {
      if (2 * i + 1 == from) raw->part[i] = __byte_perm(raw->part[i], empty.part[i], 0x3254);
      if (2 * i + 1 < from) raw->part[i] = empty.part[i];
    } else {
      if (i * 4 / static_cast<int>(sizeof(X)) < from) raw->part[i] = empty.part[i];
    }
  }
}
template <typename X>
__device__ __forceinline__ void clear_from(int to, RawPack *raw) {
  const RawPack empty = empty_pack<X>();
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(X) == 2) {
      if (2 * i + 1 == to) raw->part[i] = __byte_perm(raw->part[i], empty.part[i], 0x7610);
      if (2 * i >= to) raw->part[i] = empty.part[i];
    } else {
      if (i * 4 / static_cast<int>(sizeof(X)) >= to) raw->part[i] = empty.part[i];
    }
  }
}

}  // namespace softmax
