// Algorithm 15, COLUMN: rows that lie across memory, neighbouring rows being neighbours there: a
// tile of them in the shared memory of a block, or of a cluster's blocks, each of which has a part
// of the axis. Every input is read once, every output written once.
//
// A thread's quads (core/column_tile.h) come by asynchronous copy into places that nobody else
// looks at: shared memory serves as more registers. What the threads of a row find in common goes
// by way of lanes, warps and blocks to one thread, which works out the row's numbers for all. A row
// that this arithmetic is not for is left and computed in float64 afterwards: wide_row.cuh.
#pragma once

#include <cooperative_groups.h>
#include <cuda_pipeline_primitives.h>

#include "core/column_tile.h"
#include "cuda/general/pack.cuh"
#include "cuda/general/row_numbers.cuh"
#include "cuda/prim/bulk.cuh"
#include "cuda/prim/part_merge.cuh"

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

// What threads of a row find in common, and how two of them become one.
struct ColumnMax {
  float max;

  static __device__ __forceinline__ ColumnMax none() { return {-Limits<float>::infinity()}; }
  __device__ __forceinline__ ColumnMax with(const ColumnMax &other) const {
    return {max_or_nan(max, other.max)};
  }
  __device__ __forceinline__ ColumnMax from_lane(int step) const {
    return {__shfl_xor_sync(kFullWarp, max, step)};
  }
};
struct alignas(kColumnPartBytes) ColumnSums : RowSums {
  static __device__ __forceinline__ ColumnSums none() { return {{0.0, 0.0f}}; }
  __device__ __forceinline__ ColumnSums with(const ColumnSums &other) const {
    return {{others + other.others, ones + other.ones}};
  }
  __device__ __forceinline__ ColumnSums from_lane(int step) const {
    return {{__shfl_xor_sync(kFullWarp, others, step), __shfl_xor_sync(kFullWarp, ones, step)}};
  }
};

// What a row's outputs are made of.
struct alignas(16) ColumnNumbers {
  float terms[4];  // see ScaledTerms; with given statistics, log-softmax: scale and log(sum)
  float max;       // as the terms take it: a finite number
  // Softmax: the factor of a term, and what comes before it. Log-softmax: the scale, log(sum).
  // Until these are known the last is the row's maximum.
  float number[3];
};
static_assert(sizeof(ColumnNumbers) == kColumnNumbersBytes);

template <typename X>
class ColumnCall {
  using H = typename ColumnHeld<X>::Type;

 public:
  __device__ __forceinline__ ColumnCall(const GeneralArgs &args, unsigned char *room, int *any_left)
      : args_(args),
        room_(room),
        any_left_(any_left),
        rank_(static_cast<int>(blockIdx.x % args.row_blocks)),
        first_group_(std::int64_t{blockIdx.x / args.row_blocks} * args.tile.width),
        group_(static_cast<int>(threadIdx.x) & (args.tile.width - 1)),
        axis_thread_(static_cast<int>(threadIdx.x) / args.tile.width),
        rows_(column_rows(args.tile, first_group_ + group_)) {
    scaling_ = RowScaling::of(args.general.scale);
  }

  __device__ __forceinline__ void run() {
    if (threadIdx.x == 0) *any_left_ = 0;
    load();
    find_max();
    const bool is_softmax = !args_.is_log && !args_.is_stats;
    if (!args_.general.given_stats) {
      if (args_.is_log || args_.writes_stats()) find_sums_apart();
      if (is_softmax) find_sums();
    }
    if (!args_.is_stats) store();
  }

  __device__ __forceinline__ void run_left(TeamScratch *scratch) const {
    if (*any_left_ == 0 || rank_ != 0) return;
    const Team team = Team::of_block(scratch);
#pragma unroll 1
    for (int r = 0; r < args_.tile.rows(); ++r) {
      const std::int64_t row = row_of(r);
      if (left()[r] != 0 && row >= 0) run_wide_row(args_, row, team);
    }
  }

 private:
  static constexpr int kTogether = 4;  // quads: as many terms of a row are added in float32

  // ---- where things are ----

