// The elements of a dense row of the general call that one thread holds in registers, how they come
// there and how they are written.
//
// Thread t of a row has the packs t, t + threads, ... of its block's part, which are elements that
// lie together, 16 bytes of them. Additions follow that order, whatever the strides and alignment.
#pragma once

#include "cuda/general/element.cuh"
#include "cuda/general/pack.cuh"
#include "cuda/general/part_terms.cuh"
#include "cuda/general/row_team.cuh"
#include "cuda/prim/compile.cuh"
#include "cuda/prim/held_parts.cuh"

namespace softmax {

// The elements that one thread holds of a row.
//
// kIsAdded: with an additive mask, v is more than a float32 holds. The values held are then v,
// rounded, and what rounding has taken is made again where it is needed, of inputs that are read
// again, from the cache.
template <typename X, int kPacks, bool kIsAdded>
class HeldRow {
 public:
  static constexpr int kCols = kWordBytes / static_cast<int>(sizeof(X));
  static constexpr int kValues = kPacks * kCols;

  __device__ __forceinline__ HeldRow(const GeneralArgs &args, std::int64_t row, int rank)
      : args_(args), cols_(args, rank, static_cast<int>(threadIdx.x)) {
    // All of it now: no call comes between loading and storing.
    x_ = as_base(
        static_cast<const X *>(args.buffers.x) + row_begin(args, kTensorX, row) + cols_.first(),
        args.zero);
    y_first_ = row_begin(args, kTensorY, row) + cols_.first();
    if (kIsAdded || args.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP) {
      mask_first_ = row_begin(args, kTensorMask, row) + cols_.first() * mask_stride();
    }
  }

  // The values, and -inf for what is masked or does not exist: x with the scale's sign, or v with
  // kIsAdded. `length`: of the row, 0 for none. `factor`: of the row's scale, read when its
  // elements have been asked for. Returns the scale.
  __device__ __forceinline__ double load(std::int64_t length, const float *factor) {
    double scale = args_.general.scale;
    end_ = cols_.within(length);
    is_whole_ = cols_.is_whole(end_) && is_word_aligned(x_);
    if constexpr (kIsAdded) {
      if (factor != nullptr) scale *= double(*factor);
      scale_hi_ = static_cast<float>(scale);
      scale_lo_ = static_cast<float>(scale - double(scale_hi_));
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        Split<float> v[kCols];
        add_mask(p, v);
#pragma unroll
        for (int i = 0; i < kCols; ++i) value_[p * kCols + i] = v[i].hi;
      }
    } else {
      RawPack raw[kPacks];
      load_x(raw);
      if (args_.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP) {
        KeepPack<kCols> keep[kPacks];
        load_keeps(keep);
        if (factor != nullptr) scale *= double(*factor);
        unpack_all(raw, scale < 0.0);
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
#pragma unroll
          for (int i = 0; i < kCols; ++i) {
            if (!keep[p].has(i)) value_[p * kCols + i] = -Limits<float>::infinity();
          }
        }
      } else {
        if (factor != nullptr) scale *= double(*factor);
        unpack_all(raw, scale < 0.0);
      }
    }
    if (cols_.is_whole(end_)) return scale;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int i = 0; i < kCols; ++i) {
        if (cols_.col(p) + i >= end_) value_[p * kCols + i] = -Limits<float>::infinity();
      }
    }
    return scale;
  }

  __device__ __forceinline__ float max() const { return tree_max<0, kValues>(value_); }

  // Of the values that equal the maximum, the most that one has lost.
  __device__ __forceinline__ float low_of(float max) const {
    float most = -Limits<float>::infinity();
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float low[kCols];
      lows(p, low);
#pragma unroll
      for (int i = 0; i < kCols; ++i) {
        if (value_[p * kCols + i] == max) most = fmaxf(most, low[i]);
      }
    }
    return most;
  }

  // What make(value, low) makes comes in the values' places. `low` is what v has lost, 0 where
  // nothing is added.
  template <typename Make>
  __device__ __forceinline__ void change(Make make) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float low[kCols];
      lows(p, low);
