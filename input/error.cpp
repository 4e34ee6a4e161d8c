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

std::string printable(std::string_view text, size_t most)
{
  std::string result;
  for (const char c : text.substr(0, most))
    result += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? '?' : c;
  return text.size() > most ? result + "..." : result;
}

} // namespace iocast
