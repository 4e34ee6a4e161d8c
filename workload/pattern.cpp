// SPDX-License-Identifier: Apache-2.0
#include "workload/pattern.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

namespace iocast {

namespace {
std::vector<PatternEntry>& registry()
{
  static std::vector<PatternEntry> entries;
  return entries;
}
} // namespace

char* Pattern::name_object(uint64_t object, char* out) const
{
  std::memcpy(out, "file-", 5);
  return std::to_chars(out + 5, out + 25, object).ptr;
}

uint64_t within(const char* pattern, const char* parameter, const Parameters& given, uint64_t most, const char* what)
{
  const uint64_t wanted = given.count(parameter);
  if (wanted > most)
    throw InputError(fmt::format("{} can't reach over a {} of {}: the run has {} {}. Set {} to at most {}.", pattern,
                                 parameter, wanted, most, what, parameter, most));
  return wanted;
}

bool register_pattern(PatternEntry entry)
{
  entry.parameters.insert(entry.parameters.end(), arrival_parameters().begin(), arrival_parameters().end());
  auto& entries = registry();
  entries.insert(std::upper_bound(entries.begin(), entries.end(), entry,
                                  [](const auto& a, const auto& b) { return a.name < b.name; }),
                 std::move(entry));
  return true;
}

const std::vector<PatternEntry>& patterns()
{
  return registry();
}

const PatternEntry& pattern_named(const std::string& name)
{
  std::vector<std::string> names;
  for (const auto& entry : registry()) {
    if (entry.name == name)
      return entry;
    names.push_back(entry.name);
  }
  throw InputError(fmt::format("There is no pattern '{}'. {}", name, allowed_sentence(name, names)));
}

void check_size(const Footprint& footprint)
{
  constexpr double most = 0x1p63;
  double written = static_cast<double>(footprint.bytes_written), read = static_cast<double>(footprint.bytes_read);
  // The numbers of patterns that can't count so far are too small; no operation is larger than the largest.
  for (const auto& [kind, count] : footprint.operations) {
    const double at_most = static_cast<double>(count) * static_cast<double>(footprint.largest_size);
    if (kind == OpKind::create || kind == OpKind::append || kind == OpKind::pwrite)
      written = std::max(written, at_most);
    else if (kind == OpKind::read || kind == OpKind::pread)
      read = std::max(read, at_most);
  }
  const double kept = static_cast<double>(footprint.peak_bytes), objects = static_cast<double>(footprint.peak_objects);
  for (const auto& [value, what] :
       {std::pair{objects, "has objects"}, {kept, "keeps bytes"}, {written, "writes bytes"}, {read, "reads bytes"}})
    if (value >= most)
      throw InputError(fmt::format(
          "The workload {} beyond 2^63, where file systems and this program stop counting; make it smaller.", what));
}

} // namespace iocast
