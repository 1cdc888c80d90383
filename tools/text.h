// Text for people: what is safe to print, how wide it is, and lines of a file.
#pragma once

#include <string>
#include <vector>

namespace tool {

// UTF-8 as it is, with control characters and invalid bytes written as escapes ("\n", "\x1b"), so
// that a file name or a label can neither break a line nor reach the terminal.
std::string printable(const std::string &text);

// As printable, in double quotes if the text is empty or begins or ends with white space, which
// would not be seen otherwise.
std::string printable_label(const std::string &text);

// Terminal cells that printable text takes: two for a wide (CJK, emoji) character, none for a
// combining one.
int display_width(const std::string &text);

// Text with spaces appended (or put before it) up to `width` cells.
std::string pad_right(const std::string &text, int width);
std::string pad_left(const std::string &text, int width);

// The lines of a file, split at '\n' alone and not stripped; the last may lack its '\n'.
std::vector<std::string> read_lines(const std::string &path);

// "1.5 GB", in powers of ten.
std::string byte_text(double bytes);

}  // namespace tool
