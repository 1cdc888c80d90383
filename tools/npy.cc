// See npy.h. The header is a Python dictionary literal; the parser below takes exactly the literals
// that can stand there and nothing is evaluated.
#include "npy.h"

#include <fmt/format.h>

#include <cstring>

#include "error.h"
#include "text.h"

namespace tool {
namespace {

// Headers of plain arrays are under 200 bytes; a longer one than this is a lie or not for us.
constexpr std::int64_t kMaxHeaderBytes = 1 << 20;
constexpr std::size_t kMaxDimensions = 64;
constexpr char kMagic[] = "\x93NUMPY";
constexpr std::size_t kMagicBytes = sizeof kMagic - 1;

std::uint32_t little_endian(const std::string &bytes, std::size_t at, int count) {
  std::uint32_t value = 0;
  for (int i = 0; i < count; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

// What the dictionary says.
struct Fields {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

class Parser {
 public:
  Parser(const std::string &text, const std::string &name) : text_(text), name_(name) {}

  Fields dictionary() {
    Fields fields;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_descr) {
        fields.descr = descr();
        has_descr = true;
      } else if (key == "fortran_order" && !has_order) {
        fields.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        fields.shape = tuple();
        has_shape = true;
      } else {
        malformed();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size() || !has_descr || !has_order || !has_shape) malformed();
    return fields;
  }

 private:
  [[noreturn]] void malformed() {
    fail_input("{}: the .npy header is malformed at byte {}", name_, at_);
  }
  void skip_space() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) != nullptr && text_[at_] != 0) {
      ++at_;
    }
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) malformed();
  }
  bool accept_word(const char *word) {
    skip_space();
    if (text_.compare(at_, std::strlen(word), word) != 0) return false;
    at_ += std::strlen(word);
    return true;
  }
  std::string quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') malformed();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) malformed();
    const std::string inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.find('\\') != std::string::npos) malformed();
    at_ = end + 1;
    return inside;
  }
  std::string descr() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(' || text_[at_] == '{')) {
      fail_input("{}: the elements are structured (records); softmax takes f16, bf16, f32 or f64",
                 name_);
    }
    return quoted();
  }
  bool boolean() {
    if (accept_word("True")) return true;
    if (accept_word("False")) return false;
    malformed();
  }
  std::int64_t integer() {
    skip_space();
    const std::size_t start = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        fail_input("{}: the .npy header's shape does not fit 64 bits", name_);
      }
      ++at_;
    }
    if (at_ == start) malformed();
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // a long integer of Python 2
    return value;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      values.push_back(integer());
      if (accept(',')) continue;
      if (values.size() == 1) malformed();  // (3) is a number, not a tuple
      expect(')');
      break;
    }
    return values;
  }

  const std::string &text_;
  const std::string &name_;
  std::size_t at_ = 0;
};

// What numpy calls the kind of element, for a message.
std::string kind_name(const std::string &descr) {
  const char kind = descr.size() > 1 ? descr[1] : '?';
  switch (kind) {
    case 'i': return "integers";
    case 'u': return "unsigned integers";
    case 'b': return "booleans";
    case 'c': return "complex numbers";
    case 'O': return "Python objects";
    case 'S':
    case 'U': return "text";
    case 'M':
    case 'm': return "times";
    case 'V': return "raw bytes";
    case 'f': return "floating-point numbers of another size";
    default: return "of an unknown type";
  }
}

const Dtype &dtype_of_descr(const std::string &descr, const Dtype *as_dtype,
                            const std::string &name) {
  const std::string shown = printable(descr);
  const Dtype *stated = nullptr;
  if (descr == "<f4") stated = &dtype_of(SOFTMAX_DTYPE_F32);
  if (descr == "<f8") stated = &dtype_of(SOFTMAX_DTYPE_F64);
  if (descr == "<f2") stated = &dtype_of(SOFTMAX_DTYPE_F16);
  if (descr == "bfloat16" || descr == "<bfloat16") stated = &dtype_of(SOFTMAX_DTYPE_BF16);
  if (stated != nullptr) {
    if (as_dtype != nullptr && as_dtype != stated) {
      fail_input("{}: the file says that its elements are {}, --input-dtype says {}", name,
                 stated->name, as_dtype->name);
    }
    return *stated;
  }
  if (descr == "<V2" || descr == "|V2" || descr == "<u2") {
    if (as_dtype != nullptr && as_dtype->bytes == 2) return *as_dtype;
    if (as_dtype == nullptr) {
      fail_input(
          "{}: the elements are 2 bytes without a known type ('{}'); if they are bfloat16, "
          "add --input-dtype bf16",
          name, shown);
    }
    fail_input("{}: the elements are 2 bytes wide, --input-dtype {} is {}", name, as_dtype->name,
               as_dtype->bytes);
  }
  if (!descr.empty() && descr[0] == '>') {
    fail_input("{}: the elements are big-endian ('{}'); save them with a little-endian type", name,
               shown);
  }
  fail_input("{}: the elements are {} ('{}'); softmax takes f16, bf16, f32 or f64", name,
             kind_name(descr), shown);
}

}  // namespace

