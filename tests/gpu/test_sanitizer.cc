// The small set that is run under compute-sanitizer: every kernel, tiny M, N around the edges of
// vectors, warps and blocks, in exact allocations, so that one element too far is an error.
//
// memcheck sees accesses past the allocation's end, initcheck reads of the bytes before the first
// element (which nothing initialises), racecheck and synccheck the barriers.
#include <cuda_runtime_api.h>

#include <cmath>
#include <string>
#include <vector>

#include "gpu/cuda_check.h"
#include "support/catch.h"
#include "support/general_calls.h"
#include "support/over.h"

namespace softmax_test {
namespace {

// `elements` values at the end of an allocation that holds `offset` more before them.
class ExactBuffer {
 public:
  ExactBuffer(std::int64_t elements, int offset, int size_bytes)
      : first_byte_(static_cast<std::size_t>(offset) * size_bytes),
        bytes_(static_cast<std::size_t>(elements) * size_bytes) {
    must(cudaMalloc(&memory_, first_byte_ + bytes_));
  }
  ~ExactBuffer() { must(cudaFree(memory_)); }
  ExactBuffer(const ExactBuffer &) = delete;
  ExactBuffer &operator=(const ExactBuffer &) = delete;
  unsigned char *data() const { return static_cast<unsigned char *>(memory_) + first_byte_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t first_byte_, bytes_;
  void *memory_ = nullptr;
};

// initcheck does not see what a bulk copy writes: it would take each byte of such a y for one that
// nobody wrote. A y that is read back is therefore filled before, where TILE may have made it; that
// every element was stored is what the comparison shows.
bool may_store_in_bulk(const Problem &p) {
  return p.algo == SOFTMAX_ALGO_TILE || p.algo == SOFTMAX_ALGO_AUTO;
}

void run_exactly(const Problem &p, const Elements &input, const Reference &reference) {
  ExactBuffer x(input.count(), p.x_offset, format_of(p.types.x).size_bytes);
  ExactBuffer apart(p.in_place ? 1 : input.count(), p.y_offset, format_of(p.types.y).size_bytes);
  const cudaStream_t stream = device().stream();
  must(cudaMemcpyAsync(x.data(), input.bytes.data(), x.bytes(), cudaMemcpyHostToDevice, stream));
  unsigned char *y = p.in_place ? x.data() : apart.data();
  if (may_store_in_bulk(p) && !p.in_place) must(cudaMemsetAsync(y, 0xff, apart.bytes(), stream));
  const softmax_status_t status = call(device().handle(), p, x.data(), y, stream);
  Elements output(p.types.y, input.count());
  must(
      cudaMemcpyAsync(output.bytes.data(), y, output.bytes.size(), cudaMemcpyDeviceToHost, stream));
  must(cudaStreamSynchronize(stream));
  INFO(to_text(p));
  CHECK(status == SOFTMAX_SUCCESS);
  CHECK(compare(output, reference, p.is_log, p.cols, promised_bound(p.types.y)).failure == "");
}

// Both operations and both places, in turn: a kernel serves all of them.
Problem problem_in_turn(softmax_algo_t algo, const TypePair &types, std::int64_t rows,
                        std::int64_t cols, int turn) {
  Problem problem;
  problem.algo = algo;
  problem.types = types;
  problem.is_log = turn % 2 == 0;
  problem.in_place = can_be_in_place(types) && turn % 3 == 0;
  problem.rows = rows;
  problem.cols = cols;
  return problem;
}

}  // namespace

TEST_CASE("no kernel reads or writes outside its buffers or races", "[sanitizer]") {
  int turn = 0;
  for (const TypePair &types : kTypePairs) {
    int column = 0;
    for (const std::int64_t cols : {1, 3, 4, 8, 31, 33, 65, 129, 257, 515, 1025, 2053}) {
      ++column;
      const std::int64_t rows = 1 + column % 5;
      const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 71);
      const Reference reference = make_reference(x, rows, cols);
      over_algorithms(device(), types, rows, cols, [&](Problem problem) {
        // Both operations go through one kernel: the one or the other, in turn over N and the
        // algorithm, and each offset in turn.
        if (problem.is_log != ((problem.algo + column) % 2 == 0)) return;
        ++turn;
        problem.x_offset = turn % 4;
        problem.y_offset = turn / 3 % 4;
        run_exactly(problem, x, reference);
      });
    }
  }
}

TEST_CASE("no kernel with a row in registers leaves its buffers at its largest N", "[sanitizer]") {
  // The last words of the longest rows that a warp and a block take, and of rows one element less.
  int turn = 0;
  for (const TypePair &types : kTypePairs) {
    const std::int64_t word = 16 / format_of(types.x).size_bytes;
    for (const std::int64_t words : {256, 640, 2048, 2500, 4096}) {
      for (const std::int64_t cols : {words * word, words * word - 1}) {
        for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
          if (algo != SOFTMAX_ALGO_WARP && algo != SOFTMAX_ALGO_BLOCK) continue;
          const std::int64_t many = device().least_many_rows(algo, types.x, types.y, cols);
          for (const std::int64_t rows : {std::int64_t{2}, many}) {
            const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 72);
            ++turn;
            Problem problem = problem_in_turn(algo, types, rows, cols, turn);
            problem.x_offset = turn % 5 == 0 ? 1 : 0;
            problem.y_offset = turn % 7 == 0 ? 3 : 0;
            run_exactly(problem, x, make_reference(x, rows, cols));
          }
        }
      }
    }
  }
}