  __device__ __forceinline__ Quad<H> *quads() const {
    return reinterpret_cast<Quad<H> *>(room_) + threadIdx.x;
  }
  __device__ __forceinline__ std::uint32_t *masks() const {
    return reinterpret_cast<std::uint32_t *>(room_ + args_.room.masks) + threadIdx.x;
  }
  __device__ __forceinline__ ColumnNumbers *numbers() const {
    return reinterpret_cast<ColumnNumbers *>(room_ + args_.room.numbers);
  }
  __device__ __forceinline__ unsigned char *left() const { return room_ + args_.room.left; }
  __device__ __forceinline__ int quad_rows() const { return args_.tile.quad_rows; }
  __device__ __forceinline__ int row_of_lane(int i) const { return i & (quad_rows() - 1); }
  // Of a lane, among those of the block.
  __device__ __forceinline__ int tile_row(int i) const {
    return group_ * quad_rows() + row_of_lane(i);
  }
  __device__ __forceinline__ int position(int quad) const {
    return column_position(args_.column, args_.tile, rank_, axis_thread_, quad, 0);
  }
  __device__ __forceinline__ int position_step(int i) const {  // of a lane
    return quad_rows() == kQuad ? 0 : i / 2;
  }
  __device__ __forceinline__ int cols() const { return static_cast<int>(args_.layout().cols); }
  // Of the block's row `r`; -1 for none.
  __device__ __forceinline__ std::int64_t row_of(int r) const {
    const ColumnRows rows = column_rows(args_.tile, first_group_ + r / quad_rows());
    const int within = r & (quad_rows() - 1);
    return within < rows.count ? rows.first + within : -1;
  }

  // From one lane's element to the next, and from one quad's to the next.
  struct Steps {
    std::int64_t row, axis;
  };
  __device__ __forceinline__ Steps steps(int tensor) const {
    const Layout &layout = args_.layout();
    return {layout.stride[tensor][layout.dims - 1], layout.axis_stride[tensor]};
  }
  __device__ __forceinline__ std::int64_t lane_offset(const Steps &s, int i) const {
    return row_of_lane(i) * s.row + position_step(i) * s.axis;
  }

