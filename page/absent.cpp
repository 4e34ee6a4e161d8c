// SPDX-License-Identifier: Apache-2.0
//
// What a run directory is written with and pages lack, which write none: zlib, two calls of Linux, and HDF5.
#include "input/error.hpp"
#include "profile/histogram.hpp"
#include "workload/ops_file.hpp"

#include <cerrno>
#include <sys/types.h>
#include <unistd.h>

namespace iocast {

/// In place of profile/histogram_log.cpp.
std::string Histogram::encode() const
{
  throw RunError("This build has no zlib, which latency.hlog is compressed with; leave out --out.");
}

/// In place of workload/ops_file.cpp.
namespace ops_file {

void require()
{
  throw InputError("A page has no HDF5, in which traces are kept; use iocast-sim for them.");
}

Chunk pack(const std::vector<Row>&)
{
  require();
  return {};
}

std::unique_ptr<Writer> new_file(const std::string&, const Index&, const nlohmann::ordered_json&)
{
  require();
  return nullptr;
}

std::unique_ptr<Reader> open_file(const std::string&)
{
  require();
  return nullptr;
}

} // namespace ops_file
} // namespace iocast

extern "C" {

int fallocate(int, int, off_t, off_t)
{
  errno = EOPNOTSUPP;
  return -1;
}

ssize_t getrandom(void* bytes, size_t count, unsigned)
{
  return getentropy(bytes, count) == 0 ? static_cast<ssize_t>(count) : -1;
}
}