TEST_CASE("neither a bulk copy nor a slab takes a byte before or behind its tensor",
          "[sanitizer]") {
  // Whole words are read where the tensor begins and ends within one: at every offset, with rows
  // shorter than a word, and where the last rows or slab are.
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  int turn = 0;
  for (const int pair : {0, 2, 5}) {
    const TypePair &types = kTypePairs[pair];
    const int x_last = 16 / format_of(types.x).size_bytes;
    for (const std::int64_t cols : {1, 3, 7, 100, 511, 1023, 4099, 12289, 65537}) {
      const std::int64_t rows = cols > 10000 ? 2 : 3;
      const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 73);
      const Reference reference = make_reference(x, rows, cols);
      for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
        if (algo != SOFTMAX_ALGO_TILE && algo != SOFTMAX_ALGO_CLUSTER &&
            algo != SOFTMAX_ALGO_GRID) {
          continue;
        }
        for (int offset = 0; offset<x_last; offset += cols> 1000 ? 3 : 1) {
          ++turn;
          Problem problem = problem_in_turn(algo, types, rows, cols, turn);
          problem.x_offset = offset;
          problem.y_offset = turn % 4 < 2 ? offset : (offset + 1) % x_last;
          run_exactly(problem, x, reference);
        }
      }
    }
  }
}

TEST_CASE("tiles of whole words take no byte before or behind their tensor", "[sanitizer]") {
  // One tile that is not full, and several, the first at the beginning of an allocation and the
  // last at its end: aligned, x alone, y alone, and neither. Few rows take another kernel.
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  int turn = 0;
  for (const TypePair &types : kTypePairs) {
    const std::int64_t word = 16 / format_of(types.x).size_bytes;
    for (const std::int64_t words : {3, 6, 9, 33, 129}) {
      const std::int64_t cols = words * word;
      const std::int64_t many = device().least_many_rows(SOFTMAX_ALGO_TILE, types.x, types.y, cols);
      CHECK(many > 1);
      for (const std::int64_t rows : {std::int64_t{2}, many}) {
        const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 76);
        const Reference reference = make_reference(x, rows, cols);
        for (int offsets = 0; offsets < 4; ++offsets) {
          ++turn;
          Problem problem = problem_in_turn(SOFTMAX_ALGO_TILE, types, rows, cols, turn);
          problem.x_offset = offsets % 2;
          problem.y_offset = offsets / 2;
          run_exactly(problem, x, reference);
        }
      }
    }
  }
}

TEST_CASE("rows on their way to a cluster come from their tensor alone", "[sanitizer]") {
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no clusters");
  int turn = 0;
  for (const int pair : {0, 2, 5}) {
    const TypePair &types = kTypePairs[pair];
    // Sixteen-bit rows of odd length come that way from 16385 columns on.
    const bool is_half = format_of(types.x).size_bytes == 2;
    // And enough runs for teams in place of clusters: 83 of float32's, 36 of 16-bit words, 161 of
    // those with float32 results. (Fewer of the latter go to clusters of sixteen blocks, of which
    // so many are too many for CUDA 13.0's synccheck: see test_general_many_rows.cc.)
    const std::int64_t of_teams = !is_half ? 84000 : pair == 5 ? 164000 : 73001;
    for (const std::int64_t cols :
         {std::int64_t{8200}, std::int64_t{is_half ? 16387 : 8203}, of_teams}) {
      const std::int64_t rows =
          device().least_many_rows(SOFTMAX_ALGO_CLUSTER, types.x, types.y, cols);
      CHECK(rows > 1);
      const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 74);
      const Reference reference = make_reference(x, rows, cols);
      for (const int offset : {0, 1}) {
        ++turn;
        Problem problem = problem_in_turn(SOFTMAX_ALGO_CLUSTER, types, rows, cols, turn);
        problem.x_offset = offset;
        problem.y_offset = turn % 4 < 2 ? offset : 0;
        run_exactly(problem, x, reference);
      }
    }
  }
}

