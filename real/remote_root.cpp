// SPDX-License-Identifier: Apache-2.0
#include "real/remote_root.hpp"

#include "input/error.hpp"
#include "profile/files.hpp"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/stat.h>

namespace iocast {

namespace {
/// What a process that was killed may have left: half a manifest, and a claim that was moved away to be replaced.
bool is_left_over(const std::string& name)
{
  for (const std::string_view of : {manifest_name, claim_name})
    if (name.starts_with(std::string(of) + ".") && (name.ends_with(".new") || name.ends_with(".old")))
      return true;
  return false;
}

std::string fresh_name()
{
  return fmt::format("{}.{}.new", manifest_name, random_word());
}
} // namespace

bool is_itself_or_parent(std::string_view name)
{
  return name == "." || name == "..";
}

bool RemoteRoot::empty()
{
  for (const auto& name : list("."))
    if (name != manifest_name && name != claim_name && !is_left_over(name))
      return false;
  return true;
}

void RemoteRoot::check_writable()
{
  const auto fresh = fresh_name();
  if (const int error = make_file(fresh.c_str()); error != 0)
    throw InputError(fmt::format("{} can't be written to: {}.", place(), std::strerror(error)));
  remove_file(fresh.c_str());
}

std::string RemoteRoot::read_manifest()
{
  return read_small(manifest_name).value_or("");
}

void RemoteRoot::write_manifest(const std::string& text)
{
  const auto fresh = fresh_name();
  int error        = write_fresh(fresh.c_str(), text);
  if (error == 0 && (error = move_file(fresh.c_str(), manifest_name)) != 0)
    remove_file(fresh.c_str());
  if (error != 0)
    throw RunError(fmt::format("The manifest of {} can't be written: {}.", lower_place(), std::strerror(error)));
}

void RemoteRoot::remove_manifest()
{
  for (const auto& name : list("."))
    if (is_left_over(name) && is_regular(name.c_str()))
      remove_file(name.c_str());
  if (const int error = remove_file(manifest_name); error != 0 && error != ENOENT)
    throw RunError(fmt::format("The manifest of {} can't be removed: {}.", lower_place(), std::strerror(error)));
}

std::optional<std::string> RemoteRoot::read_claim()
{
  return read_small(claim_name);
}

bool RemoteRoot::make_claim(const std::string& text)
{
  const int error = write_fresh(claim_name, text);
  if (error != 0 && error != EEXIST)
    throw InputError(fmt::format("{} can't be written to: {}.", place(), std::strerror(error)));
  return error == 0;
}

/// Of those who want to replace it one moves it away, and looks what it got.
bool RemoteRoot::replace_claim(const std::string& found, const std::string& text)
{
  const auto away = fmt::format("{}.{}.old", claim_name, random_word());
  if (const int error = move_file(claim_name, away.c_str()); error != 0)
    return error == ENOENT && make_claim(text);
  const bool right = read_small(away.c_str()) == found;
  if (!right)
    link_file(away.c_str(), claim_name);
  remove_file(away.c_str());
  return right && make_claim(text);
}

/// In place: it never isn't there.
bool RemoteRoot::renew_claim(const std::string& mine, const std::string& text)
{
  return read_claim() == mine && write_text(claim_name, text) == 0;
}

void RemoteRoot::remove_claim(const std::string& mine)
{
  if (read_claim() == mine)
    remove_file(claim_name);
}

std::vector<std::string> RemoteRoot::list(const std::string& dataset)
{
  std::vector<std::string> names;
  Attributes found;
  int error = look_at(dataset.c_str(), found);
  if (error == 0 && !S_ISDIR(found.mode)) // a link may lead to what isn't ours
    error = ENOTDIR;
  if (error == 0)
    error = for_names_in(dataset.c_str(), [&](const char* name) { names.emplace_back(name); });
  if (error != 0 && error != ENOENT)
    throw RunError(fmt::format("'{}' in {} can't be listed: {}.", dataset, lower_place(), std::strerror(error)));
  return names;
}

/// The content of a regular file; nothing when there is none of that name. @throws InputError when it is anything else
std::optional<std::string> RemoteRoot::read_small(const char* name)
{
  Attributes found;
  std::string text;
  int error = look_at(name, found);
  if (error == 0 && (!S_ISREG(found.mode) || found.size > most_manifest))
    throw InputError(fmt::format("'{}' in {} is no regular file of at most {} bytes; iocast did not make it.", name,
                                 lower_place(), most_manifest));
  if (error == 0)
    error = read_text(name, text);
  if (error == ENOENT)
    return std::nullopt;
  if (error != 0)
    throw InputError(fmt::format("'{}' in {} can't be read: {}.", name, lower_place(), std::strerror(error)));
  return text;
}

/// A file that was not there. @return 0, or an errno, and then none of its own
int RemoteRoot::write_fresh(const char* name, const std::string& text)
{
  if (const int error = make_file(name); error != 0)
    return error;
  const int error = write_text(name, text);
  if (error != 0)
    remove_file(name);
  return error;
}

bool RemoteRoot::is_regular(const char* name)
{
  Attributes found;
  return look_at(name, found) == 0 && S_ISREG(found.mode);
}

} // namespace iocast
