// SPDX-License-Identifier: Apache-2.0
#include "real/system_calls.hpp"

#include <dlfcn.h>
#include <initializer_list>
#include <string_view>

namespace iocast::system_calls {

namespace {
/// The file that the function comes from which this program calls.
std::string_view origin(void* function)
{
  Dl_info found{};
  return dladdr(function, &found) != 0 && found.dli_fname ? found.dli_fname : "";
}

bool all_of_c_library()
{
  // A 32-bit kernel takes offsets in two halves, and its off_t may be short.
  if constexpr (sizeof(long) < 8)
    return false;
  const auto library = origin(reinterpret_cast<void*>(&::syscall));
  for (void* function :
       {reinterpret_cast<void*>(static_cast<int (*)(int, const char*, int, ...)>(&::openat)),
        reinterpret_cast<void*>(&::close), reinterpret_cast<void*>(&::read), reinterpret_cast<void*>(&::write),
        reinterpret_cast<void*>(&::pread), reinterpret_cast<void*>(&::pwrite)})
    if (origin(function) != library)
      return false;
  return !library.empty();
}
} // namespace

const bool direct = all_of_c_library();

} // namespace iocast::system_calls