  // ---- inputs ----

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
    lanes.least_end = cols();
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      const bool is_row = row_of_lane(i) < rows_.count;
      const std::int64_t row = rows_.first + row_of_lane(i);
      lanes.end[i] = is_row ? cols() : 0;
      lanes.is_negative[i] = args_.general.scale < 0.0;
      if (is_row && has_length) lanes.end[i] = static_cast<int>(masked_row_length(args_, row));
      if (is_row && args_.buffers.row_scale != nullptr) {
        lanes.is_negative[i] = RowScaling::of(scale_of(row)).sign < 0.0f;
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
  static __device__ __forceinline__ std::uint32_t element_bits(const X *at) {
    if constexpr (sizeof(X) == 4) {
      return *reinterpret_cast<const std::uint32_t *>(at);
    } else if constexpr (sizeof(X) == 2) {
      return *reinterpret_cast<const std::uint16_t *>(at);
    } else {
      return *reinterpret_cast<const std::uint8_t *>(at);
    }
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

  __device__ __forceinline__ void load() {
    // All of them before anything is on its way: they are calls.
    const Lanes at = lanes();
    const bool has_mask = args_.general.mask_kind == SOFTMAX_MASK_BOOL_KEEP;
    const std::int64_t x_begin = row_begin(args_, kTensorX, rows_.first);
    y_begin_ = row_begin(args_, kTensorY, rows_.first);
    const std::int64_t mask_begin = has_mask ? row_begin(args_, kTensorMask, rows_.first) : 0;
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

  __device__ __forceinline__ void load_x(const X *x, const Lanes &lane) {
    const Steps step = steps(kTensorX);
    Quad<H> *to = quads();
    int at = position(0);
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
                is_pieces[k] && at + k * args_.column.threads + position_step(i) < lane.end[i];
            bits[k][i] = nothing(lane.is_negative[i]);
            if (is_word[k]) {
              bits[k][i] = held_bits(word >> (8 * i) & 0xffu);
            } else if (is_element) {
              bits[k][i] = held_bits(element_bits(x + k * quad_step + lane_offset(step, i)));
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
    const Steps step = steps(kTensorMask);
    std::uint32_t *to = masks();
    int at = position(0);
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
          if (at + position_step(i) < lane.end[i]) {
            keep |= std::uint32_t{mask[lane_offset(step, i)]} << (8 * i);
          }
        }
        *to = keep;
      }
      at += args_.column.threads;
      mask += args_.column.threads * step.axis;
      to += blockDim.x;
    }
  }

  // ---- what is held ----

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

  // ---- rows' numbers ----

  __device__ __forceinline__ double scale_of(std::int64_t row) const {
    const float *const row_scale = args_.buffers.row_scale;
    return row_scale == nullptr || row < 0 ? args_.general.scale
                                           : args_.general.scale * double(row_scale[row]);
  }
  __device__ __forceinline__ RowScaling scaling_of(std::int64_t row) const {
    return args_.buffers.row_scale == nullptr ? scaling_ : RowScaling::of(scale_of(row));
  }
  // Where nothing is asked of a row but its numbers, nobody has to know which it is.
  __device__ __forceinline__ std::int64_t needed_row(int r) const {
    const GeneralBuffers &b = args_.buffers;
    const bool is_needed = b.row_scale != nullptr || b.sink != nullptr ||
                           args_.general.given_stats || args_.writes_stats();
    return is_needed ? row_of(r) : -1;
  }
  __device__ __forceinline__ double sink_of(std::int64_t row) const {
    if (args_.buffers.sink == nullptr || row < 0) return -Limits<double>::infinity();
    return args_.buffers.sink[row_begin(args_, kTensorSink, row)];
  }
  static __device__ __forceinline__ bool is_finite(float v) {
    return v < Limits<float>::infinity() && v > -Limits<float>::infinity();
  }

  // From lanes to the block's or the cluster's threads: `finish` is called for each of the block's
  // rows by one thread, and what it writes is there for all when this returns.
  template <typename V, typename Finish>
  __device__ __forceinline__ void reduce(V (&own)[kQuad], Finish finish) {
    const int width = args_.tile.width;
    if (quad_rows() < kQuad) {
      own[0] = own[0].with(own[2]);
      own[1] = own[1].with(own[3]);
    }
#pragma unroll
    for (int step = 1; step < kWarpThreads; step *= 2) {
      if (step >= width) {
#pragma unroll
        for (int i = 0; i < kQuad; ++i) own[i] = own[i].with(own[i].from_lane(step));
      }
    }
    const int count = column_parts(args_.column, args_.tile);
    V *const parts = reinterpret_cast<V *>(room_ + args_.room.parts);
    const int thread = static_cast<int>(threadIdx.x);
    if (width >= kWarpThreads || thread % kWarpThreads < width) {
      const int part = width >= kWarpThreads ? axis_thread_ : thread / kWarpThreads;
#pragma unroll
      for (int i = 0; i < kQuad; ++i) {
        if (i < quad_rows()) parts[tile_row(i) * count + part] = own[i];
      }
    }
    __syncthreads();
    V *from = parts;
    int from_count = count;
#if SOFTMAX_BULK_COPY
    if (args_.row_blocks > 1) {
      const auto cluster = cooperative_groups::this_cluster();
      // Two of them: who is one exchange ahead does not write where others still read.
      from = reinterpret_cast<V *>(room_ + args_.room.sent + exchange_ * args_.room.sent_bytes);
      from_count = args_.row_blocks;
      if (is_first_exchange_) cuda::ptx::barrier_cluster_wait(cuda::ptx::sem_acquire);
      for_rows(parts, count, [&](int r, int part, const V &all) {
        for (int to = part; to < from_count; to += count) {
          *cluster.map_shared_rank(&from[r * from_count + rank_], to) = all;
        }
      });
      cluster.sync();
      is_first_exchange_ = false;
      exchange_ ^= 1;
    }
#endif
    for_rows(from, from_count, [&](int r, int part, const V &all) {
      if (part == 0) finish(r, all);
    });
    __syncthreads();
  }
  // use(row, part, what its parts come to), by as many threads a row as it has parts.
  template <typename V, typename Use>
  __device__ __forceinline__ void for_rows(const V *parts, int count, Use use) const {
    const int all = args_.tile.rows() * count;
    const int threads = static_cast<int>(blockDim.x);
    const int shift = __popc(static_cast<unsigned>(count - 1));
#pragma unroll 1
    for (int first = 0; first < all; first += threads) {
      const int i = first + static_cast<int>(threadIdx.x);
      V value = i < all ? parts[i] : V::none();
#pragma unroll 1
      for (int step = 1; step < count; step *= 2) value = value.with(value.from_lane(step));
      if (i < all) use(i >> shift, i & (count - 1), value);
    }
  }

  // ---- maxima ----

  __device__ __forceinline__ void find_max() {
    __pipeline_wait_prior(0);
    ColumnMax max[kQuad];
#pragma unroll
    for (int i = 0; i < kQuad; ++i) max[i] = ColumnMax::none();
#pragma unroll 1
    for (int first = 0; first < args_.column.quads; first += kTogether) {
      float value[kTogether][kQuad];
      get(first, value);
      if (is_fixed_) fix(first, value);
#pragma unroll
      for (int i = 0; i < kQuad; ++i) {
        const float a = max_or_nan(value[0][i], value[1][i]);
        const float b = max_or_nan(value[2][i], value[3][i]);
        max[i].max = max_or_nan(max[i].max, max_or_nan(a, b));
      }
    }
    reduce(max, [&](int r, const ColumnMax &all) { finish_max(r, all.max); });
  }

  __device__ __forceinline__ void finish_max(int r, float max) {
    const std::int64_t row = needed_row(r);
    const RowScaling scaling = scaling_of(row);
    const float finite = is_finite(max) ? max : 0.0f;
    const ScaledTerms terms(finite, scaling);
    ColumnNumbers n;
    terms.give(n.terms);
    n.max = finite;
    n.number[0] = scaling.hi;
    n.number[1] = scaling.lo;
    n.number[2] = max;
    bool is_left = !scaling.is_usual || !terms.is_near();
    if (args_.general.given_stats && row >= 0 && !is_left) {
      is_left = !finish_given(row, terms, max, scaling, &n);
    }
    numbers()[r] = n;
    left()[r] = is_left;
    if (is_left) *any_left_ = 1;
  }

  // False: what is not finite, or far from what is given, goes the long way.
  __device__ __forceinline__ bool finish_given(std::int64_t row, const ScaledTerms &terms,
                                               float max, const RowScaling &scaling,
                                               ColumnNumbers *n) const {
    const double given_max = args_.buffers.row_max[row];
    const double given_sum = args_.buffers.row_sum[row];
    const double way = double(max) * scaling.size - given_max;
    if (!(way > -60.0 && way < 60.0 && given_sum > 0x1p-60 && given_sum < 0x1p60)) return false;
    const double log_sum = log(given_sum);
    if (args_.buffers.lse != nullptr && rank_ == 0) {
      args_.buffers.lse[row] = float(given_max + log_sum);
    }
    if (args_.is_log) {
      memcpy(n->terms, &scaling.size, sizeof(double));
      memcpy(n->terms + 2, &log_sum, sizeof(double));
      n->max = static_cast<float>(given_max);
    } else {
      put_factor(exp(terms.reference() - given_max) / given_sum * 0x1p-64, n->number);
    }
    return true;
  }

  // ---- sums ----

  struct LaneNumbers {
    ColumnNumbers of[kQuad];
  };
  __device__ __forceinline__ LaneNumbers lane_numbers() const {
    LaneNumbers lanes;
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      const ColumnNumbers *const from = &numbers()[tile_row(i)];
      lanes.of[i] = *from;
    }
    return lanes;
  }

