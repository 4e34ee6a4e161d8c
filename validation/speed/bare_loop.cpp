// SPDX-License-Identifier: Apache-2.0
//
// The floor under iocast-bench: the system calls of md-workbench for one rank, in the same order, with the same names and
// sizes, written as directly as a good engineer would, and timed as a whole. Usage:
//
//   bare-loop ROOT DATASETS OBJECTS ITERATIONS SIZE REPEATS
//
// prints one JSON object with the seconds of each phase, benchmark once for each repeat.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace {

double now()
{
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

[[noreturn]] void fail(const char* what, const char* name)
{
  std::fprintf(stderr, "bare-loop: %s '%s' failed: %s.\n", what, name, std::strerror(errno));
  std::exit(1);
}

char name[64];

/// "0_<dataset>/file-<object>"
const char* object_name(uint64_t dataset, uint64_t object)
{
  char* end = std::to_chars(name + 2, name + 22, dataset).ptr;
  std::memcpy(end, "/file-", 6);
  *std::to_chars(end + 6, end + 26, object).ptr = '\0';
  return name;
}

const char* dataset_name(uint64_t dataset)
{
  *std::to_chars(name + 2, name + 22, dataset).ptr = '\0';
  return name;
}

void create(int root, const char* path, const std::vector<char>& content)
{
  const int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0 || write(fd, content.data(), content.size()) != static_cast<ssize_t>(content.size()) || close(fd) != 0)
    fail("creating", path);
}

void read_back(int root, const char* path, std::vector<char>& buffer)
{
  const int fd = openat(root, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, buffer.data(), buffer.size()) != static_cast<ssize_t>(buffer.size()) || close(fd) != 0)
    fail("reading", path);
}

} // namespace

int main(int argc, char** argv)
{
  if (argc != 7) {
    std::fprintf(stderr, "usage: bare-loop ROOT DATASETS OBJECTS ITERATIONS SIZE REPEATS\n");
    return 2;
  }
  const int root            = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const uint64_t datasets   = std::strtoull(argv[2], nullptr, 10);
  const uint64_t objects    = std::strtoull(argv[3], nullptr, 10);
  const uint64_t iterations = std::strtoull(argv[4], nullptr, 10);
  const uint64_t size       = std::strtoull(argv[5], nullptr, 10);
  const uint64_t repeats    = std::strtoull(argv[6], nullptr, 10);
  if (root < 0)
    fail("opening", argv[1]);
  const std::vector<char> content(size, 'x');
  std::vector<char> buffer(size);
  name[0] = '0';
  name[1] = '_';

  const double begin = now();
  for (uint64_t d = 0; d < datasets; ++d)
    if (mkdirat(root, dataset_name(d), 0777) != 0)
      fail("making", name);
  for (uint64_t i = 0; i < objects; ++i)
    for (uint64_t d = 0; d < datasets; ++d)
      create(root, object_name(d, i), content);

  std::vector<double> ends{now()};
  for (uint64_t repeat = 0; repeat < repeats; ++repeat) {
    for (uint64_t i = repeat * iterations; i < (repeat + 1) * iterations; ++i)
      for (uint64_t d = 0; d < datasets; ++d) {
        const char* path = object_name(d, i);
        struct stat found;
        if (fstatat(root, path, &found, AT_SYMLINK_NOFOLLOW) != 0)
          fail("looking at", path);
        read_back(root, path, buffer);
        if (unlinkat(root, path, 0) != 0)
          fail("removing", path);
        create(root, object_name(d, objects + i), content);
      }
    ends.push_back(now());
  }

  for (uint64_t d = 0; d < datasets; ++d) {
    for (uint64_t i = repeats * iterations; i < repeats * iterations + objects; ++i)
      if (unlinkat(root, object_name(d, i), 0) != 0)
        fail("removing", name);
    if (unlinkat(root, dataset_name(d), AT_REMOVEDIR) != 0)
      fail("removing", name);
  }
  const double cleaned = now();
  std::printf("{\"precreate\": [%.9f], \"benchmark\": [", ends.front() - begin);
  for (uint64_t repeat = 0; repeat < repeats; ++repeat)
    std::printf("%s%.9f", repeat ? ", " : "", ends[repeat + 1] - ends[repeat]);
  std::printf("], \"cleanup\": [%.9f]}\n", cleaned - ends.back());
  return 0;
}
