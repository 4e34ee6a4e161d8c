// SPDX-License-Identifier: Apache-2.0
//
// Preloaded: the INJECT_AFTER-th time that a file of a dataset is made, openat fails with the error number INJECT_ERRNO.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_at(int directory, const char* path, int flags, int mode)
{
  static long made = 0;
  if ((flags & O_CREAT) && path[0] != '/' && strchr(path, '/') && ++made == atol(getenv("INJECT_AFTER"))) {
    errno = atoi(getenv("INJECT_ERRNO"));
    return -1;
  }
  return (int)syscall(SYS_openat, directory, path, flags, mode);
}

#define REPLACED(name)                                                                                                           \
  int name(int directory, const char* path, int flags, ...)                                                                      \
  {                                                                                                                              \
    va_list rest;                                                                                                                \
    va_start(rest, flags);                                                                                                       \
    const int mode = flags & O_CREAT ? va_arg(rest, int) : 0;                                                                    \
    va_end(rest);                                                                                                                \
    return open_at(directory, path, flags, mode);                                                                                \
  }
REPLACED(openat)
REPLACED(openat64)
