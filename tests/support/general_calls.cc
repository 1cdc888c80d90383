// General problems by every algorithm. See general_calls.h.
#include "support/general_calls.h"

#include "support/catch.h"

namespace softmax_test {
namespace {

// Algorithms that hold rows in float32 promise of a sum what section 3 promises of float32; the
// others compute it in float64 and round once.
double sum_ulps_of(const Device &device, const GeneralCase &c) {
  const bool is_wide = c.x_dtype == SOFTMAX_DTYPE_F64 || c.y_dtype == SOFTMAX_DTYPE_F64 ||
                       c.algo == SOFTMAX_ALGO_ONLINE;
  return device.is_cuda() && !is_wide ? 4 : 0.51;
}

// What softmax_select does not see, for it sees no buffers.
bool is_more_than_its_descriptor(const GeneralCase &c) {
  return c.has_row_scale || c.has_sink || (c.has_stats && c.op != SOFTMAX_OP_STATS);
}

}  // namespace

std::vector<softmax_algo_t> GeneralCalls::algos() const {
  if (!device_.is_cuda()) {
    return {SOFTMAX_ALGO_AUTO, SOFTMAX_ALGO_VECTOR, SOFTMAX_ALGO_REFERENCE};
  }
  return {SOFTMAX_ALGO_AUTO,  SOFTMAX_ALGO_ONLINE,  SOFTMAX_ALGO_WARP,
          SOFTMAX_ALGO_BLOCK, SOFTMAX_ALGO_CLUSTER, SOFTMAX_ALGO_COLUMN};
}

bool GeneralCalls::may_refuse(softmax_algo_t algo) const {
  return device_.is_cuda() && algo != SOFTMAX_ALGO_AUTO && algo != SOFTMAX_ALGO_ONLINE;
}

bool GeneralCalls::is_selected(const GeneralCase &c) const {
  const softmax_desc_t desc = desc_of(c);
  softmax_choice_t choice = {};
  choice.struct_size = sizeof choice;
  const softmax_status_t status = softmax_select(device_.handle(), c.algo, &desc, &choice);
  const bool is_known = status == SOFTMAX_SUCCESS ||
                        (status == SOFTMAX_STATUS_NOT_SUPPORTED_ALGO && may_refuse(c.algo));
  if (!is_known) {
    INFO(c.text());
    CHECK(status == SOFTMAX_SUCCESS);
  }
  return status == SOFTMAX_SUCCESS;
}

void GeneralCalls::check(const GeneralCase &original, const GeneralValues &values) {
  GeneralCase c = original;
  const GeneralReference reference = make_general_reference(c, values);
  for (const softmax_algo_t algo : algos()) {
    c.algo = algo;
    const bool is_selected = this->is_selected(c);
    // Under those who watch allocations each is slow, and refusals make none.
    if (!is_selected && how_ == How::kExactly) continue;
    const GeneralResult result = run_general(device_, c, values, how_);
    if (result.status == SOFTMAX_STATUS_NOT_SUPPORTED_ALGO && may_refuse(algo) &&
        (!is_selected || is_more_than_its_descriptor(c))) {
      if (!result.is_untouched) {
        INFO(c.text());
        CHECK(result.is_untouched);
      }
      continue;
    }
    if (!is_selected && !is_more_than_its_descriptor(c)) {
      INFO(c.text());
      CHECK(result.status == SOFTMAX_STATUS_NOT_SUPPORTED_ALGO);
    }
    c.sum_ulps = sum_ulps_of(device_, c);
    c.tanh_ulps = device_.is_cuda() ? 2 : 0;
    CHECK(judge_general(c, reference, result) == "");
    ++served_[algo];
  }
}

void GeneralCalls::check_in_both_places(GeneralCase c) {
  const GeneralValues values = make_values(c);
  check(c, values);
  c.in_place = c.is_backward()
                   ? (c.dy_dtype == 0 || c.dy_dtype == c.x_dtype) && c.dy_lie == c.x_lie
                   : c.op != SOFTMAX_OP_STATS && c.x_lie == c.y_lie && c.x_dtype == c.y_dtype;
  if (c.in_place) check(c, values);
}

std::int64_t GeneralCalls::served(softmax_algo_t algo) const {
  const auto found = served_.find(algo);
  return found == served_.end() ? 0 : found->second;
}

void GeneralCalls::require_served(const std::vector<softmax_algo_t> &wanted) const {
  for (const softmax_algo_t algo : algos()) {
    bool is_wanted = !may_refuse(algo);
    for (const softmax_algo_t one : wanted) is_wanted = is_wanted || one == algo;
    if (algo == SOFTMAX_ALGO_CLUSTER && !device_.has_bulk_copies()) is_wanted = false;
    if (!is_wanted) continue;
    INFO("served by " << softmax_algo_name(algo));
    CHECK(served(algo) > 0);
  }
}

void vary(GeneralCase *c, int variant) {
  const int mask = variant % 5;
  c->mask_kind = mask;
  if (mask == SOFTMAX_MASK_CAUSAL && c->axis_index() == 0 && c->shape.size() > 1) c->mask_kind = 0;
  variant /= 5;
  c->op = variant % 3;
  variant /= 3;
  c->empty_row = variant % 2;
  variant /= 2;
  c->has_sink = variant % 2 != 0;
  variant /= 2;
  c->has_row_scale = variant % 2 != 0;
  variant /= 2;
  c->softcap = variant % 2 != 0 ? 3.0 : 0.0;
  variant /= 2;
  constexpr double kScales[] = {1.0, 0.7, -1.3};
  c->scale = kScales[variant % 3];
  c->causal_offset = c->cols() / 3 - 1;
  c->has_stats = c->op == SOFTMAX_OP_STATS;
}

const std::vector<GeneralShape> &general_shapes() {
  static const std::vector<GeneralShape> all = {{{7}, 0},
                                                {{1}, 0},
                                                {{5, 9}, -1},
                                                {{9, 5}, 0},
                                                {{3, 6, 5}, 1},
                                                {{2, 3, 4, 5}, 2},
                                                {{2, 70, 3}, 0},
                                                {{130, 33}, 1},
                                                {{40, 2, 3}, -3},
                                                {{1, 300, 2, 1}, 1},
                                                {{2, 1, 2, 1, 2, 1, 3, 4}, 6}};
  return all;
}

GeneralCase case_of(const GeneralShape &shape) {
  GeneralCase c;
  c.shape = shape.shape;
  c.axis = shape.axis;
  return c;
}

GeneralCase mixed_case(int variant, int turn) {
  GeneralCase c = case_of(general_shapes()[static_cast<std::size_t>((variant + 4 * turn) % 11)]);
  c.x_lie = kLies[(variant / 3 + turn) % 4];
  c.y_lie = kLies[(variant / 5 + turn) % 4];
  c.mask_lie = kLies[(variant / 7 + turn) % 4];
  c.x_dtype = kEveryType[(variant + turn) % 6];
  c.y_dtype = kEveryType[(variant / 2 + 3 * turn) % 6];
  c.seed = static_cast<std::uint64_t>(variant);
  vary(&c, variant);
  if (turn == 1) c.has_stats = true;
  return c;
}

GeneralCase given_stats_case(int variant) {
  GeneralCase c = case_of(general_shapes()[static_cast<std::size_t>(variant % 11)]);
  vary(&c, variant);
  c.x_lie = kLies[variant / 3 % 4];
  c.x_dtype = kEveryType[variant % 6];
  c.y_dtype = kEveryType[variant / 4 % 6];
  c.given_stats = true;
  c.has_stats = variant % 2 == 0;  // lse
  c.seed = static_cast<std::uint64_t>(variant + 77);
  return c;
}

GeneralCase backward_case(int variant) {
  static const std::vector<std::pair<std::vector<std::int64_t>, int>> kShapes = {
      {{7}, 0}, {{5, 9}, 1}, {{9, 5}, 0}, {{3, 6, 5}, 1}, {{2, 3, 4, 5}, 2}, {{130, 33}, 1}};
  GeneralCase c;
  c.direction = SOFTMAX_DIRECTION_BACKWARD;
  const auto &shape = kShapes[static_cast<std::size_t>(variant % 6)];
  c.shape = shape.first;
  c.axis = shape.second;
  c.seed = static_cast<std::uint64_t>(variant);
  c.x_lie = kLies[variant / 2 % 4];
  c.y_lie = kLies[variant / 3 % 4];
  c.dy_lie = kLies[variant / 5 % 4];
  c.mask_lie = kLies[variant / 7 % 4];
  c.op = variant / 6 % 2;
  c.given_stats = variant / 12 % 2 != 0;
  c.mask_kind = variant / 24 % 5;
  if (c.mask_kind == SOFTMAX_MASK_CAUSAL && c.axis_index() == 0) c.mask_kind = 0;
  c.empty_row = variant / 120 % 2;
  c.has_row_scale = variant / 240 % 2 != 0;
  c.scale = variant % 3 == 0 ? 1.0 : -0.6;
  c.softcap = c.given_stats && variant % 5 == 0 ? 3.0 : 0.0;
  c.has_sink = variant % 4 == 1;
  c.x_dtype = kEveryType[variant / 4 % 6];
  c.y_dtype = kEveryType[variant / 9 % 6];
  c.dy_dtype = variant % 2 == 0 ? 0 : kEveryType[variant / 11 % 6];
  c.causal_offset = 1;
  return c;
}

}  // namespace softmax_test
