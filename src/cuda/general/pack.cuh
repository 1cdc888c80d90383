// Sixteen bytes of a dense row and the elements in them, for the types that the general call's rows
// in registers have: those of raw_pack.cuh and 8-bit ones, whose format is known at run time alone.
#pragma once

#include <cuda_fp8.h>

#include "core/f8.h"
#include "cuda/prim/raw_pack.cuh"
#include "softmax.h"

namespace softmax {

// Whether conversions from and to 8-bit types are instructions. Where they are functions, sixty
// instructions for each element in registers would be most of a kernel.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
constexpr bool kConvertsF8 = true;
#else
constexpr bool kConvertsF8 = false;
#endif

// An 8-bit element of either format.
struct F8Byte {
  std::uint8_t bits;
};

// `sign` * -inf throughout, or, of 8-bit types, anything: one of them has no infinity.
template <typename X>
__device__ __forceinline__ RawPack empty_raw(float sign) {
  if constexpr (sizeof(X) == 1) {
    return {};
  } else {
    RawPack raw = empty_pack<X>();
    constexpr std::uint32_t kSigns = sizeof(X) == 2 ? 0x80008000u : 0x80000000u;
#pragma unroll
    for (std::uint32_t &part : raw.part) part ^= sign < 0.0f ? kSigns : 0u;
    return raw;
  }
}

template <typename X>
__device__ __forceinline__ std::uint32_t element_bits(const X *at) {
  if constexpr (sizeof(X) == 4) {
    return *reinterpret_cast<const std::uint32_t *>(at);
  } else if constexpr (sizeof(X) == 2) {
    return *reinterpret_cast<const std::uint16_t *>(at);
  } else {
    return *reinterpret_cast<const std::uint8_t *>(at);
  }
}

// The first `count` elements from `from` on, which need no more than their own alignment, in place
// of those of `raw`.
template <typename X>
__device__ __forceinline__ RawPack load_raw_pieces(const X *from, int count, RawPack raw) {
  constexpr int kCols = kWordBytes / static_cast<int>(sizeof(X));
  constexpr int kEach = 4 / static_cast<int>(sizeof(X));  // in a register
#pragma unroll
  for (int i = 0; i < kCols; ++i) {
    if (i >= count) continue;
    std::uint32_t bits;
    if constexpr (sizeof(X) == 4) {
      bits = reinterpret_cast<const std::uint32_t *>(from)[i];
    } else if constexpr (sizeof(X) == 2) {
      bits = reinterpret_cast<const std::uint16_t *>(from)[i];
    } else {
      bits = reinterpret_cast<const std::uint8_t *>(from)[i];
    }
    constexpr int kBits = 8 * static_cast<int>(sizeof(X));
    constexpr std::uint32_t kMask = kBits == 32 ? 0xffffffffu : (1u << (kBits % 32)) - 1;
    const int shift = i % kEach * kBits;
    raw.part[i / kEach] = (raw.part[i / kEach] & ~(kMask << shift)) | bits << shift;
  }
  return raw;
}

// An 8-bit pair to two floats, exactly.
__device__ __forceinline__ float2 unpack_f8(std::uint32_t two, __nv_fp8_interpretation_t format) {
  const __half2_raw halves =
      __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(two), format);
  return __half22float2(__half2(halves));
}

template <typename X, int kCols>
__device__ __forceinline__ void unpack_raw(const RawPack &raw, std::int32_t dtype,
                                           float (&value)[kCols]) {
  if constexpr (sizeof(X) == 1) {
    const auto format = dtype == SOFTMAX_DTYPE_F8_E4M3 ? __NV_E4M3 : __NV_E5M2;
#pragma unroll
    for (int i = 0; i < kCols; i += 2) {
      const float2 two = unpack_f8(raw.part[i / 4] >> (i % 4 * 8) & 0xffffu, format);
      value[i] = two.x;
      value[i + 1] = two.y;
    }
  } else {
    unpack<X>(raw, value);
  }
}

// ---- masks of a byte an element ----

template <int kCols>
struct alignas(kCols) KeepPack {
  std::uint32_t part[kCols / 4];

  __device__ __forceinline__ bool has(int i) const {
    return (part[i / 4] >> (i % 4 * 8) & 0xffu) != 0;
  }
};

