// Sums without an order: GridSum (core/row_part.h).
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/row_part.h"
#include "support/catch.h"
#include "support/inputs.h"

namespace softmax_test {
namespace {

// Terms of a softmax run of the most columns there are, from the largest there is down.
template <typename T>
std::vector<T> falling_terms(std::size_t count, std::uint64_t seed) {
  std::vector<T> terms;
  for (std::uint64_t i = 0; i < count; ++i) {
    terms.push_back(T(1.41 * 0x1p64 * std::exp(-40 * uniform(seed, i) * uniform(seed + 1, i))));
  }
  return terms;
}

// Of terms dealt out to 32 lanes, those of each added in the order that they come in.
template <typename T>
softmax::CompensatedSum<T> sum_over_lanes(const std::vector<T> &terms) {
  softmax::WideSum<T> all;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    softmax::GridSum<T> own;
    for (std::size_t i = lane; i < terms.size(); i += 32) own.add(terms[i]);
    all.add(own.sum());
  }
  return all.compensated();
}

// `step`: of the finest multiples that terms are cut to.
template <typename T>
void check_grid_sums(T step) {
  __extension__ using Int128 = __int128;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::vector<T> terms = falling_terms<T>(1 + seed * 11 % 2048, 3 * seed);
    Int128 steps = 0;
    for (const T term : terms) steps += static_cast<Int128>(term / step);
    const softmax::CompensatedSum<T> first = sum_over_lanes(terms);
    for (int order = 0; order < 4; ++order) {
      INFO(terms.size() << " terms, order " << order);
      const softmax::CompensatedSum<T> sum = sum_over_lanes(terms);
      CHECK(sum.hi == first.hi);
      CHECK(sum.lo == first.lo);
      const Int128 off =
          static_cast<Int128>(sum.hi / step) + static_cast<Int128>(sum.lo / step) - steps;
      // Float32 has 48 bits of it, in two numbers.
      CHECK((sizeof(T) == 4 ? (off < 0 ? -off : off) >> 5 : off) == 0);
      if (order == 1) std::sort(terms.begin(), terms.end());
      std::rotate(terms.begin(), terms.begin() + static_cast<long>(terms.size() * 2 / 3),
                  terms.end());
    }
  }
}

}  // namespace

TEST_CASE("addition towards zero is the exact sum cut off", "[numerics]") {
  CHECK(softmax::add_towards_zero(0x1p52, 0.75) == 0x1p52);
  CHECK(softmax::add_towards_zero(0x1p52, 1.5) == 0x1p52 + 1);
  CHECK(softmax::add_towards_zero(0x1p53 - 1, 1.5) == 0x1p53);
  CHECK(softmax::add_towards_zero(0x1p53 - 1, 0.5) == 0x1p53 - 1);
  CHECK(softmax::add_towards_zero(3.0, 4.0) == 7.0);
}

TEST_CASE("a grid sum is the terms' cut to its steps, in any order", "[numerics]") {
  check_grid_sums<float>(0x1p64f * 0x1p-41f);
  check_grid_sums<double>(0x1p64 * 0x1p-82);
}

}  // namespace softmax_test