TEST_CASE("rows on their way to the blocks of GRID come from their tensor alone", "[sanitizer]") {
  if (!device().has_bulk_copies()) SOFTMAX_SKIP("this device has no bulk copies");
  int turn = 0;
  for (const int pair : {0, 2, 5}) {
    const TypePair &types = kTypePairs[pair];
    for (const std::int64_t cols : {33000, 33003}) {
      // Once with so many rows that all that is used in turn is used again.
      const std::int64_t rows =
          (turn == 0 ? 5 : 1) * device().least_many_rows(SOFTMAX_ALGO_GRID, types.x, types.y, cols);
      CHECK(rows > 1);
      const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 75);
      const Reference reference = make_reference(x, rows, cols);
      ++turn;
      Problem problem = problem_in_turn(SOFTMAX_ALGO_GRID, types, rows, cols, turn);
      problem.x_offset = turn / 2 % 2;
      problem.y_offset = turn % 4 < 2 ? problem.x_offset : 0;
      run_exactly(problem, x, reference);
    }
  }
}

TEST_CASE("no kernel with a row in registers leaves a tensor at any address", "[sanitizer]") {
  // Of exactly the tensor's size and ending with it: parts of words at the ends, both ends in one
  // part, rows that fill every pack and rows of one element more.
  int turn = 0;
  for (const TypePair &types : kTypePairs) {
    for (const std::int64_t cols : {1, 2, 3, 7, 9, 31, 63, 65, 129, 255, 513, 1023, 2047, 4097}) {
      const std::int64_t many =
          device().least_many_rows(SOFTMAX_ALGO_BLOCK, types.x, types.y, cols);
      for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{2}, std::int64_t{5}, many}) {
        const Elements x = make_input(types.x, rows, cols, Pattern::kNormal3, 73);
        const Reference reference = make_reference(x, rows, cols);
        for (const softmax_algo_t algo : device().algorithms_for(types.x, types.y, cols)) {
          if (algo != SOFTMAX_ALGO_WARP && algo != SOFTMAX_ALGO_BLOCK) continue;
          for (int offset = 0; offset<16; offset += rows> 5 ? 16 : 5) {
            ++turn;
            Problem problem = problem_in_turn(algo, types, rows, cols, turn);
            problem.x_offset = (offset + turn) % 8;
            problem.y_offset = offset % 8;
            run_exactly(problem, x, reference);
          }
        }
      }
    }
  }
}

TEST_CASE("no kernel of the general call leaves its buffers or races", "[sanitizer]") {
  // Rows for a warp, a block and a cluster; columns with little, some and much beside them.
  const GeneralShape shapes[] = {{{5, 3}, 1},     {{3, 33}, 1},      {{3, 257}, 1}, {{2, 1025}, 1},
                                 {{2, 4099}, 1},  {{2, 20001}, 1},   {{5, 3}, 0},   {{33, 9}, 0},
                                 {{2, 70, 3}, 1}, {{2, 130, 40}, 1}, {{1100, 5}, 0}};
  constexpr softmax_dtype_t kTypes[][2] = {
      {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32},     {SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_BF16},
      {SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F16},     {SOFTMAX_DTYPE_F64, SOFTMAX_DTYPE_F64},
      {SOFTMAX_DTYPE_F8_E4M3, SOFTMAX_DTYPE_F32}, {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F8_E5M2}};
  GeneralCalls calls(device(), How::kExactly);
  int turn = 0;
  for (const GeneralShape &shape : shapes) {
    for (const int kind : {0, 1, 2, 3, 4}) {
      for (const int task : {0, 1, 2, 3, 4}) {
        ++turn;
        GeneralCase c = case_of(shape);
        c.mask_kind = kind;
        if (kind == SOFTMAX_MASK_CAUSAL && c.axis == 0) c.mask_kind = SOFTMAX_MASK_NONE;
        c.causal_offset = c.cols() / 2;
        // What takes dense rows takes three of the types: every second time it is one of them.
        const auto &types = kTypes[turn % 2 == 0 ? turn / 2 % 3 : turn / 2 % 6];
        c.x_dtype = types[0];
        c.y_dtype = types[1];
        c.offset = turn % 3 == 0 ? 1 : 0;
        c.scale = 0.9;
        c.has_row_scale = turn % 4 == 1;
        if (turn % 5 == 3) c.x_lie = c.y_lie = c.mask_lie = c.dy_lie = kLies[turn % 4];
        c.op = task == 0 ? SOFTMAX_OP_STATS : turn / 5 % 2;
        c.has_stats = task < 2;
        c.has_sink = task < 2 && turn % 2 == 0;
        c.given_stats = task == 2 || task == 4;
        if (task > 2) c.direction = SOFTMAX_DIRECTION_BACKWARD;
        c.in_place = turn % 7 == 0 && task > 0 && c.x_lie == (task > 2 ? c.dy_lie : c.y_lie) &&
                     (task > 2 || c.x_dtype == c.y_dtype);
        calls.check(c);
      }
    }
  }
  calls.require_served(
      {SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_CLUSTER, SOFTMAX_ALGO_COLUMN});
}

