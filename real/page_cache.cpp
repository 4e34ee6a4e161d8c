// SPDX-License-Identifier: Apache-2.0
#include "real/page_cache.hpp"

#include "input/error.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace iocast {

namespace {
constexpr auto control = "/proc/sys/vm/drop_caches";
}

void check_may_drop_caches()
{
  const int fd = ::open(control, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    throw InputError(fmt::format(
        "--drop-caches can't write to {}: {}. Run as root, or use a working set larger than the memory of the nodes.",
        control, std::strerror(errno)));
  ::close(fd);
}

void drop_caches()
{
  ::sync();
  const int fd    = ::open(control, O_WRONLY | O_CLOEXEC);
  const bool done = fd >= 0 && ::write(fd, "3\n", 2) == 2;
  const int error = errno;
  if (fd >= 0)
    ::close(fd);
  if (!done)
    throw RunError(fmt::format("The kernel's caches can't be dropped: {}.", std::strerror(error)));
}

} // namespace iocast
