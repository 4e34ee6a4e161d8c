// SPDX-License-Identifier: Apache-2.0
#include "real/posix_root.hpp"

#include "input/error.hpp"
#include "input/units.hpp"
#include "profile/files.hpp"
#include "real/filesystem.hpp"
#include "real/own_directory.hpp"
#include "real/system_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace iocast {

namespace {
constexpr size_t most_claim = 65536;
/// Environment variable of everything that a campaign starts (MARK in iocast/campaign/places.py).
constexpr const char* campaign_mark = "IOCAST_CAMPAIGN";
/// What a run of an earlier version that was killed may have left beside its manifest.
constexpr const char* left_by_earlier[] = {"iocast.manifest.json.new", "iocast.manifest.json.claim"};

std::string host_name()
{
  char name[256]{};
  ::gethostname(name, sizeof name - 1);
  return name;
}

bool is_regular(int directory, const char* name)
{
  struct stat found;
  return ::fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode);
}

/// What killed runs have left beside manifest and claim.
bool is_left_over(int directory, const std::string& name)
{
  if (is_stand_in(directory, name, manifest_name) || is_stand_in(directory, name, claim_name))
    return true;
  return std::find(std::begin(left_by_earlier), std::end(left_by_earlier), name) != std::end(left_by_earlier) &&
         is_regular(directory, name.c_str());
}

bool is_itself_or_parent(const char* name)
{
  return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}
} // namespace

PosixRoot::PosixRoot(const std::string& root, std::string option, uint32_t rank) : option_(std::move(option))
{
  std::error_code ignored;
  if (root.find(',') == std::string::npos || fs::exists(root, ignored)) {
    ways_.push_back(root);
  } else {
    std::istringstream names(root);
    for (std::string name; std::getline(names, name, ',');)
      ways_.push_back(name);
  }
  root_ = ways_[rank % ways_.size()];
}

void PosixRoot::connect()
{
  if (root_.empty())
    throw InputError(fmt::format("The backend needs a directory to work in; name it with {} DIR.", option_));
  // A campaign has made this directory, at a path without links; any other one is as the user named it.
  const bool of_campaign = std::getenv(campaign_mark) != nullptr;
  root_fd_               = of_campaign ? open_without_links(root_)
                                       : FileDescriptor(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root_fd_) {
    require_own(root_fd(), place(), !of_campaign);
    return;
  }
  if (errno == ENOENT)
    throw InputError(fmt::format("The directory '{}' does not exist; make it first.", root_));
  if (errno == ENOTDIR)
    throw InputError(fmt::format("'{}' is not a directory; {} takes one.", root_, option_));
  throw InputError(fmt::format("The directory '{}' can't be opened: {}.", root_, std::strerror(errno)));
}

int PosixRoot::mkdir(const Name& name)
{
  return ::mkdirat(root_fd(), name.dataset(), 0755) == 0 ? 0 : failed(errno); // nobody else puts links into it
}

int PosixRoot::stat(const Name& name, uint64_t& size)
{
  struct stat found;
  if (::fstatat(root_fd(), name.path(), &found, AT_SYMLINK_NOFOLLOW) != 0)
    return failed(errno);
  size = static_cast<uint64_t>(found.st_size);
  return 0;
}

int PosixRoot::unlink(const Name& name)
{
  return ::unlinkat(root_fd(), name.path(), 0) == 0 ? 0 : failed(errno);
}