TEST_CASE("no kernel for rows of whole words leaves its buffers or races", "[sanitizer]") {
  // 70 rows over clusters: more than find room at once, whose first ones have later ones' words
  // fetched.
  GeneralCalls calls(device(), How::kExactly);
  constexpr softmax_dtype_t kTypes[][2] = {{SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F32},
                                           {SOFTMAX_DTYPE_F16, SOFTMAX_DTYPE_F32},
                                           {SOFTMAX_DTYPE_BF16, SOFTMAX_DTYPE_BF16}};
  for (const auto &types : kTypes) {
    for (const std::int64_t cols : {1032, 4104}) {
      for (const int kind : {SOFTMAX_MASK_NONE, SOFTMAX_MASK_BOOL_KEEP}) {
        GeneralCase c;
        c.shape = {5, cols};
        c.x_dtype = types[0];
        c.y_dtype = types[1];
        c.mask_kind = kind;
        c.scale = 0.9;
        c.has_row_scale = true;
        calls.check(c);
      }
    }
    for (const std::int64_t cols : {136, 2056, 33000}) {
      GeneralCase c;
      c.shape = {cols > 20000 ? 70 : 5, cols};
      c.x_dtype = c.y_dtype = types[0];
      c.direction = SOFTMAX_DIRECTION_BACKWARD;
      c.op = SOFTMAX_OP_LOGSOFTMAX;
      c.every = cols > 20000 ? 23 : 1;
      calls.check(c);
    }
  }
  calls.require_served({SOFTMAX_ALGO_WARP, SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_CLUSTER});
}

