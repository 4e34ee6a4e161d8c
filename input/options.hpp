// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "input/error.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace iocast {

/// Refuses what a command line (a CLI::App that allows extras) has beyond its options, with the nearest match.
template <typename App> void refuse_extra_arguments(const App& app)
{
  const auto extra = app.remaining();
  if (extra.empty())
    return;
  if (!extra.front().starts_with("-"))
    throw InputError(fmt::format("The word '{}' stands alone on the command line; every value belongs to an option.",
                                 extra.front()));
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames())
      names.push_back("--" + name);
  const auto name = extra.front().substr(0, extra.front().find('='));
  throw InputError(fmt::format("There is no option '{}'. {}", name, allowed_sentence(name, names)));
}

/// Refuses what is none of the values of an option, with the nearest one.
inline void check_choice(const char* option, const std::string& value, const std::vector<std::string>& values)
{
  if (std::find(values.begin(), values.end(), value) == values.end())
    throw InputError(fmt::format("{} can't be '{}'. {}", option, value, allowed_sentence(value, values)));
}

} // namespace iocast
