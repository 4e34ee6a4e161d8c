// SPDX-License-Identifier: Apache-2.0
//
// Preloaded: the INJECT_AFTER-th call of the kind INJECT_CALL fails with the error number INJECT_ERRNO. Kinds are
// `create` (a file of a dataset is made), `rmdir` (of a dataset) and `rename` (of a manifest). With `clock` nothing
// fails, but from that call on the wall clock is an hour behind. With `drift` the monotonic clock is 2 % fast. With
// `threads` MPI says that only one thread may call it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long call_number(const char* kind)
{
  static atomic_long calls;
  return strcmp(getenv("INJECT_CALL"), kind) == 0 ? ++calls : 0;
}

static int fails(const char* kind)
{
  if (call_number(kind) != atol(getenv("INJECT_AFTER")))
    return 0;
  errno = atoi(getenv("INJECT_ERRNO"));
  return 1;
}

static int open_at(int directory, const char* path, int flags, int mode)
{
  if ((flags & O_CREAT) && path[0] != '/' && strchr(path, '/') && fails("create"))
    return -1;
  return (int)syscall(SYS_openat, directory, path, flags, mode);
}

#define REPLACED(name)                                                                                                 \
  int name(int directory, const char* path, int flags, ...)                                                            \
  {                                                                                                                    \
    va_list rest;                                                                                                      \
    va_start(rest, flags);                                                                                             \
    const int mode = flags & O_CREAT ? va_arg(rest, int) : 0;                                                          \
    va_end(rest);                                                                                                      \
    return open_at(directory, path, flags, mode);                                                                      \
  }
REPLACED(openat)
REPLACED(openat64)

int unlinkat(int directory, const char* path, int flags)
{
  if ((flags & AT_REMOVEDIR) && fails("rmdir"))
    return -1;
  return (int)syscall(SYS_unlinkat, directory, path, flags);
}

static atomic_int begun; // MPI has: what launchers and MPI's start do with the clock is theirs

int MPI_Init_thread(int* count, char*** arguments, int required, int* provided)
{
  int (*const genuine)(int*, char***, int, int*) =
      (int (*)(int*, char***, int, int*))dlsym(RTLD_NEXT, "MPI_Init_thread");
  const int result = genuine(count, arguments, required, provided);
  begun            = 1;
  return result;
}

int MPI_Query_thread(int* provided)
{
  int (*const genuine)(int*) = (int (*)(int*))dlsym(RTLD_NEXT, "MPI_Query_thread");
  const int result           = genuine(provided);
  if (call_number("threads") > 0)
    *provided = 1; // MPI_THREAD_FUNNELED of MPI's ABI, Open MPI and MPICH
  return result;
}

int renameat(int from_directory, const char* from, int to_directory, const char* to)
{
  if (strstr(to, "iocast.manifest.json") && fails("rename"))
    return -1;
  return (int)syscall(SYS_renameat, from_directory, from, to_directory, to);
}

static const long drift = 50; // a second of each 50

static long long ns_of(const struct timespec* time)
{
  return time->tv_sec * 1000000000LL + time->tv_nsec;
}

/// The genuine time at which the first reading was taken, or 0 where the clock does not drift.
static long long drifts_since(long long now)
{
  static atomic_llong first;
  const char* kind = getenv("INJECT_CALL");
  if (!kind || strcmp(kind, "drift") != 0)
    return 0;
  long long none = 0;
  atomic_compare_exchange_strong(&first, &none, now);
  return first;
}

static void set_ns(struct timespec* time, long long ns)
{
  time->tv_sec  = ns / 1000000000;
  time->tv_nsec = ns % 1000000000;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec* time, struct timespec* left)
{
  struct timespec moment = *time, now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  const long long since = drifts_since(ns_of(&now));
  if (since && clock == CLOCK_MONOTONIC && (flags & TIMER_ABSTIME))
    set_ns(&moment, since + (ns_of(time) - since) * drift / (drift + 1));
  return syscall(SYS_clock_nanosleep, clock, flags, &moment, left) ? errno : 0;
}

int clock_gettime(clockid_t clock, struct timespec* now)
{
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_MONOTONIC) {
    const long long ns = ns_of(now), since = drifts_since(ns);
    if (since)
      set_ns(now, ns + (ns - since) / drift);
    return result;
  }
  if (clock == CLOCK_REALTIME && begun && call_number("clock") >= atol(getenv("INJECT_AFTER")))
    now->tv_sec -= 3600;
  return result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone)
{
  struct timespec exact;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec  = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* kept)
{
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (kept)
    *kept = exact.tv_sec;
  return exact.tv_sec;
}
