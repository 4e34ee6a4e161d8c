// SPDX-License-Identifier: Apache-2.0
#include "input/error.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

namespace iocast {

namespace {
/// Small letters and capitals are the same.
size_t edit_distance(std::string_view a, std::string_view b)
{
  const auto small = [](char letter) { return std::tolower(static_cast<unsigned char>(letter)); };
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0]          = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j]   = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (small(a[i - 1]) == small(b[j - 1]) ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}
} // namespace

std::string nearest_match(std::string_view given, std::span<const std::string> allowed)
{
  std::string best;
  size_t best_distance = std::max<size_t>(2, given.size() / 2) + 1;
  for (const auto& candidate : allowed)
    if (const size_t distance = edit_distance(given, candidate); distance < best_distance) {
      best          = candidate;
      best_distance = distance;
    }
  return best;
}

std::string allowed_sentence(std::string_view given, std::span<const std::string> allowed)
{
  if (allowed.empty())
    return "Nothing is allowed here.";
  const std::string match = nearest_match(given, allowed);
  std::vector<std::string_view> once; // a pattern and a file of the catalogue may share a name
  for (const auto& name : allowed)
    if (std::find(once.begin(), once.end(), name) == once.end())
      once.push_back(name);
  return fmt::format("{}Allowed: {}.", match.empty() ? "" : fmt::format("Did you mean '{}'? ", match),
                     fmt::join(once, ", "));
}

namespace {
constexpr char32_t no_character = 0;

/// The first character of UTF-8 text, which isn't empty, and its bytes; no_character for a byte that begins none.
std::pair<char32_t, size_t> first_character(std::string_view text)
{
  const auto byte                = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const auto first               = byte(0);
  const size_t length            = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >> 4 == 0xe ? 3 : 4;
  constexpr unsigned char bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  if (length > text.size() || (length == 4 && (first < 0xf0 || first > 0xf4)))
    return {no_character, 1};
  char32_t point = first & bits[length];
  for (size_t at = 1; at < length; ++at) {
    if (byte(at) >> 6 != 2)
      return {no_character, 1};
    point = point << 6 | (byte(at) & 0x3f);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  return point < least[length] ? std::pair(no_character, size_t{1}) : std::pair(point, length);
}

/// Not the control characters of ASCII and ISO 6429, line and paragraph separators, and what turns the direction of
/// writing: with them text says something else to a terminal, or to a reader.
bool is_shown(char32_t point)
{
  const auto is_in = [point](char32_t from, char32_t to) { return point >= from && point <= to; };
  return !(is_in(0, 0x1f) || is_in(0x7f, 0x9f) || point == 0x61c || is_in(0x200e, 0x200f) || is_in(0x2028, 0x202e) ||
           is_in(0x2066, 0x2069));
}
} // namespace

std::string printable(std::string_view text, size_t most)
{
  std::string result;
  size_t at = 0;
  while (at < text.size() && at < most) {
    const auto [point, length] = first_character(text.substr(at));
    if (at + length > most)
      break;
    result += is_shown(point) ? text.substr(at, length) : "?";
    at += length;
  }
  return at < text.size() ? result + "..." : result;
}

} // namespace iocast