int PosixRoot::remove_left(const Name& name)
{
  if (const std::string dataset = name.dataset(); dataset != left_in_) {
    left_       = FileDescriptor(::openat(root_fd(), dataset.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    left_error_ = left_ ? 0 : errno;
    left_in_    = dataset;
  }
  if (!left_)
    return failed(left_error_);
  return ::unlinkat(left_.number(), name.object(), 0) == 0 ? 0 : failed(errno);
}

int PosixRoot::rmdir(const Name& name)
{
  return ::unlinkat(root_fd(), name.dataset(), AT_REMOVEDIR) == 0 ? 0 : failed(errno);
}

// The calls that opendir and readdir make, without their memory.
int PosixRoot::readdir(const Name& name, uint64_t& entries)
{
  const int fd = system_calls::openat(root_fd(), name.dataset(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return failed(errno);
  alignas(dirent64) char some[32768];
  entries     = 0;
  ssize_t got = 0;
  while ((got = ::getdents64(fd, some, sizeof some)) > 0)
    for (ssize_t at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(some + at);
      entries += !is_itself_or_parent(entry->d_name);
      at += entry->d_reclen;
    }
  const int error = got < 0 ? errno : 0;
  system_calls::close(fd);
  return error == 0 ? 0 : failed(error);
}

std::string PosixRoot::place() const
{
  return fmt::format("The directory '{}'", root_);
}

bool PosixRoot::empty()
{
  // A fresh ext4 comes with lost+found; a run that was killed may have left more than the manifest itself.
  for (const auto& name : list("."))
    if (name != manifest_name && name != claim_name && name != "lost+found" && !is_left_over(root_fd(), name))
      return false;
  return true;
}

void PosixRoot::check_writable()
{
  if (::faccessat(root_fd(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    throw InputError(fmt::format("{} can't be written to: {}.", place(), std::strerror(errno)));
}

std::string PosixRoot::lacks_room(const Footprint& footprint)
{
  struct statvfs room;
  if (::fstatvfs(root_fd(), &room) != 0)
    throw RunError(fmt::format("{} gives no answer on its free space: {}.", place(), std::strerror(errno)));
  uint64_t datasets = 0;
  for (const auto& [kind, count] : footprint.operations)
    datasets += kind == OpKind::mkdir ? count : 0;
  // A last block that is partly filled costs a whole one, and a directory at least one. Where blocks are larger than
  // this, as with CephFS and GPFS, files take parts of them.
  constexpr double largest_block = 65536;
  const double block             = static_cast<double>(room.f_frsize);
  const double blocks            = static_cast<double>(footprint.peak_objects + datasets);
  const double needed            = static_cast<double>(footprint.peak_bytes) + std::min(block, largest_block) * blocks;
  const double free              = block * static_cast<double>(room.f_bavail);
  if (needed > free)
    return fmt::format("{} has {} free, but the workload needs up to {}; use smaller or fewer objects.", place(),
                       format_size(free), format_size(needed));
  // File systems that make inodes as needed say 0.
  if (const uint64_t inodes = footprint.peak_objects + datasets; room.f_files > 0 && inodes > room.f_favail)
    return fmt::format("{} has {} inodes free, but the workload needs up to {}; use fewer objects.", place(),
                       room.f_favail, inodes);
  return "";
}

std::optional<double> PosixRoot::free_bytes()
{
  struct statvfs room;
  if (::fstatvfs(root_fd(), &room) != 0)
    return std::nullopt;
  return static_cast<double>(room.f_frsize) * static_cast<double>(room.f_bavail);
}

void PosixRoot::check_outside(const std::string& option, const std::string& directory)
{
  std::error_code ignored;
  const auto inside = fs::weakly_canonical(fs::absolute(directory, ignored), ignored);
  for (const auto& way : ways_) {
    const auto root = fs::canonical(way, ignored);
    if (std::mismatch(root.begin(), root.end(), inside.begin(), inside.end()).first == root.end())
      throw InputError(fmt::format("{} '{}' lies in {} '{}', which must hold nothing but the data; choose another "
                                   "place.",
                                   option, directory, option_, way));
  }
}

std::string PosixRoot::read_manifest()
{
  return read_small_file_in(root_fd(), root_, manifest_name, most_manifest);
}

void PosixRoot::write_manifest(const std::string& text)
{
  write_atomically_in(root_fd(), root_, manifest_name, text);
}

std::optional<std::string> PosixRoot::read_claim()
{
  auto text = read_small_file_in(root_fd(), root_, claim_name, most_claim);
  return text.empty() && !is_regular(root_fd(), claim_name) ? std::nullopt : std::optional(std::move(text));
}

bool PosixRoot::make_claim(const std::string& text)
{
  FileDescriptor file(::openat(root_fd(), claim_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file && errno == EEXIST)
    return false;
  if (!file)
    throw InputError(fmt::format("{} can't be written to: {}.", place(), std::strerror(errno)));
  try {
    append_whole(file, root_ + "/" + claim_name, text);
    if (const int error = file.close(); error != 0)
      throw RunError(fmt::format("The file '{}/{}' can't be written: {}.", root_, claim_name, std::strerror(error)));
  } catch (const RunError&) {
    ::unlinkat(root_fd(), claim_name, 0); // an empty claim would be taken for another run's
    throw;
  }
  return true;
}

bool PosixRoot::replace_claim(const std::string& found, const std::string& text)
{
  // Of those who want to replace it one moves it away, and looks what it got.
  const auto away = fmt::format("{}.{}.old", claim_name, random_word());
  if (::renameat(root_fd(), claim_name, root_fd(), away.c_str()) != 0)
    return errno == ENOENT && make_claim(text);
  if (read_small_file_in(root_fd(), root_, away, most_claim) != found) {
    if (::linkat(root_fd(), away.c_str(), root_fd(), claim_name, 0) == 0 || errno == EEXIST)
      ::unlinkat(root_fd(), away.c_str(), 0);
    return false;
  }
  ::unlinkat(root_fd(), away.c_str(), 0);
  return make_claim(text);
}

bool PosixRoot::renew_claim(const std::string& mine, const std::string& text)
{
  if (read_claim() != mine)
    return false;
  // In place: it never isn't there. Nothing stays open, which NFS would keep under another name when it is removed.
  FileDescriptor file(::openat(root_fd(), claim_name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file || ::pwrite(file.number(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::ftruncate(file.number(), static_cast<off_t>(text.size())) != 0 || file.close() != 0)
    throw RunError(fmt::format("The file '{}/{}' can't be written.", root_, claim_name));
  return true;
}

void PosixRoot::remove_claim(const std::string& mine)
{
  if (read_claim() == mine && ::unlinkat(root_fd(), claim_name, 0) != 0 && errno != ENOENT)
    throw RunError(fmt::format("The file '{}/{}' can't be removed ({}); the same command with --sweep removes it.",
                               root_, claim_name, std::strerror(errno)));
}

void PosixRoot::check_claim_is_seen(const std::string& text)
{
  for (const auto& way : ways_) {
    const FileDescriptor opened(::open(way.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const int directory = way == root_ ? root_fd() : opened.number();
    // A client of a network file system may believe for a moment what it knew before.
    bool seen = false;
    for (int tries = 0; directory >= 0 && !seen && tries < 50; ++tries) {
      if (tries > 0)
        ::usleep(100'000);
      seen = read_small_file_in(directory, way, claim_name, most_claim) == text;
    }
    if (seen)
      continue;
    if (ways_.size() > 1)
      throw InputError(fmt::format("{} takes several directories only if they are one directory of one file system, "
                                   "mounted several times; '{}' is not '{}': what is "
                                   "written through one is not seen through the other.",
                                   option_, way, ways_.front()));
    throw InputError(fmt::format("The directory '{}' on host '{}' is not that of the first rank: what is written there "
                                 "is not seen here. {} takes a directory that all nodes share.",
                                 way, host_name(), option_));
  }
}

void PosixRoot::remove_manifest()
{
  for (const auto& left : list("."))
    if (is_left_over(root_fd(), left))
      ::unlinkat(root_fd(), left.c_str(), 0);
  if (::unlinkat(root_fd(), manifest_name, 0) != 0 && errno != ENOENT)
    throw RunError(
        fmt::format("The manifest '{}/{}' can't be removed: {}.", root_, manifest_name, std::strerror(errno)));
}

std::vector<std::string> PosixRoot::list(const std::string& dataset)
{
  const int fd = ::openat(root_fd(), dataset.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR* stream  = fd >= 0 ? ::fdopendir(fd) : nullptr;
  if (!stream && errno == ENOENT)
    return {};
  if (!stream)
    throw RunError(fmt::format("The directory '{}/{}' can't be listed: {}.", root_, dataset, std::strerror(errno)));
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream))
    if (!is_itself_or_parent(entry->d_name))
      names.emplace_back(entry->d_name);
  ::closedir(stream);
  return names;
}

nlohmann::ordered_json PosixRoot::environment()
{
  nlohmann::ordered_json json{{"filesystem", filesystem_of(root_)}};
  if (ways_.size() > 1)
    for (const auto& way : ways_)
      json["mounts"].push_back(filesystem_of(way));
  return json;
}

int PosixRoot::failed(int error) const
{
  struct stat root;
  if (error == ENOENT && ::fstat(root_fd(), &root) == 0 && root.st_nlink == 0)
    throw RunError(fmt::format("{} was removed while the run was in it.", place()));
  for (const int fatal : {ENOSPC, EDQUOT, EROFS, ESTALE, ENOTCONN, ESHUTDOWN, EMFILE, ENFILE})
    if (error == fatal)
      throw RunError(fmt::format("{} can't be used any longer: {}.", place(), std::strerror(error)));
  return error;
}

} // namespace iocast
