// The elements that a thread of COLUMN holds, in places of shared memory that nobody else looks at.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "core/scaled_exp.h"
#include "cuda/general/column_place.cuh"
#include "cuda/general/pack.cuh"

namespace softmax {

// How elements are held: 8-bit ones as 16-bit ones, which have -inf, and exactly.
template <typename X>
struct ColumnHeld {
  using Type = X;
};
template <>
struct ColumnHeld<F8Byte> {
  using Type = __half;
};

template <typename H>
struct alignas(kQuad * sizeof(H)) Quad {
  std::uint32_t part[sizeof(H)];

  __device__ __forceinline__ void unpack(float (&value)[kQuad]) const {
    if constexpr (sizeof(H) == 4) {
#pragma unroll
      for (int i = 0; i < kQuad; ++i) value[i] = __uint_as_float(part[i]);
    } else {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float2 two = RawElements<H>::unpack(part[i]);
        value[2 * i] = two.x;
        value[2 * i + 1] = two.y;
      }
    }
  }
  static __device__ __forceinline__ Quad of(const float (&value)[kQuad]) {
    Quad quad;
    if constexpr (sizeof(H) == 4) {
#pragma unroll
      for (int i = 0; i < kQuad; ++i) quad.part[i] = __float_as_uint(value[i]);
    } else {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        quad.part[i] = RawElements<H>::pack(value[2 * i], value[2 * i + 1]);
      }
    }
    return quad;
  }
};

template <typename X>
class ColumnQuads {
 public:
  using H = typename ColumnHeld<X>::Type;
  static constexpr int kTogether = 4;  // that are taken at a time

  __device__ __forceinline__ ColumnQuads(const GeneralArgs &args, const ColumnPlace &place,
                                         unsigned char *room)
      : args_(args), place_(place), room_(room) {}

