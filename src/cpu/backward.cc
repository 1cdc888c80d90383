// The general call on the CPU, backward: dx from dy and p, p being y or made anew from x and the
// row's statistics.
//
// Two passes over the row's parts: the sum, then dx. A tile of rows that fits in scratch is
// gathered once, longer rows are gathered in each pass. Everything is float64; sums are kept with
// their rounding errors, and with those of their products, so that what is left where dy and the
// sum nearly cancel is right for F64 too.
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "cpu/drivers.h"
#include "cpu/gather.h"
#include "cpu/general.h"
#include "cpu/kernels.h"
#include "cpu/row_state.h"
#include "cpu/scratch.h"

namespace softmax {
namespace {

constexpr std::int64_t kTileBytes = std::int64_t{256} << 10;  // three of them: p, dy, slope
constexpr int kLanes = 8;

double infinity() { return Limits<double>::infinity(); }
double not_a_number() { return infinity() - infinity(); }

// sum_j p_j dy_j, or sum_j dy_j, in kLanes lanes by column: the same whatever a part is gathered
// with. A product's own rounding is 2^-53 of it and is not kept; the sum's are.
struct LaneDots {
  double hi[kLanes] = {};
  double lo[kLanes] = {};

  void add(const double (&term)[kLanes]) {
    for (int l = 0; l < kLanes; ++l) {
      const double sum = hi[l] + term[l];
      const double seen = sum - hi[l];
      lo[l] += (hi[l] - (sum - seen)) + (term[l] - seen);
      hi[l] = sum;
    }
  }
  // p may be null: the sum of dy alone.
  void add_part(const double *p, const double *dy, std::int64_t cols) {
    double term[kLanes];
    std::int64_t j = 0;
    for (; j + kLanes <= cols; j += kLanes) {
      for (int l = 0; l < kLanes; ++l) term[l] = p == nullptr ? dy[j + l] : p[j + l] * dy[j + l];
      add(term);
    }
    if (j == cols) return;
    for (int l = 0; l < kLanes; ++l) {
      term[l] = j + l >= cols ? 0.0 : p == nullptr ? dy[j + l] : p[j + l] * dy[j + l];
    }
    add(term);
  }
  Split<double> total() const {
    CompensatedSum<double> sum;
    double rest = 0;
    for (int l = 0; l < kLanes; ++l) {
      sum.add(hi[l]);
      rest += lo[l];
    }
    return {sum.hi, sum.lo + rest};
  }
};

// Rows in scratch. p's place first holds y, or v; slope is null without a soft-cap.
struct Parts {
  double *p;
  double *dy;
  double *slope;
  std::int64_t pitch;
};

class Backward {
 public:
  explicit Backward(const Call &call)
      : call_(call), kernels_(*kernels_f64_f64()), from_x_(call.general->given_stats) {}

  bool has_softcap() const { return call_.general->softcap > 0; }
  bool is_log() const { return call_.is_log(); }

  void gather(const Patch &patch, const Parts &to) const {
    const General &general = *call_.general;
    const GeneralBuffers &b = *call_.buffers;
    gather_tensor(call_, kTensorDy, b.dy, general.dy_dtype, patch, to.dy, to.pitch);
    if (from_x_) {
      gather_values(call_, patch, to.p, to.pitch);
      if (has_softcap()) gather_slopes(patch, to);
    } else {
      gather_tensor(call_, kTensorY, b.y, call_.problem->y_dtype, patch, to.p, to.pitch);
      if (general.y_scale != 1.0) {
        for_rows(patch, [&](std::int64_t i, std::int64_t cols) {
          for (std::int64_t j = 0; j < cols; ++j) to.p[i * to.pitch + j] /= general.y_scale;
        });
      }
    }
    mask(patch, to);
  }

  // What of a row is known before its first part is used.
  struct Row {
    enum class Kind { kUsual, kZero, kNan, kLimit };
    Kind kind = Kind::kUsual;
    RowScale scale;                   // that makes p of what was gathered
    std::int64_t top = -1;            // of kLimit
    bool is_far_above_given = false;  // see RowAccess::is_far_above_given
    double max = 0;
    double sum = 1;
    double s = 1;
  };