#pragma unroll
      for (int i = 0; i < kCols; ++i) {
        value_[p * kCols + i] = make(value_[p * kCols + i], low[i]);
      }
    }
  }

  // The same, and the sum, which is added up as that of Terms is.
  template <typename Terms, typename Make>
  __device__ __forceinline__ double take_terms(Make make) {
    constexpr int kTogether = Terms::kTermsTogether < kCols ? Terms::kTermsTogether : kCols;
    double sum = 0.0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float low[kCols];
      lows(p, low);
#pragma unroll
      for (int first = 0; first < kCols; first += kTogether) {
        float term[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          float &value = value_[p * kCols + first + i];
          term[i] = make(value, low[first + i]);
          value = term[i];
        }
        sum += sum_of<Terms>(term);
      }
    }
    return sum;
  }
  // The sum alone; values that equal the maximum are counted.
  template <typename Terms, typename Make>
  __device__ __forceinline__ RowSums sum_apart(float max, float max_low, Make make) const {
    constexpr int kTogether = Terms::kTermsTogether < kCols ? Terms::kTermsTogether : kCols;
    RowSums sums = {0.0, 0.0f};
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float low[kCols];
      lows(p, low);
#pragma unroll
      for (int first = 0; first < kCols; first += kTogether) {
        float term[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
          const float x = value_[p * kCols + first + i];
          const bool is_one = x == max && (!kIsAdded || low[first + i] == max_low);
          term[i] = is_one ? 0.0f : make(x, low[first + i]);
          sums.ones += is_one ? 1.0f : 0.0f;
        }
        sums.others += sum_of<Terms>(term);
      }
    }
    return sums;
  }

  // Writes the values to all of the row's columns.
  __device__ __forceinline__ void store() {
    switch (args_.y_dtype) {
      case SOFTMAX_DTYPE_F16: return store_as<__half>();
      case SOFTMAX_DTYPE_BF16: return store_as<__nv_bfloat16>();
      case SOFTMAX_DTYPE_F8_E4M3: return store_f8<f8_e4m3_t>();
      case SOFTMAX_DTYPE_F8_E5M2: return store_f8<f8_e5m2_t>();
      default: return store_as<float>();
    }
  }

 private:
  __device__ __forceinline__ std::int64_t mask_stride() const {
    return args_.layout().axis_stride[kTensorMask];
  }

  __device__ __forceinline__ void load_x(RawPack (&raw)[kPacks]) const {
    if (is_whole_) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) raw[p] = load_raw(x_ + cols_.col(p));
    } else {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) raw[p] = load_part(p);
    }
  }
  // A pack of a row that is cut somewhere, or lies in no words.
  __device__ __forceinline__ RawPack load_part(int p) const {
    const int at = cols_.col(p);
    if (is_word_aligned(x_) && at + kCols <= end_) return load_raw(x_ + at);
    return load_raw_pieces(x_ + at, end_ - at, RawPack{});
  }
  __device__ __forceinline__ void unpack_all(const RawPack (&raw)[kPacks], bool is_negative) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float value[kCols];
      unpack_raw<X>(raw[p], args_.x_dtype, value);