  static __device__ __forceinline__ float added(const float (&term)[kTogether]) {
    return (term[0] + term[2]) + (term[1] + term[3]);
  }

  // What equals the maximum is counted.
  __device__ __forceinline__ void find_sums_apart() {
    const LaneNumbers lane = lane_numbers();
    ColumnSums sums[kQuad];
#pragma unroll
    for (int i = 0; i < kQuad; ++i) sums[i] = ColumnSums::none();
#pragma unroll 1
    for (int first = 0; first < args_.column.quads; first += kTogether) {
      float value[kTogether][kQuad];
      get(first, value);
#pragma unroll
      for (int i = 0; i < kQuad; ++i) {
        const ScaledTerms make(lane.of[i].terms);
        float term[kTogether];
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          const bool is_one = value[k][i] == lane.of[i].max;
          const float made = make(value[k][i]);
          term[k] = is_one ? 0.0f : made;
          sums[i].ones += is_one ? 1.0f : 0.0f;
        }
        sums[i].others += double(added(term));
      }
    }
    reduce(sums, [&](int r, const ColumnSums &all) { finish_sums_apart(r, all); });
  }

  __device__ __forceinline__ void finish_sums_apart(int r, const RowSums &sums) {
    ColumnNumbers &n = numbers()[r];
    const std::int64_t row = needed_row(r);
    const RowScaling scaling = scaling_of(row);
    const double sink = sink_of(row);
    const float max = n.number[2];
    const double top = double(max) * scaling.size;
    const double reference = ScaledTerms(n.terms).reference();
    if (left()[r] == 0 && row >= 0 && args_.writes_stats() && rank_ == 0) {
      write_row_stats(args_, row, max, top, sink, reference, sums.others, sums.ones);
    }
    if (!args_.is_log) return;
    n.number[2] = log_sum(max, top, sink, reference, sums);
  }

  // Of a row that is not finite: what makes NaN, or -inf, of its elements.
  __device__ __forceinline__ float log_sum(float max, double top, double sink, double reference,
                                           const RowSums &sums) const {
    if (!is_finite(max)) {
      return is_nan_row(max, sink) ? Limits<float>::infinity() - Limits<float>::infinity() : 0.0f;
    }
    if (!(sink < Limits<double>::infinity())) {
      return Limits<float>::infinity() - Limits<float>::infinity();
    }
    const double d = reference - top;  // moderate
    const float hi = static_cast<float>(d);
    const Split<float> e = exp_in_units(Split<float>{hi, static_cast<float>(d - double(hi))});
    const double rest =
        double(sums.ones) - 1.0 + sums.others * ((double(e.hi) + double(e.lo)) * 0x1p-128);
    return sink > -Limits<double>::infinity() ? row_log_sum(rest, sink, top)
                                              : log_1_plus(static_cast<float>(rest));
  }
  __device__ __forceinline__ bool is_nan_row(float max, double sink) const {
    const double infinity = Limits<double>::infinity();
    if (!(max < Limits<float>::infinity()) || !(sink < infinity)) return true;
    return max == -Limits<float>::infinity() && !(sink > -infinity || args_.empty_is_zero);
  }

  __device__ __forceinline__ bool is_coarse() const { return args_.y_dtype != SOFTMAX_DTYPE_F32; }
  // Terms take the place of elements where they are as wide.
  static constexpr bool kKeepsTerms = sizeof(H) == 4;

  __device__ __forceinline__ void find_sums() {
    const LaneNumbers lane = lane_numbers();
    if (is_coarse()) {
      add_terms([&](int i, float x) {
        return ScaledCoarseTerms(lane.of[i].max, lane.of[i].terms[0])(x);
      });
    } else {
      add_terms([&](int i, float x) { return ScaledTerms(lane.of[i].terms)(x); });
    }
    ColumnSums sums[kQuad];
#pragma unroll
    for (int i = 0; i < kQuad; ++i) sums[i] = {{sum_[i], 0.0f}};
    reduce(sums, [&](int r, const ColumnSums &all) { finish_sums(r, all.others); });
  }
  template <typename Make>
  __device__ __forceinline__ void add_terms(Make make) {
    double sum[kQuad] = {};
#pragma unroll 1
    for (int first = 0; first < args_.column.quads; first += kTogether) {
      float value[kTogether][kQuad];
      get(first, value);
#pragma unroll
      for (int i = 0; i < kQuad; ++i) {
        float term[kTogether];
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          term[k] = make(i, value[k][i]);
          value[k][i] = term[k];
        }
        sum[i] += double(added(term));
      }
      if constexpr (kKeepsTerms) put(first, value);
    }
