// The elements of a dense row's gradient that one thread holds in registers, how they come there
// and how what is made of them is written. Columns are the threads' as in held_row.cuh.
#pragma once

#include "cuda/general/element.cuh"
#include "cuda/general/pack.cuh"
#include "cuda/general/row_team.cuh"
#include "cuda/prim/compile.cuh"

namespace softmax {

// A pack's elements where `kept` has a bit, the others of `other`.
template <typename X>
__device__ __forceinline__ RawPack kept_of(const RawPack &raw, std::uint32_t kept,
                                           const RawPack &other) {
  RawPack result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(X) == 2) {
      const std::uint32_t mask =
          ((kept >> (2 * i) & 1) * 0xffffu) | ((kept >> (2 * i + 1) & 1) * 0xffff0000u);
      result.part[i] = (raw.part[i] & mask) | (other.part[i] & ~mask);
    } else {
      result.part[i] = (kept >> i & 1) != 0 ? raw.part[i] : other.part[i];
    }
  }
  return result;
}

// The elements of y, or x, and of dy that one thread holds of a row. kIsPlain: rows are whole words
// at one pitch, without a mask.
template <typename In, int kPacks, bool kFromX, bool kIsPlain>
class HeldGradient {
 public:
  static constexpr int kCols = kWordBytes / static_cast<int>(sizeof(In));
  static constexpr int kValues = kPacks * kCols;

  __device__ __forceinline__ HeldGradient(const GeneralArgs &args, std::int64_t row, int rank)
      : args_(args), cols_(args, rank, static_cast<int>(threadIdx.x)) {
    // All of it now: no call comes between loading and storing.
    const std::int64_t first = cols_.first();
    source_ = as_base(static_cast<const In *>(kFromX ? args.buffers.x : args.buffers.y) +
                          begin(kFromX ? kTensorX : kTensorY, row) + first,
                      args.zero);
    dy_ = as_base(static_cast<const In *>(args.buffers.dy) + begin(kTensorDy, row) + first,
                  args.zero);
    dx_first_ = begin(kTensorX, row) + first;
    if (!kIsPlain && args.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP) {
      mask_ = static_cast<const std::uint8_t *>(args.buffers.mask) +
              row_begin(args, kTensorMask, row) + first * args.layout().axis_stride[kTensorMask];
    }
  }

  // What is masked or does not exist is `nothing` with a dy of 0. `length`: of the row.
  __device__ __forceinline__ void load(std::int64_t length, const RawPack &nothing) {
    const int end = cols_.within(length);
    if constexpr (kIsPlain) return load_words(end, nothing);
    const bool is_aligned = is_word_aligned(source_);
    const bool is_dy_aligned = is_word_aligned(dy_);
    bool has_pieces = false;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      const bool is_whole = at + kCols <= end;
      raw_[p] = is_aligned && is_whole ? load_raw(source_ + at) : nothing;
      raw_dy_[p] = is_dy_aligned && is_whole ? load_raw(dy_ + at) : RawPack{};
      has_pieces = has_pieces || (!(is_aligned && is_dy_aligned && is_whole) && at < end);
    }
    if (has_pieces) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        const int at = cols_.col(p);
        const bool is_whole = at + kCols <= end;
        if (!is_aligned || !is_whole) raw_[p] = load_raw_pieces(source_ + at, end - at, nothing);
        if (!is_dy_aligned || !is_whole) {
          raw_dy_[p] = load_raw_pieces(dy_ + at, end - at, RawPack{});
        }
      }
    }
    if (args_.general.mask_kind != SOFTMAX_MASK_NONE) take_mask(end, nothing);
  }

