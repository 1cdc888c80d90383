// The elements of rows that lie across memory that one thread of COLUMN holds in registers, how
// they come there and how results are written.
#pragma once

#include "core/held_column.h"
#include "cuda/general/column_quads.cuh"
#include "cuda/prim/compile.cuh"
#include "cuda/prim/reduce.cuh"

namespace softmax {

// Neighbouring rows of a thread: `within` the inner extent, the outer-th time. There are fewer rows
// than 2^31.
struct HeldRows {
  int outer;
  int within;
  int count;  // 0 past the last group
};

// The same for threads of one group: where it is in y, and how many rows it has.
struct alignas(kHeldGroupBytes) HeldGroup {
  std::int64_t y_begin;
  int rows;
};

// Where a thread is: which rows it has, and which positions of the axis. Worked out anew wherever
// it is asked for: elements take nearly all registers.
struct HeldColumnPlace {
  __device__ __forceinline__ explicit HeldColumnPlace(const GeneralArgs &args)
      : args_(args),
        block_(anew(static_cast<int>(blockIdx.x))),
        thread_(anew(static_cast<int>(threadIdx.x))) {}

  // Of the block in its cluster.
  __device__ __forceinline__ int rank() const { return block_ & (args_.column.blocks - 1); }
  // Within the block.
  __device__ __forceinline__ int group() const { return thread_ & (args_.tile.width - 1); }
  __device__ __forceinline__ int axis_thread() const {
    return thread_ >> (__ffs(args_.tile.width) - 1);
  }
  // Position.
  __device__ __forceinline__ int first() const {
    return rank() * args_.column.threads * args_.column.quads + axis_thread();
  }
  __device__ __forceinline__ HeldRows rows() const { return rows_of(group()); }
  // Of a lane, among those of the block.
  __device__ __forceinline__ int tile_row(int lane) const {
    return group() * args_.tile.quad_rows + lane;
  }
  // Of the block's row `r`; -1 for none.
  __device__ __forceinline__ std::int64_t row_of(int r) const {
    const int place = r / args_.tile.quad_rows;
    const HeldRows those = rows_of(place);
    const int lane = r - place * args_.tile.quad_rows;
    if (lane >= those.count) return -1;
    return those.outer * args_.tile.inner + those.within + lane;
  }

 private:
  // Of the block's group.
  __device__ __forceinline__ HeldRows rows_of(int place) const {
    const ColumnTile &tile = args_.tile;
    const unsigned group =
        static_cast<unsigned>(block_ >> (__ffs(args_.column.blocks) - 1)) * tile.width + place;
    const unsigned inner_groups = static_cast<unsigned>(tile.inner_groups);
    const int outer = static_cast<int>(group / inner_groups);
    const int within = static_cast<int>(group - outer * inner_groups) * tile.quad_rows;
    const int left = static_cast<int>(tile.inner) - within;
    return {outer, within,
            group < static_cast<unsigned>(tile.groups) ? min(left, tile.quad_rows) : 0};
  }

  const GeneralArgs &args_;
  int block_;
  int thread_;
};

// Neighbouring elements as one word.
template <int kBytes>
struct WordOf;
template <>
struct WordOf<2> {
  using Type = std::uint16_t;
};
template <>
struct WordOf<4> {
  using Type = std::uint32_t;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};

// Lanes come in pairs, which are all that is worked on at a time: constants of more would take the
// registers that elements are in.
template <typename X, int kLanes, int kQuads>
class HeldColumn {
 public:
  using H = typename ColumnHeld<X>::Type;
  static constexpr int kTogether = kHeldTogether;  // quads
  static constexpr int kPairs = kLanes / 2;
  static constexpr bool kKeepsTerms = sizeof(H) == 4;  // in the elements' places
  using Group = float[kTogether][2];
  static_assert(kQuads % kTogether == 0 && kLanes % 2 == 0 && (kPairs == 1 || !kKeepsTerms));

  // `groups`: the block's. What is not needed until results are written waits there.
  __device__ __forceinline__ HeldColumn(const GeneralArgs &args, HeldGroup *groups)
      : args_(args), groups_(groups) {}