#pragma unroll
    for (int i = 0; i < kQuad; ++i) sum_[i] = sum[i];
  }

  __device__ __forceinline__ void finish_sums(int r, double total) {
    ColumnNumbers &n = numbers()[r];
    const std::int64_t row = needed_row(r);
    const double sink = sink_of(row);
    const float max = n.number[2];
    const float nan = Limits<float>::infinity() - Limits<float>::infinity();
    if (!is_finite(max) || !(sink < Limits<double>::infinity())) {
      n.number[0] = is_nan_row(max, sink) ? nan : 0.0f;
      n.number[1] = 0.0f;
      n.number[2] = 1.0f;
      return;
    }
    if (sink > -Limits<double>::infinity()) {
      const double reference =
          is_coarse() ? double(max) * scaling_of(row).size : ScaledTerms(n.terms).reference();
      total += 0x1p64 * exp(sink - reference);
    }
    put_factor(1.0 / total, n.number);
  }

  // Of terms, which are in units: hi, lo, and what the term is multiplied with before.
  static __device__ __forceinline__ void put_factor(double factor, float (&number)[3]) {
    // Where the factor is far below 1, results are below the normal range: 2^64 changes places.
    const bool is_small = factor < 0x1p-100;
    const double shifted = is_small ? factor * 0x1p64 : factor;
    number[0] = static_cast<float>(shifted);
    number[1] = static_cast<float>(shifted - double(number[0]));
    number[2] = is_small ? 0x1p-64f : 1.0f;
  }

  // ---- outputs ----

  static constexpr int kStoredTogether = 2;
  using Values = float[kStoredTogether][kQuad];

  template <typename Make>
  static __device__ __forceinline__ void change(Values &value, Make make) {
#pragma unroll
    for (int k = 0; k < kStoredTogether; ++k) {
#pragma unroll
      for (int i = 0; i < kQuad; ++i) value[k][i] = make(i, value[k][i]);
    }
  }

  __device__ __forceinline__ void store() {
    const LaneNumbers lane = lane_numbers();
    const bool is_given = args_.general.given_stats;
    const bool is_log = args_.is_log;
    const bool has_terms = kKeepsTerms && !is_given;
    const bool is_precise = is_given || !is_coarse();
    int ends[kQuad];  // of what is written, by lanes
    int least_end = cols();
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      const bool is_row = row_of_lane(i) < rows_.count;
      ends[i] = is_row && left()[tile_row(i)] == 0 ? cols() : 0;
      least_end = min(least_end, ends[i]);
    }
    const Steps step = steps(kTensorY);
    const std::int64_t quad_step = args_.column.threads * step.axis;
    int at = position(0);
    std::int64_t y = y_begin_ + at * step.axis;
