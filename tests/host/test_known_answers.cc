// Answers of the driver that are kept, by what they are of: src/cuda/known_answers.h.
#include <cstdint>
#include <set>

#include "cuda/known_answers.h"
#include "support/catch.h"

namespace softmax_test {

using softmax::KnownAnswers;

TEST_CASE("what is known of one launch is not taken for another's", "[known]") {
  // Kernels' host functions lie some bytes apart, and blocks differ by as many threads.
  const std::uintptr_t first = 0x55d0c3a41230;
  constexpr int kDropped = KnownAnswers::kBits;
  std::set<std::uint64_t> keys;
  std::size_t asked = 0;
  for (std::uintptr_t kernel = first; kernel < first + 0x4000; kernel += 0x10) {
    for (std::uint64_t threads = 32; threads <= 1024; threads += 32) {
      for (const std::uint64_t smem_bytes : {0, 512, 98304}) {
        ++asked;
        keys.insert(
            KnownAnswers::key(reinterpret_cast<const void *>(kernel), threads, smem_bytes, 0) >>
            kDropped);
      }
    }
  }
  CHECK(keys.size() == asked);
}

TEST_CASE("an answer is found by its own key alone", "[known]") {
  KnownAnswers known;
  const int kernels[2] = {};
  const std::uint64_t key = KnownAnswers::key(&kernels[0], 512, 0, 0);
  std::uint32_t answer = 0;
  CHECK_FALSE(known.find(key, &answer));
  known.insert(key, 2);
  REQUIRE(known.find(key, &answer));
  CHECK(answer == 2);
  CHECK_FALSE(known.find(KnownAnswers::key(&kernels[1], 512, 0, 0), &answer));
  CHECK_FALSE(known.find(KnownAnswers::key(&kernels[0], 256, 0, 0), &answer));
  CHECK_FALSE(known.find(KnownAnswers::key(&kernels[0], 512, 0, 1), &answer));
}

}  // namespace softmax_test