template <int kCols>
__device__ __forceinline__ KeepPack<kCols> load_keep(const std::uint8_t *mask) {
  KeepPack<kCols> keep;
  if constexpr (kCols == 4) {
    keep.part[0] = *reinterpret_cast<const std::uint32_t *>(mask);
  } else if constexpr (kCols == 8) {
    const uint2 two = *reinterpret_cast<const uint2 *>(mask);
    keep.part[0] = two.x;
    keep.part[1] = two.y;
  } else {
    const uint4 four = *reinterpret_cast<const uint4 *>(mask);
    keep.part[0] = four.x;
    keep.part[1] = four.y;
    keep.part[2] = four.z;
    keep.part[3] = four.w;
  }
  return keep;
}
template <int kCols>
__device__ __forceinline__ KeepPack<kCols> load_keep_pieces(const std::uint8_t *mask,
                                                            std::int64_t stride, int count) {
  KeepPack<kCols> keep = {};
#pragma unroll
  for (int i = 0; i < kCols; ++i) {
    if (i < count) keep.part[i / 4] |= std::uint32_t{mask[i * stride]} << (i % 4 * 8);
  }
  return keep;
}

// ---- results ----

// To an 8-bit type: see SOFTMAX_DTYPE_F8_E4M3. The conversion saturates infinities as well.
template <typename Y>
__device__ __forceinline__ Y narrow_value(float value) {
  if constexpr (std::is_same_v<Y, f8_e4m3_t>) {
    return {__nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3)};
  } else if constexpr (std::is_same_v<Y, f8_e5m2_t>) {
    const std::uint8_t bits = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E5M2);
    const bool is_infinite = fabsf(value) == Limits<float>::infinity();
    return {static_cast<std::uint8_t>(bits + (is_infinite ? 1 : 0))};
  } else {
    return DeviceElement<Y>::store(value);
  }
}

// As many values as make words of Y, two or four of them, by all lanes of a warp, which have
// neighbouring places.
template <typename Y, int kCols>
__device__ __forceinline__ void store_sectors(Y *to, const float (&value)[kCols]) {
  constexpr int kWordCols = kWordBytes / static_cast<int>(sizeof(Y));
  constexpr int kWords = kCols / kWordCols;
  static_assert(kWords % 2 == 0 && sizeof(Y) > 1);
  to -= (threadIdx.x & 1) * (kWords - 1) * kWordCols;
#pragma unroll
  for (int word = 0; word < kWords; word += 2) {
    RawPack first = pack<Y>(value + word * kWordCols);
    RawPack second = pack<Y>(value + (word + 1) * kWordCols);
    share_sectors(&first, &second);
    store_raw<StoreHint::kNone>(to + word * kWordCols, first);
    store_raw<StoreHint::kNone>(to + (word + kWords) * kWordCols, second);
  }
}

// Values that lie together, in as few stores as they take: `to` is aligned to their bytes, or
// to 16.
template <typename Y, int kCols>
__device__ __forceinline__ void store_values(Y *to, const float (&value)[kCols]) {
  constexpr int kBytes = kCols * static_cast<int>(sizeof(Y));
  constexpr int kParts = kBytes / 4;
  std::uint32_t part[kParts];
  if constexpr (sizeof(Y) == 4) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) part[i] = __float_as_uint(value[i]);
  } else if constexpr (sizeof(Y) == 2) {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      part[i] = RawElements<Y>::pack(value[2 * i], value[2 * i + 1]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      part[i] = 0;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        part[i] |= std::uint32_t{narrow_value<Y>(value[4 * i + k]).bits} << (8 * k);
      }
    }
  }
  if constexpr (kBytes == 4) {
    *reinterpret_cast<std::uint32_t *>(to) = part[0];
  } else if constexpr (kBytes == 8) {
    *reinterpret_cast<uint2 *>(to) = make_uint2(part[0], part[1]);
  } else {
#pragma unroll
    for (int i = 0; i < kParts; i += 4) {
      reinterpret_cast<uint4 *>(to)[i / 4] =
          make_uint4(part[i], part[i + 1], part[i + 2], part[i + 3]);
    }
  }
}

// The same of a row that has them all. is_warp: so have all lanes of the warp, of one row, which
// have neighbouring places.
template <typename Y, int kCols>
__device__ __forceinline__ void store_row_values(Y *to, const float (&value)[kCols], bool is_warp) {
  if constexpr (kCols * sizeof(Y) > kWordBytes) {
    if (is_warp) return store_sectors(to, value);
  }
  store_values(to, value);
}

}  // namespace softmax
