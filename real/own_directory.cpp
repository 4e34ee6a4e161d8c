// SPDX-License-Identifier: Apache-2.0
#include "real/own_directory.hpp"

#include "input/error.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace iocast {

namespace {
constexpr int directory_only = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

/// The user that files of this process have in the directory. A file system may know this user, or root, under another
/// number, so a file is made to see it.
uid_t user_of_files_in(int directory)
{
  const auto name = fmt::format(".iocast.{}", random_word());
  const FileDescriptor file(
      ::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat found {};
  const uid_t user = file && ::fstat(file.number(), &found) == 0 ? found.st_uid : ::geteuid();
  if (file)
    ::unlinkat(directory, name.c_str(), 0);
  return user;
}

/// Kernels before 5.6 have no openat2.
FileDescriptor open_step_by_step(const std::string& path)
{
  FileDescriptor at(::open(path.starts_with('/') ? "/" : ".", directory_only));
  std::istringstream steps(path);
  for (std::string step; at && std::getline(steps, step, '/');)
    if (!step.empty())
      at = FileDescriptor(::openat(at.number(), step.c_str(), directory_only | O_NOFOLLOW));
  return at;
}
} // namespace

FileDescriptor open_without_links(const std::string& path)
{
  open_how how{};
  how.flags   = directory_only;
  how.resolve = RESOLVE_NO_SYMLINKS;
  FileDescriptor found(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
  return found || (errno != ENOSYS && errno != EPERM) ? std::move(found) : open_step_by_step(path);
}

void require_own(int directory, const std::string& shown, bool of_root)
{
  struct stat about {};
  if (::fstat(directory, &about) != 0)
    return; // whatever it is, the next call meets it
  const bool trusted = about.st_uid == ::geteuid() || (of_root && about.st_uid == 0);
  require_own(about.st_uid, about.st_gid, about.st_mode, trusted ? about.st_uid : user_of_files_in(directory), shown,
              of_root);
}

void require_own(uid_t owner, gid_t group, mode_t mode, uid_t own, const std::string& shown, bool of_root)
{
  if (owner != own && !(of_root && owner == 0))
    throw InputError(fmt::format("{} belongs to the user with the number {}, and files of this run to {}; who owns a "
                                 "directory can put links to other data into it. Name one of your own.",
                                 shown, owner, own));
  // A group of the same number as the user is the user's alone, as most systems set them up.
  const bool of_many = mode & S_IWOTH || (mode & S_IWGRP && group != owner);
  if (of_many && !(mode & S_ISVTX))
    throw InputError(fmt::format("{} can be written to by other users, who could put links to other data into it. Take "
                                 "that from them (chmod go-w), or name a directory of your own.",
                                 shown));
}

} // namespace iocast
