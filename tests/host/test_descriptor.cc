// softmax_desc_check: the status of every field, and 1xxx before 2xxx.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "host/api.h"
#include "support/catch.h"
#include "support/element.h"

namespace softmax_test {
namespace {

struct FieldCase {
  const char *what;
  softmax_status_t status;
  std::function<void(softmax_desc_t *)> change;
};

// Every way in which a field can be wrong, malformed ones first.
std::vector<FieldCase> field_cases() {
  using D = softmax_desc_t;
  return {
      {"flag 32", SOFTMAX_STATUS_BAD_ENUM, [](D *d) { d->flags = 32; }},
      {"flag 2^63", SOFTMAX_STATUS_BAD_ENUM, [](D *d) { d->flags = std::uint64_t{1} << 63; }},
      {"op 3", SOFTMAX_STATUS_BAD_ENUM, [](D *d) { d->op = 3; }},
      {"op -1", SOFTMAX_STATUS_BAD_ENUM, [](D *d) { d->op = -1; }},
      {"direction 2", SOFTMAX_STATUS_BAD_ENUM, [](D *d) { d->direction = 2; }},
      {"x_dtype 0", SOFTMAX_STATUS_BAD_ENUM, [](D *d) { d->x_dtype = 0; }},
      {"x_dtype 7", SOFTMAX_STATUS_BAD_ENUM, [](D *d) { d->x_dtype = 7; }},
      {"y_dtype -1", SOFTMAX_STATUS_BAD_ENUM, [](D *d) { d->y_dtype = -1; }},
      {"mask_kind 5", SOFTMAX_STATUS_BAD_ENUM, [](D *d) { d->mask_kind = 5; }},
      {"empty_row 2", SOFTMAX_STATUS_BAD_ENUM, [](D *d) { d->empty_row = 2; }},
      {"ndim 0", SOFTMAX_STATUS_BAD_SHAPE, [](D *d) { d->ndim = 0; }},
      {"ndim 9", SOFTMAX_STATUS_BAD_SHAPE, [](D *d) { d->ndim = 9; }},
      {"ndim INT_MIN", SOFTMAX_STATUS_BAD_SHAPE, [](D *d) { d->ndim = INT32_MIN; }},
      {"axis 2 of 2", SOFTMAX_STATUS_BAD_SHAPE, [](D *d) { d->axis = 2; }},
      {"axis -3 of 2", SOFTMAX_STATUS_BAD_SHAPE, [](D *d) { d->axis = -3; }},
      {"shape[0] -1", SOFTMAX_STATUS_BAD_SHAPE, [](D *d) { d->shape[0] = -1; }},
      {"shape[1] INT64_MIN", SOFTMAX_STATUS_BAD_SHAPE, [](D *d) { d->shape[1] = INT64_MIN; }},
      {"2^62 x 2", SOFTMAX_STATUS_BAD_SHAPE,
       [](D *d) { d->shape[0] = std::int64_t{1} << 62, d->shape[1] = 2; }},
      {"bytes past 2^63", SOFTMAX_STATUS_BAD_SHAPE,
       [](D *d) {
         d->x_dtype = d->y_dtype = SOFTMAX_DTYPE_F64;
         d->shape[0] = std::int64_t{1} << 60, d->shape[1] = 1;
       }},
      {"x_stride -1", SOFTMAX_STATUS_BAD_STRIDE, [](D *d) { d->x_stride[1] = -1; }},
      {"y_stride -1", SOFTMAX_STATUS_BAD_STRIDE, [](D *d) { d->y_stride[0] = -1; }},
      {"y_stride 0", SOFTMAX_STATUS_BAD_STRIDE,
       [](D *d) { d->y_stride[0] = 0, d->y_stride[1] = 1; }},
      {"dy_stride -1", SOFTMAX_STATUS_BAD_STRIDE,
       [](D *d) { d->direction = SOFTMAX_DIRECTION_BACKWARD, d->dy_stride[1] = -1; }},
      {"mask_stride -1", SOFTMAX_STATUS_BAD_STRIDE,
       [](D *d) { d->mask_kind = SOFTMAX_MASK_ADDITIVE, d->mask_stride[1] = -1; }},
      {"y rows that overlap", SOFTMAX_STATUS_BAD_STRIDE,
       [](D *d) { d->y_stride[0] = 24, d->y_stride[1] = 1; }},
      {"y columns on top of rows", SOFTMAX_STATUS_BAD_STRIDE,
       [](D *d) { d->y_stride[0] = 1, d->y_stride[1] = 3; }},
      {"broadcast dx", SOFTMAX_STATUS_BAD_STRIDE,
       [](D *d) { d->direction = SOFTMAX_DIRECTION_BACKWARD, d->x_stride[1] = 1; }},
      {"x_stride past 63 bits", SOFTMAX_STATUS_BAD_STRIDE,
       [](D *d) { d->x_stride[0] = std::int64_t{1} << 60, d->x_stride[1] = 1; }},
      {"dy_dtype 7", SOFTMAX_STATUS_BAD_ENUM,
       [](D *d) { d->direction = SOFTMAX_DIRECTION_BACKWARD, d->dy_dtype = 7; }},
      {"dy_dtype -1", SOFTMAX_STATUS_BAD_ENUM,
       [](D *d) { d->direction = SOFTMAX_DIRECTION_BACKWARD, d->dy_dtype = -1; }},
      {"softcap -1", SOFTMAX_STATUS_INVALID_ARGUMENT, [](D *d) { d->softcap = -1; }},
      {"softcap inf", SOFTMAX_STATUS_INVALID_ARGUMENT, [](D *d) { d->softcap = HUGE_VAL; }},
      {"y_scale -1", SOFTMAX_STATUS_INVALID_ARGUMENT, [](D *d) { d->y_scale = -1; }},
      {"y_scale NaN", SOFTMAX_STATUS_INVALID_ARGUMENT,
       [](D *d) { d->y_scale = std::numeric_limits<double>::quiet_NaN(); }},
      {"STATS backward", SOFTMAX_STATUS_INVALID_ARGUMENT,
       [](D *d) { d->op = SOFTMAX_OP_STATS, d->direction = SOFTMAX_DIRECTION_BACKWARD; }},
      {"STATS of given statistics", SOFTMAX_STATUS_INVALID_ARGUMENT,
       [](D *d) { d->op = SOFTMAX_OP_STATS, d->flags = SOFTMAX_FLAG_GIVEN_STATS; }},
      {"softcap backward from y", SOFTMAX_STATUS_INVALID_ARGUMENT,
       [](D *d) { d->softcap = 30, d->direction = SOFTMAX_DIRECTION_BACKWARD; }},
      {"scale NaN", SOFTMAX_STATUS_INVALID_ARGUMENT,
       [](D *d) { d->scale = std::numeric_limits<double>::quiet_NaN(); }},
      {"scale inf", SOFTMAX_STATUS_INVALID_ARGUMENT, [](D *d) { d->scale = HUGE_VAL; }},
      {"alignment 3", SOFTMAX_STATUS_INVALID_ARGUMENT, [](D *d) { d->alignment = 3; }},
      {"alignment 48", SOFTMAX_STATUS_INVALID_ARGUMENT, [](D *d) { d->alignment = 48; }},

      {"y_scale of f32", SOFTMAX_STATUS_NOT_SUPPORTED, [](D *d) { d->y_scale = 0.5; }},
      {"causal axis 0", SOFTMAX_STATUS_NOT_SUPPORTED_LAYOUT,
       [](D *d) { d->axis = 0, d->mask_kind = SOFTMAX_MASK_CAUSAL; }},
  };
}

}  // namespace

TEST_CASE("every wrong field has its status and a sentence", "[descriptor]") {
  for (const FieldCase &c : field_cases()) {
    softmax_desc_t desc = make_desc();
    c.change(&desc);
    INFO(c.what);
    CHECK(softmax_desc_check(nullptr) == SOFTMAX_STATUS_NULL_POINTER);
    const std::string before = last_error();
    CHECK(softmax_desc_check(&desc) == c.status);
    CHECK(last_error() != before);
    CHECK(last_error().size() > 15);
  }
}

TEST_CASE("the reserved field of a descriptor is a field of a newer release", "[descriptor]") {
  softmax_desc_t desc = make_desc();
  desc.reserved = 1;
  CHECK(softmax_desc_check(&desc) == SOFTMAX_STATUS_NEWER_FIELD);
}

TEST_CASE("a malformed field is reported before an unsupported one", "[descriptor]") {
  for (const FieldCase &malformed : field_cases()) {
    if (malformed.status >= 2000) continue;
    for (const FieldCase &unsupported : field_cases()) {
      if (unsupported.status < 2000) continue;
      softmax_desc_t desc = make_desc();
      unsupported.change(&desc);
      malformed.change(&desc);
      // The second change may have taken the first one back, never the other way round.
      const softmax_status_t status = softmax_desc_check(&desc);
      INFO(malformed.what << " with " << unsupported.what);
      CHECK(status / 1000 == 1);
    }
  }
}

TEST_CASE("what every descriptor refuses, softmax_execute and softmax_select refuse",
          "[descriptor]") {
  softmax_handle_t handle = nullptr;
  REQUIRE(softmax_create(&handle, SOFTMAX_DEVICE_CPU) == SOFTMAX_SUCCESS);
  for (const FieldCase &c : field_cases()) {
    softmax_desc_t desc = make_desc();
    c.change(&desc);
    std::vector<double> values(100, 1.0), before = values;
    const softmax_args_t args = make_args(values.data(), values.data());
    softmax_choice_t choice = {};
    choice.struct_size = sizeof choice;
    choice.algo = 77;
    INFO(c.what);
    CHECK(softmax_execute(handle, SOFTMAX_ALGO_AUTO, &desc, &args, nullptr) == c.status);
    CHECK(values == before);
    CHECK(softmax_select(handle, SOFTMAX_ALGO_AUTO, &desc, &choice) == c.status);
    CHECK(choice.algo == 77);
  }
  softmax_destroy(handle);
}

TEST_CASE("descriptors that say the same in another way are accepted", "[descriptor]") {
  const struct {
    const char *what;
    std::function<void(softmax_desc_t *)> change;
  } cases[] = {
      {"axis 1 for -1", [](softmax_desc_t *d) { d->axis = 1; }},
      {"explicit strides",
       [](softmax_desc_t *d) {
         d->x_stride[0] = d->y_stride[0] = 25, d->x_stride[1] = d->y_stride[1] = 1;
       }},
      {"one dimension", [](softmax_desc_t *d) { d->ndim = 1, d->axis = 0; }},
      {"eight dimensions",
       [](softmax_desc_t *d) {
         d->ndim = 8;
         for (int i = 0; i < 8; ++i) d->shape[i] = 1 + i % 2;
         d->axis = 7;
       }},
      {"only ones after the axis",
       [](softmax_desc_t *d) { d->ndim = 4, d->axis = 1, d->shape[2] = d->shape[3] = 1; }},
      {"any stride of extent 1",
       [](softmax_desc_t *d) { d->shape[0] = 1, d->x_stride[0] = 12345, d->x_stride[1] = 1; }},
      {"anything past ndim",
       [](softmax_desc_t *d) { d->shape[2] = -5, d->x_stride[2] = -5, d->y_stride[7] = -1; }},
      {"strides of later features", [](softmax_desc_t *d) { d->causal_offset = -3; }},
      {"no elements, whatever the other extent",
       [](softmax_desc_t *d) { d->shape[0] = INT64_MAX, d->shape[1] = 0; }},
      {"M_ADAPTIVE, FAST_MATH and TRUST_POINTERS", [](softmax_desc_t *d) { d->flags = 1 | 2 | 8; }},
      {"alignment 1", [](softmax_desc_t *d) { d->alignment = 1; }},
      {"alignment 2^40", [](softmax_desc_t *d) { d->alignment = std::uint64_t{1} << 40; }},
      {"empty rows 0", [](softmax_desc_t *d) { d->empty_row = SOFTMAX_EMPTY_ROW_ZERO; }},
      {"f16 -> f32",
       [](softmax_desc_t *d) { d->x_dtype = SOFTMAX_DTYPE_F16, d->y_dtype = SOFTMAX_DTYPE_F32; }},
  };
  for (const auto &c : cases) {
    softmax_desc_t desc = make_desc();
    c.change(&desc);
    INFO(c.what << ": " << last_error());
    CHECK(softmax_desc_check(&desc) == SOFTMAX_SUCCESS);
  }
}

TEST_CASE("a tensor of many dimensions is rows along its last axis", "[descriptor]") {
  const CpuHandle handle;
  softmax_desc_t desc = make_desc();
  desc.ndim = 4;
  const int64_t shape[] = {2, 3, 4, 5};
  for (int i = 0; i < 4; ++i) desc.shape[i] = shape[i];
  desc.axis = 3;
  std::vector<float> x(120), y(120), rows(120);
  for (int i = 0; i < 120; ++i) x[i] = static_cast<float>((i * 37) % 23) * 0.3f;
  const softmax_args_t args = make_args(x.data(), y.data());
  REQUIRE(softmax_execute(handle, SOFTMAX_ALGO_AUTO, &desc, &args, nullptr) == SOFTMAX_SUCCESS);
  REQUIRE(softmax_forward_to(handle, SOFTMAX_ALGO_AUTO, x.data(), SOFTMAX_DTYPE_F32, rows.data(),
                             SOFTMAX_DTYPE_F32, 24, 5, nullptr) == SOFTMAX_SUCCESS);
  CHECK(y == rows);
}

}  // namespace softmax_test
