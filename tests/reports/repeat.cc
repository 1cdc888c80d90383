// Entries about bits: over repetitions, over M, over rows, over threads.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "element.h"
#include "matrix.h"
#include "special.h"

namespace reports {
namespace {

// A single thread on one long row can take a second a call: the repetitions stop at this time, and
// the report says so.
constexpr double kSecondsForRepetitions = 0.2;
constexpr std::int64_t kFewestRepetitions = 3;

// On the CPU, where these entries are not asked for, a few are run all the same.
constexpr std::int64_t kCpuRepetitions = 10;
constexpr int kCpuCallsPerThread = 100;

// Algorithms with one thread a row get fewer rounds of fresh data.
constexpr int kRoundsOfOneThread = 5;

class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

struct Memory {
  Memory(Device *d, std::int64_t count, std::int32_t dtype)
      : device(d), pointer(d->allocate(static_cast<std::size_t>(count * format_of(dtype).bytes))) {}
  ~Memory() { device->release(pointer); }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  unsigned char *at(std::int64_t byte) const {
    return static_cast<unsigned char *>(pointer) + byte;
  }

  Device *device;
  void *pointer;
};

bool is_log_entry(const Entry &entry) { return entry.op == "log_softmax"; }

// ---- repetitions ----

void repeat(Device *device, const Case &c, bool is_log, std::int64_t wanted, Verdict *verdict) {
  const Input &input = c.input;
  if (!device->is_cuda()) wanted = std::min(wanted, kCpuRepetitions);
  const std::size_t bytes = static_cast<std::size_t>(input.count()) *
                            static_cast<std::size_t>(format_of(input.dtype).bytes);
  Memory x(device, input.count(), input.dtype);
  Memory first(device, input.count(), input.dtype);
  Memory again(device, input.count(), input.dtype);
  device->generate(x.pointer, input);
  for (const softmax_algo_t algo : device->algos_for(input.dtype, input.dtype, input.columns)) {
    if (!device->affords(algo, input.columns)) continue;  // the matrix run says so
    verdict->set_context(c.label + ", " + device->name() + " " + algo_label(algo));
    Call call{algo,          is_log,      x.pointer,  input.dtype,
              first.pointer, input.dtype, input.rows, input.columns};
    verdict->expect_status(make_call(call, *device), SOFTMAX_SUCCESS, "the first call");
    call.y = again.pointer;
    const Clock clock;
    std::int64_t done = 0;
    std::int64_t differences = 0;
    while (done < wanted) {
      const std::int64_t batch = std::min<std::int64_t>(wanted - done, done < 3 ? 1 : 16);
      for (std::int64_t n = 0; n < batch; ++n) {
        device->fill(again.pointer, 0xff, bytes);
        device->disturb();
        verdict->expect_status(make_call(call, *device), SOFTMAX_SUCCESS, "a repeated call");
        device->compare(first.pointer, again.pointer, bytes);
      }
      differences += device->differences();
      done += batch;
      if (done >= kFewestRepetitions && clock.seconds() > kSecondsForRepetitions) break;
    }
    verdict->expect(differences == 0, std::to_string(differences) + " bytes differ between " +
                                          std::to_string(done) + " repetitions");
    if (done < wanted) {
      verdict->note("fewer than " + std::to_string(wanted) +
                    " repetitions where those take longer than " +
                    std::to_string(kSecondsForRepetitions).substr(0, 3) + " s");
    }
  }
  const std::string error = device->finish();
  verdict->expect(error.empty(), error);
  verdict->set_context("");
}

void run_repetitions(Device *device, const Entry &entry, Verdict *verdict) {
  std::set<std::string> handled;
  for (const Case &c : cases_of(entry, &handled)) {
    if (c.input.count() > device->limit_for(entry)) continue;  // the matrix run says so
    repeat(device, c, is_log_entry(entry), entry.check.value("n", 0), verdict);
  }
}

// ---- bits over M ----

// Rows computed alone, and the same rows within each of the matrices of `row_counts` rows.
void same_bits_over_rows(Device *device, const Entry &entry, const char *formula,
                         std::vector<std::int64_t> row_counts, bool rows_are_equal,
                         Verdict *verdict) {
  const std::int32_t dtype = dtype_of(entry.dtype);
  const std::int64_t columns = entry.shape.at(1);
  const std::int64_t row_bytes = columns * format_of(dtype).bytes;
  while (!row_counts.empty() && row_counts.back() * columns > device->unchecked_limit_for(entry)) {
    verdict->note(std::string(device->name()) + ": M = " + std::to_string(row_counts.back()) +
                  " is left to a larger device");
    row_counts.pop_back();
  }
  if (row_counts.empty()) return;
  const std::int64_t most = row_counts.back();
  Memory x(device, most * columns, dtype);
  Memory y(device, most * columns, dtype);
  Memory alone(device, columns, dtype);
  device->generate(x.pointer, formula_input(formula, dtype, most, columns));

  for (const softmax_algo_t algo : device->algos_for(dtype, dtype, columns)) {
    for (const std::int64_t rows : row_counts) {
      verdict->set_context(std::string(device->name()) + " " + algo_label(algo) +
                           ", M = " + std::to_string(rows));
      device->fill(y.pointer, 0xff, static_cast<std::size_t>(rows * row_bytes));
      const Call together{algo,   is_log_entry(entry), x.pointer, dtype, y.pointer, dtype, rows,
                          columns};
      verdict->expect_status(make_call(together, *device), SOFTMAX_SUCCESS, "the call");
      std::set<std::int64_t> looked_at = {0, rows / 2, rows - 1};
      for (std::int64_t row = 0; rows_are_equal && row < rows; ++row) looked_at.insert(row);
      bool have_alone = false;
      for (const std::int64_t row : looked_at) {
        if (!have_alone || !rows_are_equal) {
          const Call one{
              algo,   is_log_entry(entry), x.at(row * row_bytes), dtype, alone.pointer, dtype, 1,
              columns};
          verdict->expect_status(make_call(one, *device), SOFTMAX_SUCCESS, "the call with M = 1");
          have_alone = true;
        }
        device->compare(alone.pointer, y.at(row * row_bytes), static_cast<std::size_t>(row_bytes));
        verdict->add_comparisons(columns);
      }
      const std::int64_t differences = device->differences();
      verdict->expect(differences == 0,
                      std::to_string(differences) + " bytes differ from the rows computed alone");
    }
  }
  const std::string error = device->finish();
  verdict->expect(error.empty(), error);
  verdict->set_context("");
}

void run_rows_alone(Device *device, const Entry &entry, Verdict *verdict) {
  same_bits_over_rows(device, entry, "u(k)*20-10", {2, 4, 8, 64, 132, 133, 1024}, false, verdict);
}

void run_replicated_rows(Device *device, const Entry &entry, Verdict *verdict) {
  same_bits_over_rows(device, entry, "u(j)*16-8", {1, 3, 131, 1024}, true, verdict);
}

// ---- in place, fresh data ----

void run_in_place_rounds(Device *device, const Entry &entry, Verdict *verdict) {
  const int rounds = device->is_cuda() ? 50 : 2;
  std::set<std::string> handled;
  for (const Case &c : cases_of(entry, &handled)) {
    if (c.input.count() > device->limit_for(entry)) continue;  // the matrix run says so
    const std::int64_t count = c.input.count();
    const std::int32_t dtype = c.input.dtype;
    const std::size_t bytes = static_cast<std::size_t>(count * format_of(dtype).bytes);
    Memory x(device, count, dtype);
    Memory y(device, count, dtype);
    for (int round = 0; round < rounds; ++round) {
      const Input fresh = formula_input("200*u(k + " + std::to_string(round * count) + ") - 100",
                                        dtype, c.input.rows, c.input.columns);
      for (const softmax_algo_t algo : device->algos_for(dtype, dtype, c.input.columns)) {
        const bool one_thread = algo == SOFTMAX_ALGO_NAIVE || algo == SOFTMAX_ALGO_REFERENCE;
        if (one_thread && round >= kRoundsOfOneThread) continue;
        verdict->set_context(c.label + ", " + device->name() + " " + algo_label(algo));
        device->generate(x.pointer, fresh);
        Call call{algo, false, x.pointer, dtype, y.pointer, dtype, c.input.rows, c.input.columns};
        verdict->expect_status(make_call(call, *device), SOFTMAX_SUCCESS, "out of place");
        call.y = x.pointer;
        verdict->expect_status(make_call(call, *device), SOFTMAX_SUCCESS, "in place");
        device->compare(x.pointer, y.pointer, bytes);
        verdict->add_comparisons(count);
      }
      const std::int64_t differences = device->differences();
      verdict->expect(differences == 0, std::to_string(differences) + " bytes differ in round " +
                                            std::to_string(round));
    }
  }
  verdict->set_context("");
  if (rounds > kRoundsOfOneThread) {
    verdict->note("naive and reference: " + std::to_string(kRoundsOfOneThread) + " rounds of " +
                  std::to_string(rounds));
  }
}

// ---- threads ----

struct ThreadPlan {
  int threads;
  int calls;
  bool own_handles;
  bool churn;  // other handles are created and destroyed meanwhile
};

void run_thread_plan(Device *device, const Entry &entry, const ThreadPlan &plan, Verdict *verdict) {
  const std::int32_t dtype = dtype_of(entry.dtype);
  const std::int64_t rows = entry.shape.at(0);
  const std::int64_t columns = entry.shape.at(1);
  const int rounds = 10;  // the output is looked at so many times
  std::atomic<std::int64_t> wrong{0};
  std::atomic<std::int64_t> compared{0};
  std::atomic<bool> stop{false};

  const auto work = [&](int number) {
    softmax_handle_t handle = device->handle();
    if (plan.own_handles && softmax_create(&handle, device->ordinal()) != SOFTMAX_SUCCESS) {
      ++wrong;
      return;
    }
    const softmax_stream_t stream = device->open_stream();
    Case c;
    c.input = formula_input("u(k + " + std::to_string(number * rows * columns) + ")*4", dtype, rows,
                            columns);
    c.y_dtype = dtype;
    c.op = "softmax";
    const Expected expected = expected_of(c, false);
    const std::vector<unsigned char> bytes = encode_all(c.input);
    Guarded x(device, bytes.size(), 4096, 0);
    Guarded y(device, bytes.size(), 4096, 0);
    x.write(bytes);
    const Call call{SOFTMAX_ALGO_AUTO, false, x.data(), dtype, y.data(), dtype, rows, columns};
    const int calls = device->is_cuda() ? plan.calls : std::min(plan.calls, kCpuCallsPerThread);
    for (int round = 0; round < rounds; ++round) {
      y.poison();
      device->finish();
      for (int n = 0; n < calls / rounds; ++n) {
        if (make_call(call, handle, stream) != SOFTMAX_SUCCESS) ++wrong;
      }
      if (!device->finish(stream).empty()) ++wrong;
      Verdict own;
      check_output(c, false, expected, y.read().data(), &own);
      wrong += own.failures();
      compared += own.comparisons();
    }
    device->close_stream(stream);
    if (plan.own_handles && softmax_destroy(handle) != SOFTMAX_SUCCESS) ++wrong;
  };
  const auto churn = [&] {
    while (!stop) {
      softmax_handle_t other = nullptr;
      if (softmax_create(&other, device->ordinal()) != SOFTMAX_SUCCESS) ++wrong;
      if (softmax_destroy(other) != SOFTMAX_SUCCESS) ++wrong;
    }
  };

  std::vector<std::thread> threads;
  for (int n = 0; n < plan.threads; ++n) {
    threads.emplace_back([&, n] {
      try {
        work(n);
      } catch (const std::exception &) {  // out of memory
        ++wrong;
      }
    });
  }
  std::thread other;
  if (plan.churn) other = std::thread(churn);
  for (std::thread &thread : threads) thread.join();
  stop = true;
  if (other.joinable()) other.join();
  verdict->add_comparisons(compared);
  verdict->expect(wrong == 0, std::to_string(wrong.load()) + " calls or values were wrong");
  verdict->expect(compared > 0, "the threads compared something");
}

void run_four_streams(Device *device, const Entry &entry, Verdict *verdict) {
  const int calls = entry.check.value("n", 0);
  run_thread_plan(device, entry, {4, calls, true, false}, verdict);
  run_thread_plan(device, entry, {4, calls, false, false}, verdict);
}

void run_with_churn(Device *device, const Entry &entry, Verdict *verdict) {
  run_thread_plan(device, entry, {4, 200, false, true}, verdict);
}

void run_two_handles(Device *device, const Entry &entry, Verdict *verdict) {
  const Clock clock;
  run_thread_plan(device, entry, {2, 10000, true, false}, verdict);
  verdict->expect(clock.seconds() < entry.check.value("timeout_s", 0),
                  "it ends within the entry's time");
}

}  // namespace

const std::vector<Special> kRepeatSpecials = {
    {"xlite-dev/LeetCUDA#251", run_repetitions, Where::kBoth, true, {"n"}},
    {"ROCm/composable_kernel#323", run_repetitions, Where::kBoth, true, {"n"}},
    {"PaddlePaddle/Paddle#11057", run_repetitions, Where::kBoth, true, {"n", "bitwise"}},
    {"vllm-project/vllm#49367", run_rows_alone, Where::kBoth, true, {"bitwise"}},
    {"RL-Align/RL-Kernel#337", run_replicated_rows, Where::kBoth, false, {"bitwise"}},
    {"tenstorrent/tt-metal#45200", run_in_place_rounds, Where::kBoth, true, {"bitwise"}},
    {"microsoft/onnxruntime#22554", run_four_streams, Where::kBoth, true, {"n"}},
    {"PaddlePaddle/Paddle#19845", run_with_churn, Where::kBoth, true, {}},
    {"pytorch/pytorch#103793", run_two_handles, Where::kBoth, true, {"timeout_s"}},
};

}  // namespace reports
