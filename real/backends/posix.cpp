// SPDX-License-Identifier: Apache-2.0
//
// posix: files in directories below one root, through plain system calls. Every path is relative to a descriptor of the
// root ("<dataset>/<object>"): the kernel doesn't walk the root's path again for each call.
#include "input/error.hpp"
#include "profile/run_directory.hpp"
#include "real/backend.hpp"
#include "real/filesystem.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace iocast {
namespace {

constexpr auto manifest_name = "iocast.manifest.json";
/// Objects of any size pass through a buffer of this size.
constexpr size_t chunk = size_t{1} << 20;

class Posix final : public Backend {
public:
  Posix(const Parameters& given, const Client& client) : root_(given.text("root")), sent_(chunk), received_(chunk)
  {
    // Random bytes, so that no file system makes them smaller.
    for (size_t at = 0; at < chunk; at += 16) {
      const auto words = random_words(client.seed, Stream::content, client.rank, at / 16);
      std::memcpy(sent_.data() + at, words.data(), 16);
    }
  }

  ~Posix() override
  {
    if (root_fd_ >= 0)
      ::close(root_fd_);
  }

  void open() override
  {
    if (root_.empty())
      throw InputError("The posix backend needs a directory to work in; name it with --posix.root DIR.");
    root_fd_ = ::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd_ >= 0)
      return;
    if (errno == ENOENT)
      throw InputError(fmt::format("The directory '{}' does not exist; make it first.", root_));
    if (errno == ENOTDIR)
      throw InputError(fmt::format("'{}' is not a directory; --posix.root takes one.", root_));
    throw InputError(fmt::format("The directory '{}' can't be opened: {}.", root_, std::strerror(errno)));
  }

  int mkdir(const Name& name) override { return ::mkdirat(root_fd_, name.dataset(), 0777) == 0 ? 0 : failed(errno); }