  // x, and -inf for what does not exist.
  __device__ __forceinline__ void load() {
    const HeldColumnPlace place(args_);
    const HeldRows rows = place.rows();
    const int first = place.first();
    // Both before anything is on its way: they may be calls.
    const std::int64_t x_begin = begin(kTensorX, rows) + first * axis_stride(kTensorX);
    if (place.axis_thread() == 0) groups_[place.group()] = {begin(kTensorY, rows), rows.count};
    load_x(static_cast<const X *>(args_.buffers.x) + x_begin, count_from(first), rows.count);
  }
  // -x in place of x, by lanes of a pair.
  __device__ __forceinline__ void negate(int pair, bool first, bool second) {
    const int count = count_from(HeldColumnPlace(args_).first());
    constexpr std::uint32_t kSign = sizeof(H) == 4 ? 1u << 31 : 1u << 15;
    const std::uint32_t flip[2] = {first ? kSign : 0u, second ? kSign : 0u};
#pragma unroll
    for (int p = 0; p < kQuads; ++p) {
      if constexpr (sizeof(H) == 4) {
        part_[p][0] ^= p < count ? flip[0] : 0u;
        part_[p][1] ^= p < count ? flip[1] : 0u;
      } else {
        part_[p][pair] ^= p < count ? flip[0] | flip[1] << 16 : 0u;
      }
    }
  }

  // The largest of each lane of a pair, or a NaN.
  __device__ __forceinline__ void take_max(int pair, float (&max)[2]) const {
    std::uint32_t most[kParts] = {};
    for_groups([&](int first) {
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        const auto part = [&](int k) { return part_[first + k][pair * kParts + i]; };
        const std::uint32_t largest = larger(larger(part(0), part(1)), larger(part(2), part(3)));
        most[i] = first == 0 ? largest : larger(most[i], largest);
      }
    });
    unpack(most, max);
  }

