// SPDX-License-Identifier: Apache-2.0
#include "profile/files.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace iocast {

namespace {
constexpr size_t random_digits = 16;

/// @return 0, or an errno
int write_all(int file, std::string_view text)
{
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR)
      return errno;
    done += written > 0 ? static_cast<size_t>(written) : 0;
  }
  return 0;
}

RunError cannot_write(const std::string& shown, const std::string& name, int error)
{
  return RunError(fmt::format("The file '{}/{}' can't be written: {}.", shown, name, std::strerror(error)));
}
} // namespace

FileDescriptor::~FileDescriptor()
{
  close();
}

int FileDescriptor::close()
{
  const int number = std::exchange(number_, -1);
  return number < 0 || ::close(number) == 0 ? 0 : errno;
}

std::string random_word()
{
  uint64_t word = 0;
  if (::getrandom(&word, sizeof word, 0) != sizeof word)
    throw RunError(fmt::format("The kernel gives no random numbers: {}.", std::strerror(errno)));
  return fmt::format("{:0{}x}", word, random_digits);
}

FileDescriptor make_file_in(int directory, const std::string& shown, const std::string& name)
{
  FileDescriptor file(::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file)
    throw cannot_write(shown, name, errno);
  return file;
}

void append_whole(const FileDescriptor& file, const std::string& shown, std::string_view text)
{
  const off_t before = ::lseek(file.number(), 0, SEEK_END);
  const int error    = before < 0 ? errno : write_all(file.number(), text);
  if (error == 0)
    return;
  if (before >= 0 && ::ftruncate(file.number(), before) != 0)
    throw RunError(fmt::format("The file '{}' ends within a line: {}.", shown, std::strerror(error)));
  throw RunError(fmt::format("The file '{}' can't be written: {}.", shown, std::strerror(error)));
}

void write_atomically_in(int directory, const std::string& shown, const std::string& name, std::string_view text)
{
  const auto fresh = fmt::format("{}.{}.new", name, random_word());
  auto file        = make_file_in(directory, shown, fresh);
  int error        = write_all(file.number(), text);
  if (error == 0 && ::fsync(file.number()) != 0)
    error = errno;
  const int closed = file.close();
  error            = error != 0 ? error : closed;
  if (error == 0 && ::renameat(directory, fresh.c_str(), directory, name.c_str()) != 0)
    error = errno;
  if (error == 0)
    return;
  ::unlinkat(directory, fresh.c_str(), 0);
  throw cannot_write(shown, name, error);
}

bool is_stand_in(int directory, const std::string& entry, const std::string& name)
{
  constexpr size_t ending = 4;
  if (entry.size() != name.size() + 1 + random_digits + ending || !entry.starts_with(name + ".") ||
      !(entry.ends_with(".new") || entry.ends_with(".old")) ||
      entry.find_first_not_of("0123456789abcdef", name.size() + 1) != entry.size() - ending)
    return false;
  struct stat found;
  return ::fstatat(directory, entry.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode);
}

std::string read_small_file_in(int directory, const std::string& shown, const std::string& name, size_t most)
{
  // Not blocking: a FIFO without a writer would be waited for.
  const FileDescriptor file(
      ::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file && errno == ENOENT)
    return "";
  struct stat about {};
  if (!file || ::fstat(file.number(), &about) != 0)
    throw InputError(fmt::format("The file '{}/{}' can't be read: {}.", shown, name,
                                 errno == ELOOP ? "it is a symbolic link" : std::strerror(errno)));
  if (!S_ISREG(about.st_mode))
    throw InputError(fmt::format("'{}/{}' is no regular file; iocast did not make it.", shown, name));
  std::string text;
  char some[16384];
  ssize_t got = 0;
  while (text.size() <= most && (got = ::read(file.number(), some, sizeof some)) > 0)
    text.append(some, static_cast<size_t>(got));
  if (got < 0)
    throw InputError(fmt::format("The file '{}/{}' can't be read: {}.", shown, name, std::strerror(errno)));
  if (text.size() > most)
    throw InputError(
        fmt::format("The file '{}/{}' has more than {} bytes; iocast did not make it.", shown, name, most));
  return text;
}

} // namespace iocast
