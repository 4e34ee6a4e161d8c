// SPDX-License-Identifier: Apache-2.0
#include "workload/phase_list.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

namespace iocast {

std::vector<size_t> requested_phases(const std::string& pattern, const std::vector<std::string>& names,
                                     const std::string& wanted)
{
  std::vector<size_t> places;
  std::istringstream list(wanted);
  for (std::string name; std::getline(list, name, ',');) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      throw InputError(fmt::format("{} has no phase '{}'. {}", pattern, name, allowed_sentence(name, names)));
    const auto place = static_cast<size_t>(found - names.begin());
    if (!places.empty() && place <= places.back())
      throw InputError(fmt::format("The phases of {} run in the order {}, each once, not '{}'.", pattern,
                                   fmt::join(names, ", "), wanted));
    places.push_back(place);
  }
  if (places.empty())
    throw InputError(fmt::format("{} needs at least one phase of {}.", pattern, fmt::join(names, ", ")));
  return places;
}

} // namespace iocast