  // Sums of make(lane of the pair, element), each added in Sum: see ScaledTerms. kKeep: they take
  // the elements' places.
  template <bool kKeep, typename Sum, typename Make>
  __device__ __forceinline__ void add(int pair, Sum (&sum)[2], Make make) {
    sum[0] = sum[1] = 0;
    for_groups([&](int first) {
      float term[kTogether][2];
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        get(first + k, pair, term[k]);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          term[k][i] = make(i, term[k][i]);
          if constexpr (kKeep) part_[first + k][i] = __float_as_uint(term[k][i]);
        }
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        sum[i] += (Sum(term[0][i]) + Sum(term[2][i])) + (Sum(term[1][i]) + Sum(term[3][i]));
      }
    });
  }

  // Results, which `change` makes of elements, [quad][lane of the pair], take the elements' places.
  // kIsCoarse: of 16 bits, or fewer, and else of 32.
  template <bool kIsCoarse, typename Change>
  __device__ __forceinline__ void finish(int pair, Change change) {
    if constexpr (!kIsCoarse) {
      finish_as(pair, change, [this](int first, const Group &value) { keep(first, value); });
    } else if (args_.y_dtype == SOFTMAX_DTYPE_F16) {
      finish_as(pair, change,
                [&](int first, const Group &value) { narrow<__half>(first, pair, value); });
    } else if (args_.y_dtype == SOFTMAX_DTYPE_BF16) {
      finish_as(pair, change,
                [&](int first, const Group &value) { narrow<__nv_bfloat16>(first, pair, value); });
    } else {
      finish_as(pair, change,
                [&](int first, const Group &value) { narrow_to_bytes(first, pair, value); });
    }
  }
  // Writes them, but for the lanes that `is_left` names, by bits.
  __device__ __forceinline__ void store(unsigned is_left) const {
    switch (args_.y_dtype) {
      case SOFTMAX_DTYPE_F32: return store_bits<std::uint32_t>(is_left);
      case SOFTMAX_DTYPE_F16:
      case SOFTMAX_DTYPE_BF16: return store_bits<std::uint16_t>(is_left);
      default: return store_bits<std::uint8_t>(is_left);
    }
  }

 private:
  __device__ __forceinline__ std::int64_t axis_stride(int tensor) const {
    return args_.layout().axis_stride[tensor];
  }
  // Quads of the thread that there are, the first of which is at position `first`.
  __device__ __forceinline__ int count_from(int first) const {
    const int left = static_cast<int>(args_.layout().cols) - first;
    const int threads = args_.column.threads;
    return left <= 0 ? 0 : min((left + threads - 1) >> (__ffs(threads) - 1), args_.column.quads);
  }
  __device__ __forceinline__ std::int64_t begin(int tensor, const HeldRows &rows) const {
    const Layout &layout = args_.layout();
    const std::int64_t *const stride = layout.stride[tensor];
    if (layout.dims > 2) {
      return far_row_begin(layout, tensor, rows.outer * args_.tile.inner + rows.within);
    }
    return rows.outer * stride[0] + rows.within * stride[layout.dims - 1];
  }

  // use(first quad of a group), of groups that have some.
  template <typename Use>
  __device__ __forceinline__ void for_groups(Use use) const {
#pragma unroll
    for (int first = 0; first < kQuads; first += kTogether) {
      if (first < args_.column.quads) use(first);
    }
  }

  template <typename Change, typename Put>
  __device__ __forceinline__ void finish_as(int pair, Change change, Put put) {
    for_groups([&](int first) {
      Group value;
#pragma unroll
      for (int k = 0; k < kTogether; ++k) get(first + k, pair, value[k]);
      change(value);
      put(first, value);
    });
  }

  static constexpr int kParts = sizeof(H) / 2;  // registers of a pair

  static __device__ __forceinline__ void unpack(const std::uint32_t (&part)[kParts],
                                                float (&value)[2]) {
    if constexpr (kParts == 2) {
      value[0] = __uint_as_float(part[0]);
      value[1] = __uint_as_float(part[1]);
    } else {
      const float2 two = RawElements<H>::unpack(part[0]);
      value[0] = two.x;
      value[1] = two.y;
    }
  }
  __device__ __forceinline__ void get(int quad, int pair, float (&value)[2]) const {
    std::uint32_t part[kParts];
#pragma unroll
    for (int i = 0; i < kParts; ++i) part[i] = part_[quad][pair * kParts + i];
    unpack(part, value);
  }
  static __device__ __forceinline__ std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
    if constexpr (sizeof(H) == 4) {
      return __float_as_uint(max_or_nan(__uint_as_float(a), __uint_as_float(b)));
    } else {
      return pair_max<typename RawElements<H>::Pair>(a, b);
    }
  }

  // ---- inputs ----

  // -inf, or of 8-bit elements anything.
  static constexpr std::uint32_t kMinusInf = RawElements<H>::kMinusInf[0];
  static constexpr std::uint32_t kNothing = sizeof(X) == 1 ? 0 : kMinusInf;
  static constexpr int kRawParts = kLanes * sizeof(X) < 4 ? 1 : kLanes * sizeof(X) / 4;

  static __device__ __forceinline__ void load_word(const X *from,
                                                   std::uint32_t (&part)[kRawParts]) {
    const auto word = *reinterpret_cast<const typename WordOf<kLanes * sizeof(X)>::Type *>(from);
    if constexpr (kRawParts == 2) {
      part[0] = word.x;
      part[1] = word.y;
    } else {
      part[0] = word;
    }
  }

  __device__ __forceinline__ void load_x(const X *x, int count, int rows) {
    const Layout &layout = args_.layout();
    const std::int64_t axis = layout.axis_stride[kTensorX];
    const std::int64_t row_step = layout.stride[kTensorX][layout.dims - 1];
    const std::int64_t step = args_.column.threads * axis;
    std::uint32_t raw[kQuads][kRawParts];
    const bool is_whole = args_.tile.x_is_whole && rows == kLanes;
    if (__all_sync(kFullWarp, is_whole && count == kQuads)) {
#pragma unroll
      for (int p = 0; p < kQuads; ++p, x += step) load_word(x, raw[p]);
    } else if (is_whole) {
#pragma unroll
      for (int p = 0; p < kQuads; ++p, x += step) {
#pragma unroll
        for (int i = 0; i < kRawParts; ++i) raw[p][i] = kNothing;
        if (p < count) load_word(x, raw[p]);
      }
    } else {
      constexpr int kBits = 8 * sizeof(X);
      constexpr int kEach = 32 / kBits;  // in a register
#pragma unroll
      for (int p = 0; p < kQuads; ++p, x += step) {
        std::uint32_t bits[kLanes];
#pragma unroll
        for (int i = 0; i < kLanes; ++i) {
          bits[i] = kBits == 32 ? kNothing : kNothing >> (32 - kBits);
          if (p < count && i < rows) bits[i] = element_bits(x + i * row_step);
        }
#pragma unroll
        for (int i = 0; i < kRawParts; ++i) raw[p][i] = 0;
#pragma unroll
        for (int i = 0; i < kLanes; ++i) raw[p][i / kEach] |= bits[i] << (i % kEach * kBits % 32);
      }
    }
#pragma unroll
    for (int p = 0; p < kQuads; ++p) hold(p, raw[p], count);
  }
  __device__ __forceinline__ void hold(int p, const std::uint32_t (&raw)[kRawParts], int count) {
    if constexpr (sizeof(X) == 1) {
      const auto format = args_.x_dtype == SOFTMAX_DTYPE_F8_E4M3 ? __NV_E4M3 : __NV_E5M2;
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        const __half2_raw two = __nv_cvt_fp8x2_to_halfraw2(
            static_cast<__nv_fp8x2_storage_t>(raw[0] >> (16 * i) & 0xffffu), format);
        const std::uint32_t bits = two.x | std::uint32_t{two.y} << 16;
        part_[p][i] = p < count ? bits : kMinusInf;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kPairs * kParts; ++i) part_[p][i] = raw[i];
    }
  }

  // ---- outputs ----

  __device__ __forceinline__ void keep(int first, const Group &value) {
    if constexpr (kKeepsTerms) {
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        part_[first + k][0] = __float_as_uint(value[k][0]);
        part_[first + k][1] = __float_as_uint(value[k][1]);
      }
    }
  }
  // In the place of the pair's elements, or in its lower half.
  template <typename Y>
  __device__ __forceinline__ void narrow(int first, int pair, const Group &value) {
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      part_[first + k][pair * kParts] = RawElements<Y>::pack(value[k][0], value[k][1]);
    }
  }
  __device__ __forceinline__ void narrow_to_bytes(int first, int pair, const Group &value) {
    if constexpr (kConvertsF8) {  // else no such call comes here
#pragma unroll
      for (int k = 0; k < kTogether; ++k) {
        std::uint32_t bits[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float scaled = static_cast<float>(double(value[k][i]) * args_.general.y_scale);
          bits[i] = args_.y_dtype == SOFTMAX_DTYPE_F8_E4M3 ? narrow_value<f8_e4m3_t>(scaled).bits
                                                           : narrow_value<f8_e5m2_t>(scaled).bits;
        }
        part_[first + k][pair * kParts] = bits[0] | bits[1] << 8;
      }
    }
  }

  // Results that finish() has left, as bits of their size.
  template <typename Bits>
  __device__ __forceinline__ void store_bits(unsigned is_left) const {
    if constexpr (sizeof(Bits) <= sizeof(H)) {
      const Layout &layout = args_.layout();
      const std::int64_t lane_step = layout.stride[kTensorY][layout.dims - 1];
      const std::int64_t step = args_.column.threads * axis_stride(kTensorY);
      const HeldColumnPlace place(args_);
      const HeldGroup group = groups_[place.group()];
      const int first = place.first();
      const int count = count_from(first);
      const unsigned lanes = ((1u << group.rows) - 1) & ~is_left;
      Bits *to =
          static_cast<Bits *>(args_.buffers.y) + group.y_begin + first * axis_stride(kTensorY);
      const bool is_whole = args_.tile.y_is_whole && lanes == (1u << kLanes) - 1;
      if (__all_sync(kFullWarp, is_whole)) {
        for_groups([&](int first) {
          if (__all_sync(kFullWarp, first + kTogether <= count)) {
#pragma unroll
            for (int k = 0; k < kTogether; ++k, to += step) store_word(to, part_[first + k]);
          } else {
#pragma unroll
            for (int k = 0; k < kTogether; ++k, to += step) {
              if (first + k < count) store_word(to, part_[first + k]);
            }
          }
        });
      } else {
        constexpr int kBits = 8 * sizeof(Bits);
        constexpr bool kIsPair = sizeof(Bits) < 4;  // in a register
#pragma unroll
        for (int p = 0; p < kQuads; ++p, to += step) {
#pragma unroll
          for (int i = 0; i < kLanes; ++i) {
            const std::uint32_t part = part_[p][kIsPair ? i / 2 * kParts : i];
            if (p < count && (lanes >> i & 1) != 0) {
              to[i * lane_step] = static_cast<Bits>(part >> (kIsPair ? i % 2 * kBits : 0));
            }
          }
        }
      }
    }
  }
  template <typename Bits>
  static __device__ __forceinline__ void store_word(Bits *to,
                                                    const std::uint32_t (&part)[kPairs * kParts]) {
    using Word = typename WordOf<kLanes * sizeof(Bits)>::Type;
    if constexpr (sizeof(Word) == 8) {
      store_half(to, part[0], part[1]);
    } else if constexpr (kPairs == 2) {
      *reinterpret_cast<Word *>(to) = part[0] | part[1] << 16;  // of bytes
    } else {
      *reinterpret_cast<Word *>(to) = static_cast<Word>(part[0]);
    }
  }

  const GeneralArgs &args_;
  HeldGroup *const groups_;
  std::uint32_t part_[kQuads][kPairs * kParts];
};

}  // namespace softmax