  int create(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    const int fd = ::openat(root_fd_, name.path(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    watch.lap();
    if (fd < 0)
      return failed(errno);
    for (uint64_t left = size; left > 0;) {
      const size_t wanted   = std::min<uint64_t>(left, chunk);
      const ssize_t written = ::write(fd, sent_.data(), wanted);
      if (written != static_cast<ssize_t>(wanted))
        return give_up(fd, written < 0 ? errno : short_transfer);
      left -= wanted;
    }
    watch.lap();
    const int closed = ::close(fd);
    watch.lap();
    return closed == 0 ? 0 : failed(errno);
  }

  int stat(const Name& name) override
  {
    struct stat found;
    return ::fstatat(root_fd_, name.path(), &found, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : failed(errno);
  }

  // Opened for reading only: md-workbench's O_RDWR asks Lustre and GPFS for write locks.
  int read(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    const int fd = ::openat(root_fd_, name.path(), O_RDONLY | O_CLOEXEC);
    watch.lap();
    if (fd < 0)
      return failed(errno);
    for (uint64_t left = size; left > 0;) {
      const size_t wanted = std::min<uint64_t>(left, chunk);
      const ssize_t got   = ::read(fd, received_.data(), wanted);
      if (got != static_cast<ssize_t>(wanted))
        return give_up(fd, got < 0 ? errno : short_transfer);
      left -= wanted;
    }
    watch.lap();
    const int closed = ::close(fd);
    watch.lap();
    return closed == 0 ? 0 : failed(errno);
  }

  int unlink(const Name& name) override { return ::unlinkat(root_fd_, name.path(), 0) == 0 ? 0 : failed(errno); }

  int rmdir(const Name& name) override
  {
    return ::unlinkat(root_fd_, name.dataset(), AT_REMOVEDIR) == 0 ? 0 : failed(errno);
  }

  bool keeps_data() const override { return true; }
  std::string place() const override { return fmt::format("The directory '{}'", root_); }

  bool empty() override
  {
    // A fresh ext4 comes with lost+found.
    for (const auto& name : names_in("."))
      if (name != manifest_name && name != "lost+found")
        return false;
    return true;
  }

  void check_room(const Footprint& footprint) override
  {
    if (::faccessat(root_fd_, ".", W_OK | X_OK, AT_EACCESS) != 0)
      throw InputError(fmt::format("{} can't be written to: {}.", place(), std::strerror(errno)));
    struct statvfs room;
    if (::fstatvfs(root_fd_, &room) != 0)
      throw RunError(fmt::format("{} can't be asked how much it holds: {}.", place(), std::strerror(errno)));
    uint64_t datasets = 0;
    for (const auto& [kind, count] : footprint.operations)
      datasets += kind == OpKind::mkdir ? count : 0;
    // A last block that is partly filled costs a whole one, and a directory at least one.
    const double block  = static_cast<double>(room.f_frsize);
    const double blocks = static_cast<double>(footprint.peak_objects + datasets);
    const double needed = static_cast<double>(footprint.peak_bytes) + block * blocks;
    const double free   = block * static_cast<double>(room.f_bavail);
    if (needed > free)
      throw InputError(fmt::format("{} has {:.1f} MiB free, but the workload needs up to {:.1f} MiB; use smaller or fewer "
                                   "objects.",
                                   place(), free / (1 << 20), needed / (1 << 20)));
    // File systems that make inodes as needed say 0.
    if (const uint64_t inodes = footprint.peak_objects + datasets; room.f_files > 0 && inodes > room.f_favail)
      throw InputError(fmt::format("{} has {} inodes free, but the workload needs up to {}; use fewer objects.", place(),
                                   room.f_favail, inodes));
  }

  void check_outside(const std::string& option, const std::string& directory) override
  {
    std::error_code ignored;
    const auto inside = fs::weakly_canonical(fs::absolute(directory, ignored), ignored);
    const auto root   = fs::canonical(root_, ignored);
    if (std::mismatch(root.begin(), root.end(), inside.begin(), inside.end()).first == root.end())
      throw InputError(fmt::format("{} '{}' lies in --posix.root '{}', which must hold nothing but the data; choose another "
                                   "place.",
                                   option, directory, root_));
  }

  std::string read_manifest() override
  {
    std::ifstream in(manifest_path());
    std::ostringstream text;
    if (!in && fs::exists(manifest_path()))
      throw InputError(fmt::format("The manifest '{}' can't be read: {}.", manifest_path(), std::strerror(errno)));
    if (in)
      text << in.rdbuf();
    return text.str();
  }

  void write_manifest(const std::string& text) override { write_atomically(manifest_path(), text); }

  void remove_manifest() override
  {
    if (::unlinkat(root_fd_, manifest_name, 0) != 0 && errno != ENOENT)
      throw RunError(fmt::format("The manifest '{}' can't be removed: {}.", manifest_path(), std::strerror(errno)));
  }

  std::vector<std::string> list(const std::string& dataset) override { return names_in(dataset.c_str()); }

  nlohmann::ordered_json environment() override { return {{"filesystem", filesystem_of(root_)}}; }

private:
  std::string manifest_path() const { return root_ + "/" + manifest_name; }

  std::vector<std::string> names_in(const char* directory)
  {
    const int fd = ::openat(root_fd_, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR* stream  = fd >= 0 ? ::fdopendir(fd) : nullptr;
    if (!stream && errno == ENOENT)
      return {};
    if (!stream)
      throw RunError(fmt::format("The directory '{}/{}' can't be listed: {}.", root_, directory, std::strerror(errno)));
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(stream))
      if (const std::string name = entry->d_name; name != "." && name != "..")
        names.push_back(name);
    ::closedir(stream);
    return names;
  }

  int give_up(int fd, int error)
  {
    ::close(fd);
    return failed(error);
  }

  /// Passes the error on, unless every later operation would fail too.
  int failed(int error)
  {
    struct stat root;
    if (error == ENOENT && ::fstat(root_fd_, &root) == 0 && root.st_nlink == 0)
      throw RunError(fmt::format("{} was removed while the run was in it.", place()));
    for (const int fatal : {ENOSPC, EDQUOT, EROFS, ESTALE, ENOTCONN, ESHUTDOWN, EMFILE, ENFILE})
      if (error == fatal)
        throw RunError(fmt::format("{} can't be used any longer: {}.", place(), std::strerror(error)));
    return error;
  }

  std::string root_;
  int root_fd_ = -1;
  std::vector<char> sent_;
  std::vector<char> received_;
};

const bool registered = register_backend({"posix",
                                          "files in directories below one root, through plain system calls",
                                          {{"root", Unit::text, "", "the directory to work in; it exists and is empty"}},
                                          {},
                                          "",
                                          [](const Parameters& given, const Client& client) {
                                            return std::make_unique<Posix>(given, client);
                                          }});

} // namespace
} // namespace iocast