#pragma unroll
      for (int i = 0; i < kCols; ++i) value_[p * kCols + i] = value[i];
    }
    if (is_negative) {
#pragma unroll
      for (int i = 0; i < kValues; ++i) value_[i] = -value_[i];
    }
  }

  // BOOL_KEEP: a mask byte an element.
  __device__ __forceinline__ void load_keeps(KeepPack<kCols> (&keep)[kPacks]) const {
    const std::int64_t stride = mask_stride();
    const std::uint8_t *const mask =
        as_base(static_cast<const std::uint8_t *>(args_.buffers.mask) + mask_first_, args_.zero);
    const bool is_aligned = stride == 1 && reinterpret_cast<std::uintptr_t>(mask) % kCols == 0;
    if (is_aligned && cols_.is_whole(end_)) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) keep[p] = load_keep<kCols>(mask + cols_.col(p));
      return;
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      keep[p] = is_aligned && at + kCols <= end_
                    ? load_keep<kCols>(mask + at)
                    : load_keep_pieces<kCols>(mask + at * stride, stride, end_ - at);
    }
  }
  // ADDITIVE: a float an element.
  __device__ __forceinline__ void load_added(int p, float (&added)[kCols]) const {
    const std::int64_t stride = mask_stride();
    const float *const mask = static_cast<const float *>(args_.buffers.mask) + mask_first_;
    const int at = cols_.col(p);
    if (stride == 1 && is_word_aligned(mask) && at + kCols <= end_) {
#pragma unroll
      for (int i = 0; i < kCols; i += 4) {
        const float4 four = *reinterpret_cast<const float4 *>(mask + at + i);
        added[i] = four.x;
        added[i + 1] = four.y;
        added[i + 2] = four.z;
        added[i + 3] = four.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kCols; ++i) added[i] = at + i < end_ ? mask[(at + i) * stride] : 0.0f;
    }
  }

  // v of a pack, in two.
  __device__ __forceinline__ void add_mask(int p, Split<float> (&v)[kCols]) const {
    float x[kCols], added[kCols];
    unpack_raw<X>(is_whole_ ? load_raw(x_ + cols_.col(p)) : load_part(p), args_.x_dtype, x);
    load_added(p, added);
#pragma unroll
    for (int i = 0; i < kCols; ++i) {
      const float product = x[i] * scale_hi_;
      const float error = fmaf(x[i], scale_lo_, fmaf(x[i], scale_hi_, -product));
      const Split<float> sum = two_sum(product, added[i]);
      const float low = error + sum.lo;
      v[i] = {sum.hi, fabsf(sum.hi) < Limits<float>::infinity() ? low : 0.0f};
    }
  }
  __device__ __forceinline__ void lows(int p, float (&low)[kCols]) const {
    if constexpr (kIsAdded) {
      Split<float> v[kCols];
      add_mask(p, v);
#pragma unroll
      for (int i = 0; i < kCols; ++i) low[i] = v[i].lo;
    } else {
#pragma unroll
      for (int i = 0; i < kCols; ++i) low[i] = 0.0f;
    }
  }

  // No such call comes here where there is nothing for it: see the policies.
  template <typename Y>
  __device__ __forceinline__ void store_f8() {
    if constexpr (kConvertsF8) store_as<Y>();
  }
  template <typename Y>
  __device__ __forceinline__ void store_as() {
    Y *const y = as_base(static_cast<Y *>(args_.buffers.y) + y_first_, args_.zero);
    const int end = cols_.within(args_.layout().cols);
    constexpr int kBytes = kCols * static_cast<int>(sizeof(Y));
    constexpr int kAlign = kBytes < kWordBytes ? kBytes : kWordBytes;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(y) % kAlign == 0;
    if constexpr (sizeof(Y) == 1) {
#pragma unroll
      for (int i = 0; i < kValues; ++i) {
        value_[i] = static_cast<float>(double(value_[i]) * args_.general.y_scale);
      }
    }
    if (is_aligned && cols_.is_whole(end)) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        store_pack(y, p, cols_.is_of_warps());
      }
      return;
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      if (is_aligned && cols_.is_of_warps() && cols_.warp_end(p) <= end) {
        store_pack(y, p, true);
      } else if (is_aligned && at + kCols <= end) {
        store_pack(y, p, false);
      } else {
        float value[kCols];
        copy(p, value);
#pragma unroll
        for (int i = 0; i < kCols; ++i) {
          if (at + i < end) y[at + i] = narrow_value<Y>(value[i]);
        }
      }
    }
  }
  __device__ __forceinline__ void copy(int p, float (&value)[kCols]) const {
#pragma unroll
    for (int i = 0; i < kCols; ++i) value[i] = value_[p * kCols + i];
  }
  // A pack that exists. is_warp: all lanes of the warp have theirs, of one row.
  template <typename Y>
  __device__ __forceinline__ void store_pack(Y *y, int p, bool is_warp) const {
    float value[kCols];
    copy(p, value);
    store_row_values(y + cols_.col(p), value, is_warp);
  }

  const GeneralArgs &args_;
  const HeldCols<kCols, kPacks> cols_;
  const X *x_;
  std::int64_t y_first_;
  std::int64_t mask_first_ = 0;
  int end_ = 0;  // of the row's columns in the block's part
  bool is_whole_ = false;
  float scale_hi_, scale_lo_;  // with kIsAdded
  float value_[kValues];
};

}  // namespace softmax
