// Structs by size: every size from 0 to twice the struct, with a tail of zeros and with one that is
// not; and nothing written past the size that was given.
#include <algorithm>
#include <cstring>
#include <vector>

#include "api/intake.h"
#include "host/api.h"
#include "support/catch.h"

namespace softmax_test {
namespace {

constexpr std::size_t kLargest = 65536;

// A struct of any size between canaries, in exactly aligned memory.
class Sized {
 public:
  explicit Sized(std::size_t bytes)
      : bytes_(bytes), memory_((kGuard + std::max<std::size_t>(bytes, 8) + kGuard) / 8 + 1) {
    std::memset(memory_.data(), 0xa5, memory_.size() * 8);
  }
  unsigned char *data() { return reinterpret_cast<unsigned char *>(memory_.data()) + kGuard; }
  template <typename T>
  T *as() {
    return reinterpret_cast<T *>(data());
  }
  // Whether everything outside [0, bytes) is as it was.
  bool is_intact() {
    const auto *all = reinterpret_cast<unsigned char *>(memory_.data());
    for (std::size_t i = 0; i < memory_.size() * 8; ++i) {
      if (i >= kGuard && i < kGuard + bytes_) continue;
      if (all[i] != 0xa5) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  std::size_t bytes_;
  std::vector<std::uint64_t> memory_;
};

// `known` bytes of a valid struct, cut or followed by zeros, with struct_size = bytes.
template <typename T>
void place(Sized *sized, const T &known, std::size_t bytes) {
  std::memset(sized->data(), 0, bytes);
  std::memcpy(sized->data(), &known, std::min(bytes, sizeof known));
  const std::uint64_t size = bytes;
  std::memcpy(sized->data(), &size, std::min<std::size_t>(bytes, 8));
}

std::vector<std::size_t> sizes_up_to_twice(std::size_t size) {
  std::vector<std::size_t> sizes;
  for (std::size_t s = 0; s <= 2 * size; ++s) sizes.push_back(s);
  return sizes;
}

}  // namespace

TEST_CASE("the first release's struct sizes are the header's", "[structs]") {
  CHECK(sizeof(softmax_desc_t) >= softmax::kDescBytesV1);
  CHECK(sizeof(softmax_args_t) >= softmax::kArgsBytesV1);
  CHECK(sizeof(softmax_choice_t) >= softmax::kChoiceBytesV1);
  CHECK(softmax::kDescBytesV1 == 392);
  CHECK(softmax::kArgsBytesV1 == 104);
  CHECK(softmax::kChoiceBytesV1 == 240);
}

TEST_CASE("structs of every past size ask for nothing that came later", "[structs]") {
  // desc and args: the first release's, and today's. A new size is added here, none is removed.
  constexpr std::size_t kDescSizes[] = {392, 480};
  constexpr std::size_t kArgsSizes[] = {104, 112};
  CHECK(kDescSizes[1] == sizeof(softmax_desc_t));
  CHECK(kArgsSizes[1] == sizeof(softmax_args_t));
  const CpuHandle handle;
  const softmax_desc_t valid_desc = make_desc();
  for (const std::size_t desc_bytes : kDescSizes) {
    for (const std::size_t args_bytes : kArgsSizes) {
      std::vector<float> values(100, 1.0f);
      const softmax_args_t valid_args = make_args(values.data(), values.data());
      // What lies behind an older struct is the caller's, and is not looked at.
      Sized desc(desc_bytes), args(args_bytes);
      place(&desc, valid_desc, desc_bytes);
      place(&args, valid_args, args_bytes);
      INFO(desc_bytes << " and " << args_bytes);
      softmax_choice_t choice = {};
      choice.struct_size = sizeof choice;
      CHECK(softmax_select(handle, 0, desc.as<softmax_desc_t>(), &choice) == SOFTMAX_SUCCESS);
      CHECK(std::string(choice.kernel) == "cpu_softmax_vector_f32");  // the plain call's
      CHECK(softmax_execute(handle, 0, desc.as<softmax_desc_t>(), args.as<softmax_args_t>(),
                            nullptr) == SOFTMAX_SUCCESS);
      CHECK(values[99] == 0.04f);
    }
  }
}

TEST_CASE("softmax_desc_init writes exactly the size that it was given", "[structs]") {
  for (const std::size_t bytes : sizes_up_to_twice(sizeof(softmax_desc_t))) {
    Sized sized(bytes);
    const softmax_status_t status = softmax_desc_init(
        sized.as<softmax_desc_t>(), bytes, SOFTMAX_OP_LOGSOFTMAX, SOFTMAX_DTYPE_F16, 3, 4);
    INFO("size " << bytes);
    CHECK(sized.is_intact());
    if (bytes < softmax::kDescBytesV1) {
      CHECK(status == SOFTMAX_STATUS_STRUCT_SIZE);
      // A refused call writes nothing at all.
      CHECK(std::all_of(sized.data(), sized.data() + bytes,
                        [](unsigned char byte) { return byte == 0xa5; }));
      continue;
    }
    CHECK(status == SOFTMAX_SUCCESS);
    softmax_desc_t desc = {};
    std::memcpy(&desc, sized.data(), std::min(bytes, sizeof desc));
    CHECK((desc.struct_size == bytes && desc.op == SOFTMAX_OP_LOGSOFTMAX &&
           desc.x_dtype == SOFTMAX_DTYPE_F16 && desc.y_dtype == SOFTMAX_DTYPE_F16 &&
           desc.ndim == 2 && desc.axis == -1 && desc.shape[0] == 3 && desc.shape[1] == 4 &&
           desc.scale == 1.0 && desc.flags == 0 && desc.mask_kind == SOFTMAX_MASK_NONE &&
           desc.direction == SOFTMAX_DIRECTION_FORWARD && desc.empty_row == 0));
    if (bytes > sizeof desc) {
      CHECK(std::all_of(sized.data() + sizeof desc, sized.data() + bytes,
                        [](unsigned char byte) { return byte == 0; }));
    }
  }
}

TEST_CASE("a descriptor of any size is taken by the zero-tail rule", "[structs]") {
  const softmax_desc_t valid = make_desc();
  for (const std::size_t bytes : sizes_up_to_twice(sizeof valid)) {
    Sized sized(bytes);
    place(&sized, valid, bytes);
    INFO("size " << bytes);
    if (bytes < 8) continue;  // there is not even a struct_size to read
    const softmax_status_t status = softmax_desc_check(sized.as<softmax_desc_t>());
    CHECK(status == (bytes < softmax::kDescBytesV1 ? SOFTMAX_STATUS_STRUCT_SIZE : SOFTMAX_SUCCESS));
    for (const std::size_t at : {sizeof valid, (sizeof valid + bytes) / 2, bytes - 1}) {
      if (at < sizeof valid || at >= bytes) continue;
      place(&sized, valid, bytes);
      sized.data()[at] = 1;
      INFO("byte " << at);
      CHECK(softmax_desc_check(sized.as<softmax_desc_t>()) == SOFTMAX_STATUS_NEWER_FIELD);
    }
    CHECK(sized.is_intact());
  }
}

TEST_CASE("arguments of any size are taken by the zero-tail rule", "[structs]") {
  const CpuHandle handle;
  const softmax_desc_t desc = make_desc();
  for (const std::size_t bytes : sizes_up_to_twice(sizeof(softmax_args_t))) {
    if (bytes < 8) continue;
    std::vector<float> values(100, 1.0f);
    const softmax_args_t valid = make_args(values.data(), values.data());
    Sized sized(bytes);
    place(&sized, valid, bytes);
    INFO("size " << bytes);
    const softmax_status_t status =
        softmax_execute(handle, SOFTMAX_ALGO_AUTO, &desc, sized.as<softmax_args_t>(), nullptr);
    const bool is_old = bytes < softmax::kArgsBytesV1;
    CHECK(status == (is_old ? SOFTMAX_STATUS_STRUCT_SIZE : SOFTMAX_SUCCESS));
    CHECK(values[99] == (is_old ? 1.0f : 0.04f));
    for (const std::size_t at : {sizeof valid, bytes - 1}) {
      if (at < sizeof valid || at >= bytes) continue;
      values.assign(100, 1.0f);
      place(&sized, valid, bytes);
      sized.data()[at] = 0x80;
      CHECK(softmax_execute(handle, SOFTMAX_ALGO_AUTO, &desc, sized.as<softmax_args_t>(),
                            nullptr) == SOFTMAX_STATUS_NEWER_FIELD);
      CHECK(values[99] == 1.0f);  // refused before anything was written
    }
    CHECK(sized.is_intact());
  }
}

TEST_CASE("a descriptor's tail is checked by softmax_execute and softmax_select too", "[structs]") {
  const CpuHandle handle;
  const softmax_desc_t valid = make_desc();
  const std::size_t bytes = sizeof valid + 24;
  Sized sized(bytes);
  place(&sized, valid, bytes);
  std::vector<float> values(100, 1.0f);
  const softmax_args_t args = make_args(values.data(), values.data());
  softmax_choice_t choice = {};
  choice.struct_size = sizeof choice;
  CHECK(softmax_execute(handle, 0, sized.as<softmax_desc_t>(), &args, nullptr) == SOFTMAX_SUCCESS);
  CHECK(softmax_select(handle, 0, sized.as<softmax_desc_t>(), &choice) == SOFTMAX_SUCCESS);
  sized.data()[bytes - 1] = 1;
  CHECK(softmax_execute(handle, 0, sized.as<softmax_desc_t>(), &args, nullptr) ==
        SOFTMAX_STATUS_NEWER_FIELD);
  CHECK(softmax_select(handle, 0, sized.as<softmax_desc_t>(), &choice) ==
        SOFTMAX_STATUS_NEWER_FIELD);
  CHECK(last_error().find(std::to_string(bytes - 1)) != std::string::npos);
}

TEST_CASE("softmax_select writes exactly the size that the choice has", "[structs]") {
  const CpuHandle handle;
  const softmax_desc_t desc = make_desc();
  for (const std::size_t bytes : sizes_up_to_twice(sizeof(softmax_choice_t))) {
    if (bytes < 8) continue;
    Sized sized(bytes);
    const std::uint64_t size = bytes;
    std::memcpy(sized.data(), &size, 8);
    const softmax_status_t status =
        softmax_select(handle, SOFTMAX_ALGO_AUTO, &desc, sized.as<softmax_choice_t>());
    INFO("size " << bytes);
    CHECK(sized.is_intact());
    if (bytes < softmax::kChoiceBytesV1) {
      CHECK(status == SOFTMAX_STATUS_STRUCT_SIZE);
      CHECK(std::all_of(sized.data() + 8, sized.data() + bytes,
                        [](unsigned char byte) { return byte == 0xa5; }));
      continue;
    }
    CHECK(status == SOFTMAX_SUCCESS);
    softmax_choice_t choice = {};
    std::memcpy(&choice, sized.data(), std::min(bytes, sizeof choice));
    CHECK(choice.struct_size == bytes);
    CHECK(softmax_algo_name(choice.algo) != nullptr);
    if (bytes > sizeof choice) {
      CHECK(std::all_of(sized.data() + sizeof choice, sized.data() + bytes,
                        [](unsigned char byte) { return byte == 0; }));
    }
  }
}

TEST_CASE("sizes that no struct has are refused without reading on", "[structs]") {
  // A struct_size that was never set could be anything.
  softmax_desc_t desc = make_desc();
  for (const std::uint64_t size : {std::uint64_t{kLargest + 1}, std::uint64_t{1} << 40, UINT64_MAX,
                                   std::uint64_t{0xa5a5a5a5a5a5a5a5u}}) {
    desc.struct_size = size;
    CHECK(softmax_desc_check(&desc) == SOFTMAX_STATUS_STRUCT_SIZE);
    CHECK(softmax_desc_init(&desc, static_cast<std::size_t>(size), 0, SOFTMAX_DTYPE_F32, 1, 1) ==
          SOFTMAX_STATUS_STRUCT_SIZE);
  }
}

}  // namespace softmax_test
