// SPDX-License-Identifier: Apache-2.0
//
// posix: files in directories below one root, through plain system calls.
#include "input/error.hpp"
#include "real/posix_root.hpp"
#include "real/system_calls.hpp"
#include "real/transfer_memory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace iocast {
namespace {

/// Of every file that is opened. A link in the place of an object is somebody else's: what it leads to stays untouched.
constexpr int never_through_links = O_CLOEXEC | O_NOFOLLOW;
/// Whole objects of any size pass through a buffer of this size.
constexpr size_t chunk = size_t{1} << 20;

class Posix final : public PosixRoot {
public:
  Posix(const Parameters& given, const Client& client)
      : PosixRoot(given.text("root"), "--posix.root", client.rank)
      , direct_(given.flag("direct") ? O_DIRECT : 0)
      , memory_(client)
  {
    memory_.reserve(chunk);
    files_.fill(-1);
  }

  ~Posix() override
  {
    for (const int fd : files_)
      if (fd >= 0)
        ::close(fd);
  }

  int create(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    return write_whole(name, O_WRONLY | O_CREAT | O_TRUNC, size, watch);
  }

  int append(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    return write_whole(name, O_WRONLY | O_APPEND, size, watch);
  }

  // Opened for reading only: md-workbench's O_RDWR asks Lustre and GPFS for write locks.
  int read(const Name& name, uint64_t size, Stopwatch& watch) override
  {
    const int fd = system_calls::openat(root_fd(), name.path(), O_RDONLY | never_through_links | direct_);
    watch.lap();
    if (fd < 0)
      return refused(errno);
    for (uint64_t done = 0; done < size;) {
      const size_t wanted = std::min<uint64_t>(size - done, chunk);
      const ssize_t got   = system_calls::read(fd, memory_.received(done), wanted);
      if (got != static_cast<ssize_t>(wanted))
        return give_up(fd, got < 0 ? errno : short_transfer);
      done += wanted;
    }
    watch.lap();
    const int closed = system_calls::close(fd);
    watch.lap();
    return closed == 0 ? 0 : failed(errno);
  }

  int open(const Name& name, uint8_t flags, Slot slot) override
  {
    const int access = (flags & for_writing ? O_RDWR : O_RDONLY) | (flags & make_it ? O_CREAT : 0);
    files_[slot]     = system_calls::openat(root_fd(), name.path(), access | never_through_links | direct_, 0666);
    return files_[slot] >= 0 ? 0 : refused(errno);
  }

  int pwrite(Slot slot, const Op& op) override
  {
    return transfer(op, [&](uint64_t block, uint64_t done, off_t at) {
      return system_calls::pwrite(files_[slot], memory_.sent(block * op.size) + done, op.size - done, at);
    });
  }

  int pread(Slot slot, const Op& op) override
  {
    return transfer(op, [&](uint64_t block, uint64_t done, off_t at) {
      return system_calls::pread(files_[slot], memory_.received(block * op.size) + done, op.size - done, at);
    });
  }

  int fsync(Slot slot) override { return ::fsync(files_[slot]) == 0 ? 0 : failed(errno); }

  int close(Slot slot) override
  {
    const int closed = system_calls::close(files_[slot]);
    files_[slot]     = -1;
    return closed == 0 ? 0 : failed(errno);
  }

  void prepare(Slot, const Op& op) override { memory_.prepare(op, op.size); }
  void reserve(uint64_t bytes) override { memory_.reserve(bytes); }
  const char* fetched() const override { return memory_.received(); }

private:
  int write_whole(const Name& name, int access, uint64_t size, Stopwatch& watch)
  {
    const int fd = system_calls::openat(root_fd(), name.path(), access | never_through_links | direct_, 0666);
    watch.lap();
    if (fd < 0)
      return refused(errno);
    for (uint64_t done = 0; done < size;) {
      const size_t wanted   = std::min<uint64_t>(size - done, chunk);
      const ssize_t written = system_calls::write(fd, memory_.sent(done), wanted);
      if (written != static_cast<ssize_t>(wanted))
        return give_up(fd, written < 0 ? errno : short_transfer);
      done += wanted;
    }
    watch.lap();
    const int closed = system_calls::close(fd);
    watch.lap();
    return closed == 0 ? 0 : failed(errno);
  }

  /// Block by block. `call(block, done, at)` moves what a block still lacks after `done` bytes; one that moves less is
  /// followed by another, which then says why.
  template <class Call> int transfer(const Op& op, Call call)
  {
    for (uint32_t block = 0; block < op.count; ++block)
      for (uint64_t done = 0; done < op.size;) {
        const ssize_t moved = call(block, done, static_cast<off_t>(op.offset + block * op.stride + done));
        if (moved <= 0)
          return moved == 0 ? short_transfer : refused(errno);
        done += static_cast<uint64_t>(moved);
      }
    return 0;
  }

  int give_up(int fd, int error)
  {
    ::close(fd);
    return refused(error);
  }

  /// What O_DIRECT refuses, it refuses every time.
  int refused(int error) const
  {
    if (error == EINVAL && direct_)
      throw RunError(fmt::format("The file system of '{}' refuses an access past its cache: with --posix.direct, sizes "
                                 "and offsets must be multiples of its blocks "
                                 "(mostly 512 or 4096 bytes), and the file system must know O_DIRECT. Set the "
                                 "workload's sizes so, or leave the option out.",
                                 root()));
    return failed(error);
  }

  int direct_; ///< O_DIRECT, or nothing
  std::array<int, most_open> files_;
  TransferMemory memory_;
};

const bool registered = register_backend(
    {"posix",
     "files in directories below one root, through plain system calls",
     {{"root", Unit::text, "",
       "the directory to work in; it exists and is empty; A,B,C: it is mounted thrice, and rank r goes through the (r "
       "mod 3)th"},
      {"direct", Unit::flag, "false",
       "open files with O_DIRECT: past the page cache, in sizes that are multiples of the file system's blocks"}},
     {},
     "",
     [](const Parameters& given, const Client& client) { return std::make_unique<Posix>(given, client); }});

} // namespace
} // namespace iocast