#pragma unroll 1
    for (int first = 0; first < args_.column.quads; first += kStoredTogether) {
      Values value;
      get(first, value);
      if (is_log && is_given) {
        change(value, [&](int i, float x) {
          // Where few come there are no registers for it.
          const ColumnNumbers *const n = &numbers()[tile_row(i)];
          const volatile double *const wide = reinterpret_cast<const double *>(n->terms);
          return static_cast<float>((double(x) * wide[0] - double(lane.of[i].max)) - wide[1]);
        });
      } else if (is_log) {
        change(value, [&](int i, float x) {
          RowScaling scaling = {};
          scaling.hi = lane.of[i].number[0];
          scaling.lo = lane.of[i].number[1];
          return scaled_log_value(x, lane.of[i].max, scaling, lane.of[i].number[2]);
        });
      } else {
        if (!has_terms && is_precise) {
          change(value, [&](int i, float x) { return ScaledTerms(lane.of[i].terms)(x); });
        } else if (!has_terms) {
          change(value, [&](int i, float x) {
            return ScaledCoarseTerms(lane.of[i].max, lane.of[i].terms[0])(x);
          });
        }
        if (is_precise) {
          change(value, [&](int i, float term) {
            term *= lane.of[i].number[2];
            return fmaf(term, lane.of[i].number[0], term * lane.of[i].number[1]);
          });
        } else {
          change(value, [&](int i, float term) {
            return (term * lane.of[i].number[2]) * lane.of[i].number[0];
          });
        }
      }
      store_as(first, at, y, step, quad_step, ends, least_end, value);
      at += kStoredTogether * args_.column.threads;
      y += kStoredTogether * quad_step;
    }
  }

  __device__ __forceinline__ void store_as(int first, int at, std::int64_t y, const Steps &step,
                                           std::int64_t quad_step, const int (&ends)[kQuad],
                                           int least_end, const Values &value) const {
    switch (args_.y_dtype) {
      case SOFTMAX_DTYPE_F16:
        return put_y<__half>(first, at, y, step, quad_step, ends, least_end, value);
      case SOFTMAX_DTYPE_BF16:
        return put_y<__nv_bfloat16>(first, at, y, step, quad_step, ends, least_end, value);
      case SOFTMAX_DTYPE_F8_E4M3:
        return put_y<f8_e4m3_t>(first, at, y, step, quad_step, ends, least_end, value);
      case SOFTMAX_DTYPE_F8_E5M2:
        return put_y<f8_e5m2_t>(first, at, y, step, quad_step, ends, least_end, value);
      default: return put_y<float>(first, at, y, step, quad_step, ends, least_end, value);
    }
  }
  template <typename Y>
  __device__ __forceinline__ void put_y(int first, int at, std::int64_t y_at, const Steps &step,
                                        std::int64_t quad_step, const int (&ends)[kQuad],
                                        int least_end, const Values &value) const {
    Y *const y = static_cast<Y *>(args_.buffers.y) + y_at;
#pragma unroll
    for (int k = 0; k < kStoredTogether; ++k) {
      if (first + k >= args_.column.quads) continue;
      const int quad_at = at + k * args_.column.threads;
      Y *const to = y + k * quad_step;
      float result[kQuad];
#pragma unroll
      for (int i = 0; i < kQuad; ++i) {
        result[i] = value[k][i];
        if constexpr (sizeof(Y) == 1) {
          result[i] = static_cast<float>(double(result[i]) * args_.general.y_scale);
        }
      }
      if (args_.tile.y_is_whole && quad_at + args_.tile.positions() - 1 < least_end) {
        store_values(to, result);
        continue;
      }
#pragma unroll
      for (int i = 0; i < kQuad; ++i) {
        if (quad_at + position_step(i) < ends[i]) {
          to[lane_offset(step, i)] = narrow_value<Y>(result[i]);
        }
      }
    }
  }

  const GeneralArgs &args_;
  unsigned char *room_;
  int *any_left_;
  int rank_;
  std::int64_t first_group_;  // of the block
  int group_;                 // within the block
  int axis_thread_;
  ColumnRows rows_;
  RowScaling scaling_;  // without row_scale
  std::int64_t y_begin_ = 0;
  bool is_negative_[kQuad];
  bool is_fixed_ = false;
  double sum_[kQuad];
  int exchange_ = 0;
  bool is_first_exchange_ = true;
};

// A block is tile.width groups of rows by threads along the axis.
template <typename X>
__global__ void __launch_bounds__(kColumnMostThreads, 2)
    column_kernel(const __grid_constant__ GeneralArgs args) {
  extern __shared__ __align__(16) unsigned char room[];
  __shared__ TeamScratch wide_scratch;
  __shared__ int any_left;
#if SOFTMAX_BULK_COPY
  // Before anyone writes to another block's shared memory, that block has to be there: see reduce.
  if (args.row_blocks > 1) cuda::ptx::barrier_cluster_arrive(cuda::ptx::sem_relaxed);
#endif
  ColumnCall<X> call(args, room, &any_left);
  call.run();
  call.run_left(&wide_scratch);
}

}  // namespace softmax