  // The maximum and its column over the parts of a row, for what begin() needs.
  struct Maximum {
    double max = -Limits<double>::infinity();
    std::int64_t at = -1;
    bool is_nan = false;
  };
  bool needs_maximum(std::int64_t row) const { return from_x_ || is_log() || limit(row); }
  void see(const double *values, std::int64_t col, std::int64_t cols, std::int64_t row,
           Maximum *maximum) const {
    if (from_x_ && limit(row)) {
      for (std::int64_t j = 0; j < cols; ++j) {
        maximum->is_nan = maximum->is_nan || values[j] != values[j];
        if (values[j] > maximum->max) {
          maximum->max = values[j];
          maximum->at = col + j;
        }
      }
      return;
    }
    const double max = kernels_.part_max(values, cols);
    if (max > maximum->max) maximum->max = max;
    // Nothing above -inf, as far as the kernel sees, which may have passed over a NaN.
    for (std::int64_t j = 0; !(max >= Limits<double>::lowest()) && j < cols; ++j) {
      maximum->is_nan = maximum->is_nan || values[j] != values[j];
    }
  }

  Row begin(std::int64_t row, const Maximum &maximum) const {
    const GeneralBuffers &b = *call_.buffers;
    const bool empty_is_zero = call_.problem->empty_is_zero();
    Row result;
    result.s = call_.general->scale;
    if (b.row_scale != nullptr) result.s *= double{b.row_scale[row]};
    const auto empty = empty_is_zero ? Row::Kind::kZero : Row::Kind::kNan;
    if (from_x_ && limit(row)) {
      // As in RowAccess::run_limit_row.
      const double given = b.row_max[row];
      const bool is_nan = maximum.is_nan || maximum.max == infinity() || !(given < infinity()) ||
                          b.row_sum[row] != b.row_sum[row];
      result.kind = is_nan ? Row::Kind::kNan : given == -infinity() ? empty : Row::Kind::kLimit;
      result.top = static_cast<float>(maximum.max) < given ? -1 : maximum.at;
      return result;
    }
    double max = 0;
    double sum = 1;
    if (from_x_) {
      max = b.row_max[row];
      sum = b.row_sum[row];
      const bool is_empty = max < Limits<double>::lowest();
      if (!is_finite(max) || sum != sum) {
        result.kind = is_empty ? empty : Row::Kind::kNan;
        return result;
      }
    } else if (is_log() && maximum.max == -infinity() && empty_is_zero && !maximum.is_nan) {
      result.kind = Row::Kind::kZero;
      return result;
    }
    // The kernels take no element above their maximum: see RowAccess::given_scale.
    result.scale.max = is_finite(maximum.max) && maximum.max > max ? maximum.max : max;
    result.scale.inverse_sum = std::exp(result.scale.max - max) / sum;
    result.is_far_above_given = result.scale.max - max > 1.0;
    result.max = max;
    result.sum = sum;
    return result;
  }

  // What was gathered becomes p, in place.
  void make_p(const Row &row, std::int64_t col, std::int64_t cols, double *p) const {
    switch (row.kind) {
      case Row::Kind::kZero: std::fill_n(p, cols, 0.0); return;
      case Row::Kind::kNan: std::fill_n(p, cols, not_a_number()); return;
      case Row::Kind::kLimit:
        std::fill_n(p, cols, 0.0);
        if (row.top >= col && row.top < col + cols) p[row.top - col] = 1.0;
        return;
      default: break;
    }
    if (row.is_far_above_given) {
      for (std::int64_t j = 0; j < cols; ++j) p[j] = given_probability(p[j], row.max, row.sum);
    } else if (from_x_ || is_log()) {
      kernels_.part_write(p, p, cols, row.scale, false);
    }
  }

  // p becomes dx, in place.
  void make_dx(const Row &row, Split<double> dot, const double *dy, const double *slope,
               std::int64_t cols, double *p) const {
    if (row.kind == Row::Kind::kZero) {
      std::fill_n(p, cols, 0.0);
      return;
    }
    if (is_log()) {
      for (std::int64_t j = 0; j < cols; ++j) p[j] = dy[j] - (p[j] * dot.hi + p[j] * dot.lo);
    } else {
      for (std::int64_t j = 0; j < cols; ++j) {
        const Split<double> difference = two_sum(dy[j], -dot.hi);
        p[j] *= difference.hi + (difference.lo - dot.lo);
      }
    }
    if (slope == nullptr) {
      if (row.s == 1.0) return;
      for (std::int64_t j = 0; j < cols; ++j) p[j] *= row.s;
    } else {
      for (std::int64_t j = 0; j < cols; ++j) p[j] *= row.s * slope[j];
    }
  }