  // Asks for sign * x, and for the mask.
  __device__ __forceinline__ void load() {
    // All of them before anything is on its way: they are calls.
    const Lanes at = lanes();
    const bool has_mask = args_.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP;
    const std::int64_t x_begin = row_begin(args_, kTensorX, place_.rows.first);
    y_begin_ = row_begin(args_, kTensorY, place_.rows.first);
    const std::int64_t mask_begin = has_mask ? row_begin(args_, kTensorMask, place_.rows.first) : 0;
    is_fixed_ = has_mask;
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      is_negative_[i] = at.is_negative[i];
      is_fixed_ = is_fixed_ || at.is_negative[i];
    }
    load_x(static_cast<const X *>(args_.buffers.x) + x_begin, at);
    if (has_mask) load_mask(static_cast<const std::uint8_t *>(args_.buffers.mask) + mask_begin, at);
    __pipeline_commit();
  }

  __device__ __forceinline__ void wait() const { __pipeline_wait_prior(0); }
  // Where the first of the rows begins in y.
  __device__ __forceinline__ std::int64_t y_begin() const { return y_begin_; }

  // As many quads as are taken together, from `first` on: -inf past the last.
  template <int kCount>
  __device__ __forceinline__ void get(int first, float (&value)[kCount][kQuad]) const {
    const Quad<H> *const from = quads() + first * static_cast<int>(blockDim.x);
    if (first + kCount <= args_.column.quads) {
#pragma unroll
      for (int k = 0; k < kCount; ++k) from[k * static_cast<int>(blockDim.x)].unpack(value[k]);
      return;
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if (first + k < args_.column.quads) {
        const Quad<H> quad = from[k * static_cast<int>(blockDim.x)];
        quad.unpack(value[k]);
      } else {
#pragma unroll
        for (int i = 0; i < kQuad; ++i) value[k][i] = -Limits<float>::infinity();
      }
    }
  }
  template <int kCount>
  __device__ __forceinline__ void put(int first, const float (&value)[kCount][kQuad]) {
    Quad<H> *const to = quads() + first * static_cast<int>(blockDim.x);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if (first + k < args_.column.quads) {
        to[k * static_cast<int>(blockDim.x)] = Quad<H>::of(value[k]);
      }
    }
  }
  // The largest of each lane, or a NaN.
  template <typename V>
  __device__ __forceinline__ void take_max(V (&max)[kQuad]) {
    float most[kQuad];
    if (is_fixed_ || sizeof(H) == 4) {
#pragma unroll
      for (int i = 0; i < kQuad; ++i) most[i] = -Limits<float>::infinity();
#pragma unroll 1
      for (int first = 0; first < args_.column.quads; first += kTogether) {
        float value[kTogether][kQuad];
        get(first, value);
        if (is_fixed_) fix(first, value);
#pragma unroll
        for (int i = 0; i < kQuad; ++i) {
          const float a = max_or_nan(value[0][i], value[1][i]);
          const float b = max_or_nan(value[2][i], value[3][i]);
          most[i] = max_or_nan(most[i], max_or_nan(a, b));
        }
      }
    } else {
      // Two by two.
      const Quad<H> *from = quads();
      Quad<H> all = *from;
#pragma unroll 4
      for (int p = 1; p < args_.column.quads; ++p) {
        from += blockDim.x;
        const Quad<H> quad = *from;
        if constexpr (sizeof(H) == 2) {
          using Pair = typename RawElements<H>::Pair;
          all.part[0] = pair_max<Pair>(all.part[0], quad.part[0]);
          all.part[1] = pair_max<Pair>(all.part[1], quad.part[1]);
        }
      }
      all.unpack(most);
    }
#pragma unroll
    for (int i = 0; i < kQuad; ++i) max[i].max = most[i];
  }
  // sign * x, and -inf for what is masked.
  __device__ __forceinline__ void fix(int first, float (&value)[kTogether][kQuad]) {
    const bool has_mask = args_.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP;
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      if (first + k >= args_.column.quads) continue;
      const std::uint32_t keep =
          has_mask ? masks()[(first + k) * static_cast<int>(blockDim.x)] : 0xffffffffu;
#pragma unroll
      for (int i = 0; i < kQuad; ++i) {
        const float v = is_negative_[i] ? -value[k][i] : value[k][i];
        value[k][i] = (keep >> (8 * i) & 0xffu) != 0 ? v : -Limits<float>::infinity();
      }
    }
    put(first, value);
  }

 private:
  __device__ __forceinline__ Quad<H> *quads() const {
    return reinterpret_cast<Quad<H> *>(room_) + threadIdx.x;
  }
  __device__ __forceinline__ std::uint32_t *masks() const {
    return reinterpret_cast<std::uint32_t *>(room_ + args_.room.masks) + threadIdx.x;
  }
  // Whether v is -x, and where the row ends, by lanes.
  struct Lanes {
    bool is_negative[kQuad];
    int end[kQuad];
    int least_end;  // 0 where there is no such row
  };

  __device__ __forceinline__ Lanes lanes() const {
    Lanes lanes;
    const std::int32_t kind = args_.general.mask_kind;
    const bool has_length = kind == SOFTMAX_MASK_CAUSAL || kind == SOFTMAX_MASK_ROW_LENGTH;
    lanes.least_end = place_.cols();
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      const bool is_row = place_.row_of_lane(i) < place_.rows.count;
      const std::int64_t row = place_.rows.first + place_.row_of_lane(i);
      lanes.end[i] = is_row ? place_.cols() : 0;
      lanes.is_negative[i] = args_.general.scale < 0.0;
      if (is_row && has_length) lanes.end[i] = static_cast<int>(masked_row_length(args_, row));
      if (is_row && args_.buffers.row_scale != nullptr) {
        lanes.is_negative[i] = RowScaling::of(place_.scale_of(row)).sign < 0.0f;
      }
      lanes.least_end = min(lanes.least_end, lanes.end[i]);
    }
    return lanes;
  }

  // sign * -inf.
  static __device__ __forceinline__ std::uint32_t nothing(bool is_negative) {
    constexpr int kBits = 8 * static_cast<int>(sizeof(H));
    constexpr std::uint32_t kInf =
        RawElements<H>::kMinusInf[0] >> (32 - kBits) & (kBits == 32 ? 0x7fffffffu : 0x7fffu);
    return kInf | (is_negative ? 0u : 1u << (kBits - 1));
  }
  __device__ __forceinline__ Quad<H> joined(const std::uint32_t (&bits)[kQuad]) const {
    Quad<H> quad;
    if constexpr (sizeof(H) == 4) {
#pragma unroll
      for (int i = 0; i < kQuad; ++i) quad.part[i] = bits[i];
    } else {
      quad.part[0] = bits[0] | bits[1] << 16;
      quad.part[1] = bits[2] | bits[3] << 16;
    }
    return quad;
  }
  // An 8-bit element as it is held.
  __device__ __forceinline__ std::uint32_t held_bits(std::uint32_t bits) const {
    if constexpr (sizeof(X) > 1) return bits;
    const auto format = args_.x_dtype == SOFTMAX_DTYPE_F8_E4M3 ? __NV_E4M3 : __NV_E5M2;
    return __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits), format).x;
  }

  __device__ __forceinline__ void load_x(const X *x, const Lanes &lane) {
    const ColumnPlace::Steps step = place_.steps(kTensorX);
    Quad<H> *to = quads();
    int at = place_.position(0);
    x += at * step.axis;
    const std::int64_t quad_step = args_.column.threads * step.axis;
    const int last_step = args_.tile.positions() - 1;
#pragma unroll 1
    for (int first = 0; first < args_.column.quads; first += kTogether) {
      bool is_pieces[kTogether];
      bool is_word[kTogether] = {};  // of 8-bit elements, which are not held as they are
      bool has_pieces = false;
      const X *from = x;
#pragma unroll
      for (int k = 0; k < kTogether; ++k, from += quad_step) {
        const bool is_there = first + k < args_.column.quads;
        const bool is_whole =
            args_.tile.x_is_whole && at + k * args_.column.threads + last_step < lane.least_end;
        if constexpr (sizeof(X) > 1) {
          if (is_there && is_whole) {
            __pipeline_memcpy_async(to + k * blockDim.x, from, sizeof(Quad<H>));
          }
          is_pieces[k] = is_there && !is_whole;
        } else {
          is_pieces[k] = is_there;
          is_word[k] = is_there && is_whole;
        }
        has_pieces = has_pieces || is_pieces[k];
      }
      if (has_pieces) {
        std::uint32_t bits[kTogether][kQuad];
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          std::uint32_t word = 0;
          if (is_word[k]) word = *reinterpret_cast<const std::uint32_t *>(x + k * quad_step);
#pragma unroll
          for (int i = 0; i < kQuad; ++i) {
            const bool is_element =
                is_pieces[k] &&
                at + k * args_.column.threads + place_.position_step(i) < lane.end[i];
            bits[k][i] = nothing(lane.is_negative[i]);
            if (is_word[k]) {
              bits[k][i] = held_bits(word >> (8 * i) & 0xffu);
            } else if (is_element) {
              bits[k][i] = held_bits(element_bits(x + k * quad_step + place_.lane_offset(step, i)));
            }
          }
        }
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          if (is_pieces[k]) to[k * blockDim.x] = joined(bits[k]);
        }
      }
      at += kTogether * args_.column.threads;
      x = from;
      to += kTogether * blockDim.x;
    }
  }

  // BOOL_KEEP: a byte an element.
  __device__ __forceinline__ void load_mask(const std::uint8_t *mask, const Lanes &lane) {
    const ColumnPlace::Steps step = place_.steps(kTensorMask);
    std::uint32_t *to = masks();
    int at = place_.position(0);
    mask += at * step.axis;
    const int last_step = args_.tile.positions() - 1;
#pragma unroll 2
    for (int p = 0; p < args_.column.quads; ++p) {
      if (args_.tile.mask_is_whole && at + last_step < lane.least_end) {
        __pipeline_memcpy_async(to, mask, sizeof *to);
      } else {
        std::uint32_t keep = 0;
#pragma unroll
        for (int i = 0; i < kQuad; ++i) {
          if (at + place_.position_step(i) < lane.end[i]) {
            keep |= std::uint32_t{mask[place_.lane_offset(step, i)]} << (8 * i);
          }
        }
        *to = keep;
      }
      at += args_.column.threads;
      mask += args_.column.threads * step.axis;
      to += blockDim.x;
    }
  }

  const GeneralArgs &args_;
  const ColumnPlace &place_;
  unsigned char *room_;
  std::int64_t y_begin_ = 0;
  bool is_negative_[kQuad];
  bool is_fixed_ = false;
};

}  // namespace softmax