std::int64_t npy_header_bytes(const std::string &prefix, const std::string &name) {
  if (prefix.compare(0, kMagicBytes, kMagic) != 0) {
    fail_input("{}: not a .npy file (it does not begin with \\x93NUMPY)", name);
  }
  if (prefix.size() < kMagicBytes + 2) fail_input("{}: the file ends within the .npy header", name);
  const int major = static_cast<unsigned char>(prefix[6]);
  const int minor = static_cast<unsigned char>(prefix[7]);
  if (major < 1 || major > 3 || minor != 0) {
    fail_input("{}: .npy format version {}.{} is not known: 1.0, 2.0 and 3.0 are", name, major,
               minor);
  }
  const int length_bytes = major == 1 ? 2 : 4;
  const std::size_t start = kMagicBytes + 2 + length_bytes;
  if (prefix.size() < start) fail_input("{}: the file ends within the .npy header", name);
  const std::int64_t length = little_endian(prefix, kMagicBytes + 2, length_bytes);
  if (length > kMaxHeaderBytes) {
    fail_input("{}: the .npy header claims {} bytes; that of a plain array has about 100", name,
               length);
  }
  return static_cast<std::int64_t>(start) + length;
}

NpyArray read_npy_header(const std::string &header, std::int64_t file_bytes, const Dtype *as_dtype,
                         const std::string &name) {
  const std::int64_t header_bytes = npy_header_bytes(header, name);
  if (static_cast<std::int64_t>(header.size()) < header_bytes) {
    fail_input("{}: the file ends within the .npy header", name);
  }
  const std::string text = header.substr(header[6] == 1 ? 10 : 12);
  const Fields fields = Parser(text, name).dictionary();

  NpyArray array;
  array.dtype = &dtype_of_descr(fields.descr, as_dtype, name);
  array.shape = fields.shape;
  array.data_offset = header_bytes;
  if (fields.shape.empty()) {
    fail_input("{}: the array has no dimensions (one number); softmax goes over the last axis",
               name);
  }
  if (fields.shape.size() > kMaxDimensions) {
    fail_input("{}: the array has {} dimensions, more than {}", name, fields.shape.size(),
               kMaxDimensions);
  }
  if (fields.fortran_order) {
    fail_input("{}: the array is in Fortran order; save numpy.ascontiguousarray of it", name);
  }
  for (const std::int64_t extent : fields.shape) {
    if (extent == 0) {
      fail_input("{}: the array is empty, its shape is {}", name, shape_text(fields.shape));
    }
  }
  std::int64_t bytes = array.dtype->bytes;
  array.rows = 1;
  array.cols = fields.shape.back();
  for (const std::int64_t extent : fields.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      fail_input("{}: the .npy header's shape {} does not fit 64 bits", name,
                 shape_text(fields.shape));
    }
  }
  for (std::size_t i = 0; i + 1 < fields.shape.size(); ++i) array.rows *= fields.shape[i];
  if (file_bytes - header_bytes != bytes) {
    fail_input("{}: shape {} of {} needs {} bytes of data, the file has {}: it is {}", name,
               shape_text(fields.shape), array.dtype->name, bytes, file_bytes - header_bytes,
               file_bytes - header_bytes < bytes ? "cut short" : "longer than its header says");
  }
  return array;
}

std::string make_npy_header(const Dtype &dtype, const std::vector<std::int64_t> &shape) {
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kPrefix = 10;
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                 dtype.npy_code, shape_text(shape));
  const std::size_t unpadded = kPrefix + text.size() + 1;
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string header(kMagic, kMagicBytes);
  header += '\1';
  header += '\0';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

std::string shape_text(const std::vector<std::int64_t> &shape) {
  if (shape.size() == 1) return fmt::format("({},)", shape[0]);
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace tool