  // Where the mask says so, dx is 0 and nothing else has counted.
  void zero_masked(const Patch &patch, const Parts &to) const {
    for (std::int64_t i = 0; i < patch.rows; ++i) {
      double *dx = to.p + i * to.pitch;
      const std::int64_t cols = length(patch, i);
      std::fill(dx + cols, dx + patch.cols, 0.0);
      for_masked(patch, i, [&](std::int64_t j) { dx[j] = 0.0; });
    }
  }

  std::int64_t length(const Patch &patch, std::int64_t i) const {
    return std::clamp<std::int64_t>(call_.length(patch.first + i) - patch.col, 0, patch.cols);
  }

 private:
  bool limit(std::int64_t row) const { return call_.is_limit_row(row); }

  template <typename Body>
  void for_rows(const Patch &patch, const Body &body) const {
    for (std::int64_t i = 0; i < patch.rows; ++i) body(i, length(patch, i));
  }

  template <typename Body>
  void for_masked(const Patch &patch, std::int64_t i, const Body &body) const {
    const Layout &layout = call_.layout();
    const std::int64_t stride = layout.axis_stride[kTensorMask];
    const std::int64_t begin = layout.offset(kTensorMask, patch.first + i) + patch.col * stride;
    if (call_.general->mask_kind == SOFTMAX_MASK_BOOL_KEEP) {
      const auto *keep = static_cast<const std::uint8_t *>(call_.buffers->mask) + begin;
      for (std::int64_t j = 0; j < patch.cols; ++j) {
        if (keep[j * stride] == 0) body(j);
      }
    } else if (call_.general->mask_kind == SOFTMAX_MASK_ADDITIVE) {
      const auto *added = static_cast<const float *>(call_.buffers->mask) + begin;
      for (std::int64_t j = 0; j < patch.cols; ++j) {
        if (added[j * stride] == -Limits<float>::infinity()) body(j);
      }
    }
  }

  // A masked element has no y and no dy: it is -inf, or a probability of 0.
  void mask(const Patch &patch, const Parts &to) const {
    const double nothing = from_x_ || is_log() ? -infinity() : 0.0;
    for (std::int64_t i = 0; i < patch.rows; ++i) {
      for_masked(patch, i, [&](std::int64_t j) {
        to.p[i * to.pitch + j] = nothing;
        to.dy[i * to.pitch + j] = 0.0;
      });
    }
  }

  // 1 - tanh^2 of what the soft-cap has bent.
  void gather_slopes(const Patch &patch, const Parts &to) const {
    gather_tensor(call_, kTensorX, call_.buffers->x, call_.problem->x_dtype, patch, to.slope,
                  to.pitch);
    const General &general = *call_.general;
    const float *row_scale = call_.buffers->row_scale;
    for_rows(patch, [&](std::int64_t i, std::int64_t cols) {
      double *slope = to.slope + i * to.pitch;
      const std::int64_t row = patch.first + i;
      const double factor = row_scale == nullptr || limit(row) ? 1.0 : double{row_scale[row]};
      for (std::int64_t j = 0; j < cols; ++j) {
        // 1 - t^2 as 1 / cosh^2: relatively right where t is near 1.
        const double c = std::cosh(slope[j] * general.scale * factor / general.softcap);
        slope[j] = 1.0 / (c * c);
      }
    });
  }

