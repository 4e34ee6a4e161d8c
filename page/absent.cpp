// SPDX-License-Identifier: Apache-2.0
//
// What a run directory is written with and pages lack, which write none: zlib, and two calls of Linux.
#include "input/error.hpp"
#include "profile/histogram.hpp"

#include <cerrno>
#include <sys/types.h>
#include <unistd.h>

namespace iocast {

/// In place of profile/histogram_log.cpp.
std::string Histogram::encode() const
{
  throw RunError("This build has no zlib, which latency.hlog is compressed with; leave out --out.");
}

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
