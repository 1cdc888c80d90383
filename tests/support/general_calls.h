// Problems of the general call by every algorithm of the device under test, with a count of what
// each has served, so that a test cannot pass because everything was refused.
#pragma once

#include <map>

#include "support/device.h"
#include "support/general.h"

namespace softmax_test {

class GeneralCalls {
 public:
  explicit GeneralCalls(Device &device, How how = How::kTogether) : device_(device), how_(how) {}

  // By each algorithm: what must come out, or a refusal with nothing written where softmax_select
  // says so. AUTO, and on CUDA ONLINE, refuse nothing.
  void check(const GeneralCase &c) { check(c, make_values(c)); }
  void check(const GeneralCase &c, const GeneralValues &values);
  // The same in place too, where the case can be.
  void check_in_both_places(GeneralCase c);

  std::int64_t served(softmax_algo_t algo) const;
  // Fails for each of these that the device has and that has served nothing.
  void require_served(const std::vector<softmax_algo_t> &algos) const;

  // What takes general problems on the device, AUTO first.
  std::vector<softmax_algo_t> algos() const;
  bool may_refuse(softmax_algo_t algo) const;
  // Whether softmax_select takes the case's descriptor.
  bool is_selected(const GeneralCase &c) const;

 private:
  Device &device_;
  How how_;
  std::map<softmax_algo_t, std::int64_t> served_;
};

// Everything that a case can have beside its layout, its types and given statistics, by number.
constexpr int kVariants = 720;
void vary(GeneralCase *c, int variant);

// A gradient of some layout, types, mask, scale and source, by number.
constexpr int kBackwardVariants = 1440;
GeneralCase backward_case(int variant);

// Short and long rows, an axis in every place; more rows than a tile has, and parts of rows.
struct GeneralShape {
  std::vector<std::int64_t> shape;
  int axis;
};
const std::vector<GeneralShape> &general_shapes();
GeneralCase case_of(const GeneralShape &shape);

// Variant `variant` of vary() on a shape, in layouts and types that change with it; turn 0 to 2
// gives it three shapes, of which 1 has statistics.
GeneralCase mixed_case(int variant, int turn);
// The same on one shape with statistics that are given, and lse for every other one. Not for
// SOFTMAX_OP_STATS, which takes none.
GeneralCase given_stats_case(int variant);

}  // namespace softmax_test
