// SPDX-License-Identifier: Apache-2.0
//
// The floor under iocast-bench: the system calls of a workload for one rank, in the same order, with the same names,
// sizes and offsets, all known before the clock runs, and timed by phase and nothing else. Usage:
//
//   bare-loop [--without-mpi] [--time-stamps] ROOT WORKLOAD [NAME=VALUE...]
//
// With --time-stamps it reads the processor's time stamp counter (where there is none, the clock) before and after each
// operation and keeps nothing of it: less, no benchmark of single operations can do.
//
// prints one JSON array with the name and the seconds of each phase. It is an MPI program, as any benchmark of many
// nodes has to be: the kernel counts references to files in a process with threads, and MPI has some.
#include "real/buffer.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <fcntl.h>
#include <map>
#include <mpi.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace iocast;

double now()
{
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

int64_t ticks()
{
#ifdef __x86_64__
  return static_cast<int64_t>(__builtin_ia32_rdtsc());
#else
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
#endif
}

struct Call {
  Op op;
  size_t name;   ///< where its path begins in the names
  uint32_t slot; ///< of the object that is open
};

struct Plan {
  std::vector<Call> calls;
  std::vector<char> names;
  size_t largest = 0; ///< bytes of one call
};

Plan plan_of(const Pattern& pattern)
{
  Plan plan;
  Cursor cursor;
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> open;
  std::vector<uint32_t> free;
  for (uint32_t slot = 64; slot-- > 0;)
    free.push_back(slot);
  char name[512];
  for (Op op; pattern.next(cursor, op);) {
    Call call{op, plan.names.size(), 0};
    if (op.kind == OpKind::open) {
      call.slot = open[{op.dataset, op.object}] = free.back();
      free.pop_back();
    } else if (op.kind > OpKind::open && op.kind != OpKind::think) {
      call.slot = open.at({op.dataset, op.object});
      if (op.kind == OpKind::close) {
        open.erase({op.dataset, op.object});
        free.push_back(call.slot);
      }
    }
    if (op.kind != OpKind::phase && op.kind <= OpKind::open) {
      char* end = pattern.name_dataset(op.dataset, name);
      const bool on_dataset =
          op.kind == OpKind::mkdir || op.kind == OpKind::rmdir || op.kind == OpKind::readdir || (op.flags & whole);
      if (!on_dataset) {
        *end++ = '/';
        end    = pattern.name_object_in(op.dataset, op.object, end);
      }
      *end++ = '\0';
      plan.names.insert(plan.names.end(), name, end);
    }
    plan.largest = std::max<size_t>(plan.largest, op.kind == OpKind::think || op.kind == OpKind::readdir ? 0 : op.size);
    plan.calls.push_back(call);
  }
  return plan;
}

/// What is written, and what is read into: in whole pages, as in the benchmark, since the kernel copies 1 KiB to an
/// address in the middle of a cache line in 50 ns more.
struct Memory {
  Buffer sent, received;
};

bool transfer(int fd, const Op& op, bool writes, Memory& memory)
{
  for (uint32_t block = 0; block < op.count; ++block) {
    const auto at = static_cast<off_t>(op.offset + block * op.stride);
    const auto moved =
        writes ? pwrite(fd, memory.sent.data(), op.size, at) : pread(fd, memory.received.data(), op.size, at);
    if (moved != static_cast<ssize_t>(op.size))
      return false;
  }
  return true;
}

bool in_one_go(int root, const char* path, int access, uint64_t size, Memory& memory)
{
  const int fd = openat(root, path, access | O_CLOEXEC, 0666);
  if (fd < 0)
    return false;
  constexpr uint64_t chunk = uint64_t{1} << 20;
  for (uint64_t done = 0; done < size; done += chunk) {
    const size_t bytes = std::min(chunk, size - done);
    const auto moved =
        access == O_RDONLY ? read(fd, memory.received.data(), bytes) : write(fd, memory.sent.data(), bytes);
    if (moved != static_cast<ssize_t>(bytes))
      return false;
  }
  return close(fd) == 0;
}

bool list(int root, const char* path)
{
  alignas(8) static char entries[1 << 15];
  const int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return false;
  while (syscall(SYS_getdents64, fd, entries, sizeof entries) > 0)
    ;
  return close(fd) == 0;
}

template <bool stamps> int run(const char* place, const Pattern& pattern)
{
  const int root = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) {
    std::fprintf(stderr, "bare-loop: The directory '%s' can't be opened: %s.\n", place, std::strerror(errno));
    return 1;
  }
  const Plan plan = plan_of(pattern);
  Memory memory;
  memory.sent.reserve(std::max<size_t>(plan.largest, 1));
  memory.sent.fill_random(0, 0);
  memory.received.reserve(std::max<size_t>(plan.largest, 1));
  std::vector<int> files(64, -1);
  std::vector<std::pair<uint64_t, double>> begins;
  for (const auto& [op, name, slot] : plan.calls) {
    const char* path = plan.names.data() + name;
    struct stat found;
    bool good = true;
    volatile int64_t stamp;
    if constexpr (stamps)
      stamp = ticks();
    switch (op.kind) {
      case OpKind::phase:
        begins.emplace_back(op.object, now());
        break;
      case OpKind::mkdir:
        good = mkdirat(root, path, 0777) == 0;
        break;
      case OpKind::rmdir:
        good = unlinkat(root, path, AT_REMOVEDIR) == 0;
        break;
      case OpKind::unlink:
        good = unlinkat(root, path, 0) == 0;
        break;
      case OpKind::stat:
        good = fstatat(root, path, &found, AT_SYMLINK_NOFOLLOW) == 0;
        break;
      case OpKind::create:
        good = in_one_go(root, path, O_WRONLY | O_CREAT | O_TRUNC, op.size, memory);
        break;
      case OpKind::append:
        good = in_one_go(root, path, O_WRONLY | O_APPEND, op.size, memory);
        break;
      case OpKind::read:
        good = in_one_go(root, path, O_RDONLY, op.size, memory);
        break;
      case OpKind::readdir:
        good = list(root, path);
        break;
      case OpKind::open:
        files[slot] =
            openat(root, path,
                   (op.flags & for_writing ? O_RDWR : O_RDONLY) | (op.flags & make_it ? O_CREAT : 0) | O_CLOEXEC, 0666);
        good = files[slot] >= 0;
        break;
      case OpKind::pwrite:
        good = transfer(files[slot], op, true, memory);
        break;
      case OpKind::pread:
        good = transfer(files[slot], op, false, memory);
        break;
      case OpKind::fsync:
        good = fsync(files[slot]) == 0;
        break;
      case OpKind::close:
        good = close(files[slot]) == 0;
        break;
      case OpKind::think:
        break;
    }
    if constexpr (stamps)
      stamp = ticks();
    if (!good) {
      std::fprintf(stderr, "bare-loop: %.*s '%s' failed: %s.\n", static_cast<int>(name_of(op.kind).size()),
                   name_of(op.kind).data(), path, std::strerror(errno));
      return 1;
    }
  }
  begins.emplace_back(0, now());
  for (size_t i = 0; i + 1 < begins.size(); ++i)
    std::printf("%s{\"name\": \"%s\", \"seconds\": %.9f}", i ? ", " : "[",
                pattern.phases()[begins[i].first].name.c_str(), begins[i + 1].second - begins[i].second);
  std::printf("]\n");
  return 0;
}

} // namespace

int main(int argc, char** argv)
{
  const auto given = [&](const char* option) {
    if (argc < 2 || std::strcmp(argv[1], option) != 0)
      return false;
    --argc;
    ++argv;
    return true;
  };
  const bool without_mpi = given("--without-mpi");
  const bool stamps      = given("--time-stamps");
  if (argc < 3) {
    std::fprintf(stderr, "usage: bare-loop [--without-mpi] [--time-stamps] ROOT WORKLOAD [NAME=VALUE...]\n");
    return 2;
  }
  if (!without_mpi)
    MPI_Init(nullptr, nullptr);
  int status = 2;
  try {
    const auto pattern = open_workload(argv[2], {argv + 3, argv + argc}).make({1, 1});
    status             = stamps ? run<true>(argv[1], *pattern) : run<false>(argv[1], *pattern);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bare-loop: %s\n", error.what());
  }
  if (!without_mpi)
    MPI_Finalize();
  return status;
}