  const Call &call_;
  const Kernels &kernels_;
  bool from_x_;
};

// The parts of one row, or the whole row of a tile, in a fixed order of additions.
template <typename Body>
void for_parts(std::int64_t cols, const Body &body) {
  for (std::int64_t col = 0; col < cols; col += kPartColumns) {
    body(col, std::min(kPartColumns, cols - col));
  }
}

// A tile whose rows are in scratch as a whole.
void run_tile(const Call &call, const Backward &backward, const Patch &tile, const Parts &parts) {
  backward.gather(tile, parts);
  for (std::int64_t i = 0; i < tile.rows; ++i) {
    const std::int64_t row = tile.first + i;
    const std::int64_t cols = backward.length(tile, i);
    double *p = parts.p + i * parts.pitch;
    const double *dy = parts.dy + i * parts.pitch;
    const double *slope = backward.has_softcap() ? parts.slope + i * parts.pitch : nullptr;
    Backward::Maximum maximum;
    if (backward.needs_maximum(row)) {
      for_parts(cols, [&](std::int64_t col, std::int64_t count) {
        backward.see(p + col, col, count, row, &maximum);
      });
    }
    const Backward::Row state = backward.begin(row, maximum);
    LaneDots dots;
    for_parts(cols, [&](std::int64_t col, std::int64_t count) {
      backward.make_p(state, col, count, p + col);
      dots.add_part(backward.is_log() ? nullptr : p + col, dy + col, count);
    });
    backward.make_dx(state, dots.total(), dy, slope, cols, p);
  }
  backward.zero_masked(tile, parts);
  scatter_values(call, tile, parts.p, parts.pitch);
}

// A row that is gathered part by part, in each pass anew.
void run_long_row(const Call &call, const Backward &backward, std::int64_t row,
                  const Parts &parts) {
  const std::int64_t all = call.layout().cols;
  const std::int64_t length = call.length(row);
  Backward::Maximum maximum;
  if (backward.needs_maximum(row)) {
    for_parts(length, [&](std::int64_t col, std::int64_t count) {
      backward.gather({row, 1, col, count}, parts);
      backward.see(parts.p, col, count, row, &maximum);
    });
  }
  const Backward::Row state = backward.begin(row, maximum);
  LaneDots dots;
  for_parts(length, [&](std::int64_t col, std::int64_t count) {
    backward.gather({row, 1, col, count}, parts);
    backward.make_p(state, col, count, parts.p);
    dots.add_part(backward.is_log() ? nullptr : parts.p, parts.dy, count);
  });
  const Split<double> dot = dots.total();
  for_parts(all, [&](std::int64_t col, std::int64_t count) {
    const Patch patch{row, 1, col, count};
    const std::int64_t cols = backward.length(patch, 0);
    backward.gather(patch, parts);
    backward.make_p(state, col, cols, parts.p);
    backward.make_dx(state, dot, parts.dy, backward.has_softcap() ? parts.slope : nullptr, cols,
                     parts.p);
    backward.zero_masked(patch, parts);
    scatter_values(call, patch, parts.p, parts.pitch);
  });
}

}  // namespace

void run_vector_backward(const Call &call) {
  const Backward backward(call);
  const std::int64_t rows = call.problem->rows;
  const std::int64_t cols = call.layout().cols;
  const int threads = threads_for(*call.problem);
  const std::int64_t even = (rows + threads - 1) / threads;
  const std::int64_t fits = kTileBytes / (cols * static_cast<std::int64_t>(sizeof(double)));
  const std::int64_t tile_rows = std::min({kPatchRows, fits, even});
  const std::int64_t rows_at_once = std::max<std::int64_t>(tile_rows, 1);
  const std::int64_t tiles = (rows + rows_at_once - 1) / rows_at_once;
  // Where there is no memory, parts on the stack.
  const std::int64_t pitch = tile_rows > 0 ? cols : kPartColumns;
  const std::size_t tile_doubles = static_cast<std::size_t>(rows_at_once * pitch);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const Scratch scratch(tile_doubles * sizeof(double) * 3);
    double small[3 * kPartColumns];
    const bool has_scratch = scratch.data() != nullptr;
    double *memory = has_scratch ? static_cast<double *>(scratch.data()) : small;
    const std::size_t step = has_scratch ? tile_doubles : static_cast<std::size_t>(kPartColumns);
    const Parts parts{memory, memory + step, memory + 2 * step, has_scratch ? pitch : kPartColumns};
#pragma omp for schedule(dynamic)
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t first = tile * rows_at_once;
      const std::int64_t count = std::min(rows_at_once, rows - first);
      if (tile_rows > 0 && has_scratch) {
        run_tile(call, backward, {first, count, 0, cols}, parts);
      } else {
        for (std::int64_t row = first; row < first + count; ++row) {
          run_long_row(call, backward, row, parts);
        }
      }
    }
  }
}

}  // namespace softmax
