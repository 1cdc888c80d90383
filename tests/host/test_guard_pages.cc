// Nothing outside [x, x + M*N) is read and nothing outside [y, y + M*N) written, not even a byte of
// the same vector: the buffers end, or begin, at a page that may not be touched.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "support/catch.h"
#include "support/device.h"
#include "support/over.h"

namespace softmax_test {
namespace {

// Memory between two forbidden pages. An access to one of them ends the process: ctest runs each
// test case in a process of its own, and the problem is printed before it runs.
class GuardedPages {
 public:
  explicit GuardedPages(std::size_t usable_bytes)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        usable_((usable_bytes + page_ - 1) / page_ * page_) {
    memory_ = static_cast<unsigned char *>(
        mmap(nullptr, usable_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(memory_ != MAP_FAILED);
    REQUIRE(mprotect(memory_ + page_, usable_, PROT_READ | PROT_WRITE) == 0);
  }
  ~GuardedPages() { munmap(memory_, usable_ + 2 * page_); }
  GuardedPages(const GuardedPages &) = delete;
  GuardedPages &operator=(const GuardedPages &) = delete;
  unsigned char *first() const { return memory_ + page_; }
  unsigned char *last(std::size_t bytes) const { return memory_ + page_ + usable_ - bytes; }

 private:
  std::size_t page_, usable_;
  unsigned char *memory_ = nullptr;
};

}  // namespace

TEST_CASE("no byte before or after a buffer is touched", "[guard]") {
  constexpr std::int64_t kRows = 3;
  GuardedPages x_pages(kRows * 600 * 8), y_pages(kRows * 600 * 8);
  for (const TypePair &types : kTypePairs) {
    const auto x_size = static_cast<std::size_t>(format_of(types.x).size_bytes);
    const auto y_size = static_cast<std::size_t>(format_of(types.y).size_bytes);
    for (std::int64_t cols = 1; cols <= 600; cols += cols < 140 ? 1 : 23) {
      const Elements input = make_input(types.x, kRows, cols, Pattern::kNormal1, 31);
      const Reference reference = make_reference(input, kRows, cols);
      const auto count = static_cast<std::size_t>(kRows * cols);
      over_algorithms(device(), types, kRows, cols, [&](const Problem &problem) {
        for (const bool at_end : {true, false}) {
          if (problem.is_log != (cols % 2 == 0)) continue;
          unsigned char *x = at_end ? x_pages.last(count * x_size) : x_pages.first();
          unsigned char *y = at_end ? y_pages.last(count * y_size) : y_pages.first();
          if (problem.in_place) y = x;
          std::memcpy(x, input.bytes.data(), input.bytes.size());
          CHECK(call(device().handle(), problem, x, y, nullptr) == SOFTMAX_SUCCESS);
          Elements result(types.y, kRows * cols);
          std::memcpy(result.bytes.data(), y, result.bytes.size());
          INFO(to_text(problem));
          CHECK(compare(result, reference, problem.is_log, cols, promised_bound(types.y)).failure ==
                "");
        }
      });
    }
  }
}

}  // namespace softmax_test