TEST_CASE("what ends a row early is not read past by a wide load either", "[sanitizer]") {
  // Two rows of ones whose memory ends where the second one's length or causal mask does. The
  // output is far from them: the library must take what it is told of x for x.
  constexpr std::int64_t kFarBytes = 1 << 21;
  GeneralCalls calls(device());
  int served = 0, turn = 0;
  for (const softmax_dtype_t dtype : {SOFTMAX_DTYPE_F32, SOFTMAX_DTYPE_F16}) {
    const int size = format_of(dtype).size_bytes;
    for (const std::int64_t cols : {9, 130, 1030, 5000}) {
      for (const std::int64_t length : {std::int64_t{2}, cols / 2 + 1, cols - 1}) {
        for (const int kind : {SOFTMAX_MASK_ROW_LENGTH, SOFTMAX_MASK_CAUSAL}) {
          for (const bool backward : {false, true}) {
            const int offset = ++turn % 3;
            const std::int64_t count = cols + length;
            const ExactBuffer x(count, offset, size), dy(count, offset, size),
                around(2 * kFarBytes, 0, 1);
            unsigned char *const y = around.data() + kFarBytes + offset * size;
            const auto y_bytes = static_cast<std::size_t>(2 * cols * size);
            const ExactBuffer lengths(2, 0, 4), row_max(2, 0, 4), row_sum(2, 0, 4);
            Elements ones(dtype, count);
            for (std::int64_t i = 0; i < count; ++i) ones.set(i, 1.0);
            // Row 0 keeps `first`; the statistics given are those of a row of `length` ones.
            const std::int64_t first = kind == SOFTMAX_MASK_CAUSAL ? length - 1 : cols;
            const std::int32_t both[] = {static_cast<std::int32_t>(cols),
                                         static_cast<std::int32_t>(length)};
            const float max[] = {1.0f, 1.0f};
            const float sum[] = {static_cast<float>(first), static_cast<float>(length)};
            device().upload(x.data(), ones.bytes.data(), x.bytes());
            device().upload(dy.data(), ones.bytes.data(), dy.bytes());
            device().upload(lengths.data(), both, 8);
            device().upload(row_max.data(), max, 8);
            device().upload(row_sum.data(), sum, 8);
            softmax_desc_t desc;
            softmax_desc_init(&desc, sizeof desc, SOFTMAX_OP_SOFTMAX, dtype, 2, cols);
            desc.mask_kind = kind;
            desc.causal_offset = length - 2;
            softmax_args_t args = {};
            args.struct_size = sizeof args;
            args.x = x.data();
            if (kind == SOFTMAX_MASK_ROW_LENGTH) args.mask = lengths.data();
            if (backward) {
              desc.direction = SOFTMAX_DIRECTION_BACKWARD;
              desc.flags = SOFTMAX_FLAG_GIVEN_STATS;
              args.dy = dy.data();
              args.dx = y;
              args.row_max = reinterpret_cast<float *>(row_max.data());
              args.row_sum = reinterpret_cast<float *>(row_sum.data());
            } else {
              args.y = y;
            }
            for (const softmax_algo_t algo : calls.algos()) {
              device().fill(y, 0xff, y_bytes);
              const softmax_status_t status =
                  softmax_execute(device().handle(), algo, &desc, &args, device().stream());
              if (status == SOFTMAX_STATUS_NOT_SUPPORTED_ALGO && calls.may_refuse(algo)) continue;
              INFO(softmax_algo_name(algo) << " length " << length << " of " << cols);
              REQUIRE(status == SOFTMAX_SUCCESS);
              Elements got(dtype, 2 * cols);
              device().download(got.bytes.data(), y, y_bytes);
              std::int64_t wrong = 0;
              for (std::int64_t i = 0; i < 2 * cols; ++i) {
                const std::int64_t kept = i < cols ? first : length;
                const double p = i % cols < kept && !backward ? 1.0 / double(kept) : 0.0;
                // p (dy - sum(p dy)) of ones is 0, but for what p is off.
                const bool right = p == 0 && i % cols >= kept
                                       ? got[i] == 0
                                       : std::fabs(got[i] - p) <= 1e-3 * (p + 1e-4);
                wrong += right ? 0 : 1;
              }
              CHECK(wrong == 0);
              ++served;
            }
          }
        }
      }
    }
  }
  CHECK(served >= 2 * 96);
}

TEST_CASE("merging statistics reads and writes what it must and no more", "[sanitizer]") {
  for (const std::int64_t parts : {1, 3}) {
    for (const std::int64_t rows : {1, 7, 300}) {
      const auto bytes = static_cast<std::size_t>(rows) * 4;
      const ExactBuffer part_max(parts * rows, 1, 4), part_sum(parts * rows, 1, 4),
          row_max(rows, 1, 4), row_sum(rows, 1, 4), lse(rows, 1, 4);
      const std::vector<float> ones(static_cast<std::size_t>(parts * rows), 1.0f);
      std::vector<float> result(static_cast<std::size_t>(rows));
      const auto *to_max = reinterpret_cast<const float *>(part_max.data());
      const auto *to_sum = reinterpret_cast<const float *>(part_sum.data());
      device().upload(part_max.data(), ones.data(), part_max.bytes());
      device().upload(part_sum.data(), ones.data(), part_sum.bytes());
      CHECK(softmax_merge_stats(device().handle(), parts, rows, to_max, to_sum,
                                reinterpret_cast<float *>(row_max.data()),
                                reinterpret_cast<float *>(row_sum.data()),
                                reinterpret_cast<float *>(lse.data()),
                                device().stream()) == SOFTMAX_SUCCESS);
      device().download(result.data(), row_max.data(), bytes);
      CHECK(result == std::vector<float>(result.size(), 1.0f));
      device().download(result.data(), row_sum.data(), bytes);
      CHECK(result == std::vector<float>(result.size(), static_cast<float>(parts)));
      device().download(result.data(), lse.data(), bytes);
      CHECK(result.back() > 0.99f);
    }
  }
}

}  // namespace softmax_test
