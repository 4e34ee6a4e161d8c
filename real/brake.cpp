// SPDX-License-Identifier: Apache-2.0
#include "real/brake.hpp"

#include "input/error.hpp"
#include "input/units.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <sstream>

namespace iocast {

namespace {
constexpr auto any    = "any";
constexpr auto no_end = std::numeric_limits<int64_t>::max();
} // namespace

void Brake::set_latencies(const std::string& option, const std::string& text)
{
  std::vector<std::string> names{any};
  for (size_t kind = 1; kind < op_count; ++kind)
    if (static_cast<OpKind>(kind) != OpKind::think)
      names.emplace_back(op_names[kind]);
  std::istringstream items(text);
  std::set<std::string> given;
  std::array<bool, op_count> named{};
  for (std::string item; std::getline(items, item, ',');) {
    const auto colon = item.find(':');
    if (colon == item.npos)
      throw InputError(fmt::format(
          "{} can't be '{}'; it takes operations with times, such as create:5s,stat:500ms or any:10s.", option, item));
    const auto name = item.substr(0, colon);
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw InputError(fmt::format("There is no operation '{}' as in '{}' of {}. {}", name, item, option,
                                   allowed_sentence(name, names)));
    double seconds = 0;
    try {
      seconds = parse_quantity(item.substr(colon + 1), Unit::seconds);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{} can't be '{}': {}.", option, item, error.what()));
    }
    if (!(seconds >= 1e-9 && seconds < 9e9))
      throw InputError(fmt::format("{} can't be '{}'; the time is from 1 ns to less than 9e9 s.", option, item));
    if (!given.insert(name).second)
      throw InputError(fmt::format("{} has '{}' twice; it takes one time for each operation.", option, name));
    for (size_t kind = 1; kind < op_count; ++kind)
      if (name == op_names[kind] || (name == any && !named[kind])) { // an operation's own time stands, in any order
        longest_ns[kind] = std::llround(seconds * 1e9);
        named[kind]      = name != any;
      }
  }
}

bool Brake::limits_latencies() const
{
  return std::any_of(longest_ns.begin(), longest_ns.end(), [](int64_t ns) { return ns < no_end; });
}

void Brake::check(const Footprint& footprint) const
{
  if (max_objects > 0 && footprint.peak_objects > max_objects)
    throw InputError(fmt::format(
        "The workload has up to {} objects at a time, and --max-objects allows {}; use fewer objects, or allow more.",
        footprint.peak_objects, max_objects));
}

void Brake::check(const std::string& place, std::optional<double> free) const
{
  if (free && *free < static_cast<double>(min_free))
    throw InputError(fmt::format("{} has {} free, less than the {} of --min-free; nothing was made.", place,
                                 format_size(*free), format_size(static_cast<double>(min_free))));
}

int64_t Brake::admitted_ns(int64_t pace_ns, int64_t intended_ns, int64_t last_ns, int64_t turn_ns, int64_t answered_ns)
{
  const int64_t comes_ns = std::max(intended_ns, last_ns + pace_ns);
  return comes_ns + std::max<int64_t>(0, turn_ns - std::max(comes_ns, answered_ns));
}

nlohmann::ordered_json Brake::to_json() const
{
  nlohmann::ordered_json json;
  if (max_rate > 0)
    json["max_rate"] = max_rate;
  if (max_objects > 0)
    json["max_objects"] = max_objects;
  if (min_free > 0)
    json["min_free"] = min_free;
  for (size_t kind = 1; kind < op_count; ++kind)
    if (longest_ns[kind] < no_end && static_cast<OpKind>(kind) != OpKind::think)
      json["longest_seconds"][std::string(op_names[kind])] = static_cast<double>(longest_ns[kind]) * 1e-9;
  return json;
}

} // namespace iocast
