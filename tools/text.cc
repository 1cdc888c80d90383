// See text.h.
#include "text.h"

#include <fmt/format.h>

#include <cstdint>

#include "error.h"
#include "files.h"

namespace tool {
namespace {

constexpr std::int32_t kInvalid = -1;

// The code point at text[*at], moving *at past it; kInvalid, one byte on, where there is none.
std::int32_t next_code_point(const std::string &text, std::size_t *at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const int first = byte(*at);
  const int length = first < 0x80   ? 1
                     : first < 0xc2 ? 0
                     : first < 0xe0 ? 2
                     : first < 0xf0 ? 3
                     : first < 0xf5 ? 4
                                    : 0;
  std::int32_t code = length == 1 ? first : first & (0x7f >> length);
  for (int i = 1; i < length; ++i) {
    const int next = byte(*at + i);
    if ((next & 0xc0) != 0x80) {
      ++*at;
      return kInvalid;
    }
    code = code << 6 | (next & 0x3f);
  }
  constexpr std::int32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (length == 0 || code < kLeast[length] || code > 0x10ffff || surrogate) {
    ++*at;
    return kInvalid;
  }
  *at += length;
  return code;
}

struct Range {
  std::int32_t first, last;
};

// East Asian Width W and F of Unicode 14, with gaps between neighbours closed over unassigned ones.
constexpr Range kWide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x23f0, 0x23f0},   {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},
    {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},
    {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},
    {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27b0, 0x27b0},   {0x27bf, 0x27bf},
    {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},   {0x2e80, 0x303e},
    {0x3041, 0x3247},   {0x3250, 0x4dbf},   {0x4e00, 0xa4cf},   {0xa960, 0xa97c},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6b},
    {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x18cff}, {0x1aff0, 0x1b2fb},
    {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a},
    {0x1f200, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393},
    {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3}, {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4},
    {0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d},
    {0x1f54b, 0x1f54e}, {0x1f550, 0x1f567}, {0x1f57a, 0x1f57a}, {0x1f595, 0x1f596},
    {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc},
    {0x1f6d0, 0x1f6d2}, {0x1f6d5, 0x1f6df}, {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc},
    {0x1f7e0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945}, {0x1f947, 0x1f9ff},
    {0x1fa70, 0x1faf6}, {0x20000, 0x3fffd},
};

// Characters that take no cell of their own: the common combining marks, joiners and selectors.
constexpr Range kZeroWidth[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},   {0x0610, 0x061a}, {0x064b, 0x065f},
    {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},
    {0x200b, 0x200f}, {0x20d0, 0x20f0}, {0x302a, 0x302d},   {0x3099, 0x309a}, {0xfe00, 0xfe0f},
    {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0100, 0xe01ef},
};

template <std::size_t Count>
bool is_in(const Range (&ranges)[Count], std::int32_t code) {
  for (const Range &range : ranges) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

bool is_control(std::int32_t code) {
  const bool line_or_direction =
      (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || line_or_direction;
}

bool is_space(std::int32_t code) {
  return code == ' ' || code == 0xa0 || (code >= 0x2000 && code <= 0x200b) || code == 0x202f ||
         code == 0x205f || code == 0x3000;
}

}  // namespace

std::string printable(const std::string &text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const std::int32_t code = next_code_point(text, &at);
    if (code == '\n') {
      out += "\\n";
    } else if (code == '\t') {
      out += "\\t";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == kInvalid || (code < 0x80 && is_control(code))) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[start]));
    } else if (is_control(code)) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out.append(text, start, at - start);
    }
  }
  return out;
}

std::string printable_label(const std::string &text) {
  const std::string shown = printable(text);
  if (shown.empty()) return "\"\"";
  std::size_t at = 0;
  const bool space_first = is_space(next_code_point(shown, &at));
  std::int32_t last = 0;
  for (at = 0; at < shown.size();) last = next_code_point(shown, &at);
  return space_first || is_space(last) ? '"' + shown + '"' : shown;
}

int display_width(const std::string &text) {
  int width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::int32_t code = next_code_point(text, &at);
    width += is_in(kZeroWidth, code) ? 0 : is_in(kWide, code) ? 2 : 1;
  }
  return width;
}

std::string pad_right(const std::string &text, int width) {
  const int missing = width - display_width(text);
  return missing > 0 ? text + std::string(missing, ' ') : text;
}

std::string pad_left(const std::string &text, int width) {
  const int missing = width - display_width(text);
  return missing > 0 ? std::string(missing, ' ') + text : text;
}

std::vector<std::string> read_lines(const std::string &path) {
  const InputFile file(path);
  std::string all(static_cast<std::size_t>(file.bytes()), '\0');
  file.read(all.data(), file.bytes(), 0);
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < all.size();) {
    std::size_t end = all.find('\n', start);
    if (end == std::string::npos) end = all.size();
    lines.push_back(all.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

std::string byte_text(double bytes) {
  const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  int unit = 0;
  while (bytes >= 999.95 && unit < 6) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

}  // namespace tool
