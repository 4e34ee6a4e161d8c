// SPDX-License-Identifier: Apache-2.0
#include "real/backend.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace iocast {

namespace {
std::vector<BackendEntry>& registry()
{
  static std::vector<BackendEntry> entries;
  return entries;
}
} // namespace

std::string error_text(int error)
{
  return error == short_transfer ? "short read or write" : std::strerror(error);
}

bool register_backend(BackendEntry entry)
{
  auto& entries = registry();
  entries.insert(std::upper_bound(entries.begin(), entries.end(), entry,
                                  [](const auto& a, const auto& b) { return a.name < b.name; }),
                 std::move(entry));
  return true;
}

const std::vector<BackendEntry>& backends()
{
  return registry();
}

const BackendEntry& backend_named(const std::string& name)
{
  std::vector<std::string> names;
  for (const auto& entry : registry()) {
    if (entry.name == name)
      return entry;
    names.push_back(entry.name);
  }
  throw InputError(fmt::format("There is no backend '{}'. {}", name, allowed_sentence(name, names)));
}

} // namespace iocast