#if SOFTMAX_BULK_COPY
  // With kIsPlain: the block's part of a row comes to L2.
  __device__ __forceinline__ void prefetch(std::int64_t row) const {
    const std::int64_t bytes = cols_.within(args_.layout().cols) * sizeof(In);
    const void *const source = kFromX ? args_.buffers.x : args_.buffers.y;
    const std::uint64_t first = begin_of(source, kFromX ? kTensorX : kTensorY, row);
    const std::uint64_t dy_first = begin_of(args_.buffers.dy, kTensorDy, row);
    prefetch_range({first, first + bytes});
    prefetch_range({dy_first, dy_first + bytes});
  }
#endif

  // add(sum, source, dy) over the elements, one after another.
  template <typename Add>
  __device__ __forceinline__ double sum(Add add) const {
    double sum[2] = {0.0, 0.0};
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float source[kCols], dy[kCols];
      unpack<In>(raw_[p], source);
      unpack<In>(raw_dy_[p], dy);
#pragma unroll
      for (int i = 0; i < kCols; ++i) sum[i % 2] = add(sum[i % 2], source[i], dy[i]);
    }
    return sum[0] + sum[1];
  }

  // Of 16-bit source elements the largest, or a NaN.
  __device__ __forceinline__ float max() const {
    using Pair = typename RawElements<In>::Pair;
    std::uint32_t most = raw_[0].part[0];
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int i = 0; i < 4; ++i) most = pair_max<Pair>(most, raw_[p].part[i]);
    }
    const float2 ends = RawElements<In>::unpack(most);
    return max_or_nan(ends.x, ends.y);
  }

  // Elements that are neither masked nor -inf.
  __device__ __forceinline__ float count_some() const {
    float count = 0.0f;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      float source[kCols];
      unpack<In>(raw_[p], source);
#pragma unroll
      for (int i = 0; i < kCols; ++i)
        count += source[i] == -Limits<float>::infinity() ? 0.0f : 1.0f;
    }
    return count;
  }

  __device__ __forceinline__ void mask_all() { kept_ = 0; }

  // Writes what make(source, dy, dx) makes of a pack, to all of the row's columns, 0 where masked.
  // Returns a bit for each pack that has been left as it was because `make` has returned false.
  template <typename Out, typename Make>
  __device__ __forceinline__ std::uint32_t store(Make make) const {
    Out *const dx = as_base(static_cast<Out *>(args_.buffers.dx) + dx_first_, args_.zero);
    const int end = cols_.within(args_.layout().cols);
    constexpr int kBytes = kCols * static_cast<int>(sizeof(Out));
    const bool is_aligned = kIsPlain || reinterpret_cast<std::uintptr_t>(dx) % kBytes == 0;
    std::uint32_t left = 0;
    // All packs, of which the compiler knows nothing: their work side by side would not fit the
    // registers.
    const std::uint32_t packs = ~args_.zero;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if ((packs >> p & 1) == 0) continue;
      const int at = cols_.col(p);
      float source[kCols], dy[kCols], value[kCols];
      unpack<In>(as_new(raw_[p]), source);
      unpack<In>(as_new(raw_dy_[p]), dy);
      const bool is_made = make(source, dy, value);
      const std::uint32_t kept = kept_of_pack(p);
      if ((~kept & kAll) != 0) {
#pragma unroll
        for (int i = 0; i < kCols; ++i) value[i] = (kept >> i & 1) != 0 ? value[i] : 0.0f;
      }
      if (!is_made) {
        left |= 1u << p;
      } else if (is_aligned && at + kCols <= end) {
        store_values(dx + at, value);
      } else if (!kIsPlain) {
#pragma unroll
        for (int i = 0; i < kCols; ++i) {
          if (at + i < end) dx[at + i] = DeviceElement<Out>::store(value[i]);
        }
      }
    }
    return left;
  }

  // The same of packs that have been left, from memory once more: nothing is held meanwhile.
  template <typename Out, typename One>
  __device__ __forceinline__ void store_left(std::uint32_t left, One one) const {
    Out *const dx = static_cast<Out *>(args_.buffers.dx) + dx_first_;
    const int end = cols_.within(args_.layout().cols);
#pragma unroll 1
    for (; left != 0; left &= left - 1) {
      const int p = __ffs(static_cast<int>(left)) - 1;
      const int at = cols_.col(p);
      const std::uint32_t kept = kept_of_pack(p);
#pragma unroll 1
      for (int i = 0; i < kCols && at + i < end; ++i) {
        float value = 0.0f;
        if ((kept >> i & 1) != 0) {
          value =
              one(DeviceElement<In>::load(source_[at + i]), DeviceElement<In>::load(dy_[at + i]));
        }
        dx[at + i] = DeviceElement<Out>::store(value);
      }
    }
  }

 private:
  static constexpr std::uint32_t kAll = (1u << kCols) - 1;
  static_assert(kValues <= 32, "a bit an element");

  __device__ __forceinline__ std::uint32_t kept_of_pack(int p) const {
    return kept_ >> (p * kCols);
  }

  // Where a row begins.
  __device__ __forceinline__ std::int64_t begin(int tensor, std::int64_t row) const {
    if constexpr (kIsPlain) return row * args_.layout().stride[tensor][0];
    return row_begin(args_, tensor, row);
  }

  // Where the block's part of it does.
  __device__ __forceinline__ std::uint64_t begin_of(const void *data, int tensor,
                                                    std::int64_t row) const {
    return address_of(static_cast<const In *>(data) + begin(tensor, row) + cols_.first());
  }

  // `end`: of columns that there are.
  __device__ __forceinline__ void load_words(int end, const RawPack &nothing) {
    if (cols_.is_whole(end)) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        raw_[p] = load_raw(source_ + cols_.col(p));
        raw_dy_[p] = load_raw(dy_ + cols_.col(p));
      }
    } else {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        const int at = cols_.col(p);
        raw_[p] = at < end ? load_raw(source_ + at) : nothing;
        raw_dy_[p] = at < end ? load_raw(dy_ + at) : RawPack{};
      }
    }
  }

  // For the compiler, elements of which nothing has been made yet: what was made of them for the
  // sum would take twice their registers, or more.
  __device__ __forceinline__ RawPack as_new(RawPack raw) const {
#pragma unroll
    for (std::uint32_t &part : raw.part) {
      asm volatile("xor.b32 %0, %0, %1;" : "+r"(part) : "r"(args_.zero));
    }
    return raw;
  }

  // What `end` has masked has not been loaded.
  __device__ __forceinline__ void take_mask(int end, const RawPack &nothing) {
    const std::int64_t stride = args_.layout().axis_stride[kTensorMask];
    const std::uint8_t *const mask = mask_;
    const bool is_aligned =
        stride == 1 && reinterpret_cast<std::uintptr_t>(mask) % sizeof(KeepPack<kCols>) == 0;
    kept_ = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int at = cols_.col(p);
      const int count = end - at;
      std::uint32_t kept = count >= kCols ? kAll : count <= 0 ? 0u : (1u << count) - 1;
      if (mask != nullptr) {
        const KeepPack<kCols> keep =
            is_aligned && count >= kCols
                ? load_keep<kCols>(mask + at)
                : load_keep_pieces<kCols>(mask + at * stride, stride, count);
        kept = 0;
#pragma unroll
        for (int i = 0; i < kCols; ++i) kept |= keep.has(i) ? 1u << i : 0u;
        raw_[p] = kept_of<In>(raw_[p], kept, nothing);
        raw_dy_[p] = kept_of<In>(raw_dy_[p], kept, RawPack{});
      }
      kept_ |= kept << (p * kCols);
    }
  }

  const GeneralArgs &args_;
  const HeldCols<kCols, kPacks> cols_;
  const In *source_;
  const In *dy_;
  const std::uint8_t *mask_ = nullptr;
  std::int64_t dx_first_;
  std::uint32_t kept_ = 0xffffffffu;  // a bit an element
  RawPack raw_[kPacks];
  RawPack raw_dy_[kPacks];
};

}  // namespace softmax
