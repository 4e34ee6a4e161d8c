// SPDX-License-Identifier: Apache-2.0
#include "real/backend_libraries.hpp"

#include "input/error.hpp"
#include "input/own_library.hpp"
#include "real/backend.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace iocast {

namespace {
const std::string beginning = "backend-";

bool is_registered(const std::string& name)
{
  return std::any_of(backends().begin(), backends().end(), [&](const auto& entry) { return entry.name == name; });
}

/// Why the library can't be loaded; empty: it is, and has registered its backend.
std::string problem_of(const std::string& name)
{
  try {
    own_library::load(beginning + name);
    return "";
  } catch (const RunError& error) {
    return fmt::format("its library can't be loaded on this machine: {}.", error.what());
  }
}

/// Of options such as --s3.endpoint=URL and --backend s3.
std::set<std::string> named_by(const std::vector<std::string>& command)
{
  std::set<std::string> names;
  for (size_t i = 1; i < command.size(); ++i) {
    const auto option = command[i].substr(0, command[i].find('='));
    if (option == "--backend") {
      if (option.size() < command[i].size())
        names.insert(command[i].substr(option.size() + 1));
      else if (i + 1 < command.size())
        names.insert(command[i + 1]);
    } else if (const auto dot = option.find('.'); option.starts_with("--") && dot != std::string::npos) {
      names.insert(option.substr(2, dot - 2));
    }
  }
  return names;
}

bool asks_what_there_is(const std::vector<std::string>& command)
{
  return std::any_of(command.begin(), command.end(), [](const std::string& word) {
    return word == "-h" || word == "--help" || word.starts_with("--list") || word.starts_with("--describe");
  });
}
} // namespace

bool load_all_backends()
{
  const auto before = backends().size();
  for (const auto& library : own_library::names(beginning)) {
    const auto name = library.substr(beginning.size());
    if (is_registered(name))
      continue;
    if (auto problem = problem_of(name); !problem.empty())
      register_backend({name, "unavailable", {}, {}, std::move(problem), {}});
  }
  return backends().size() > before;
}

void load_backends(const std::vector<std::string>& command)
{
  if (asks_what_there_is(command)) {
    load_all_backends();
    return;
  }
  const auto there = own_library::names(beginning);
  for (const auto& name : named_by(command))
    if (!is_registered(name) && std::find(there.begin(), there.end(), beginning + name) != there.end())
      if (const auto problem = problem_of(name); !problem.empty())
        throw InputError(fmt::format("The backend '{}' can't be used: {}", name, problem));
}

std::string where_backends_are_missing()
{
  return own_library::names(beginning).empty()
             ? fmt::format(" Backends that need libraries of others are looked for in '{}', and there are none: {}.",
                           own_library::place(), own_library::how_to_have_them)
             : "";
}

} // namespace iocast
