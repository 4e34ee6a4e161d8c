// SPDX-License-Identifier: Apache-2.0
#include "real/backend.hpp"

#include "input/error.hpp"
#include "real/backend_libraries.hpp"

#include <algorithm>
#include <cerrno>
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
  switch (error) {
    case short_transfer:
      return "short read or write";
    case wrong_entries:
      return "other than the expected number of entries";
    case wrong_size:
      return "other than the expected size";
    case wrong_content:
      return "other bytes than were written";
    default:
      return std::strerror(error);
  }
}

int Backend::append(const Name&, uint64_t, Stopwatch&)
{
  return EOPNOTSUPP;
}

int Backend::readdir(const Name&, uint64_t&)
{
  return EOPNOTSUPP;
}

int Backend::open(const Name&, uint8_t, Slot)
{
  return EOPNOTSUPP;
}

int Backend::pwrite(Slot, const Op&)
{
  return EOPNOTSUPP;
}

int Backend::pread(Slot, const Op&)
{
  return EOPNOTSUPP;
}

int Backend::fsync(Slot)
{
  return EOPNOTSUPP;
}

int Backend::close(Slot)
{
  return EOPNOTSUPP;
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
  if (std::none_of(registry().begin(), registry().end(), [&](const auto& entry) { return entry.name == name; }))
    load_all_backends(); // any may be the nearest
  std::vector<std::string> names;
  for (const auto& entry : registry()) {
    if (entry.name == name)
      return entry;
    names.push_back(entry.name);
  }
  throw InputError(
      fmt::format("There is no backend '{}'. {}{}", name, allowed_sentence(name, names), where_backends_are_missing()));
}

} // namespace iocast
