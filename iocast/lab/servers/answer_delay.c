/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a server: each answer to a client waits IOCAST_ANSWER_DELAY seconds before it is sent. Who sends it
 * is busy meanwhile, as with work of that length. Answers of one byte, as of a handshake, do not wait. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { smallest = 2 };

ssize_t send(int socket, const void* buffer, size_t size, int flags)
{
  static ssize_t (*next)(int, const void*, size_t, int);
  static double delay = -1;
  if (!next)
    next = (ssize_t (*)(int, const void*, size_t, int))dlsym(RTLD_NEXT, "send");
  if (delay < 0) {
    const char* text = getenv("IOCAST_ANSWER_DELAY");
    delay            = text ? atof(text) : 0;
    prctl(PR_SET_TIMERSLACK, 1UL); /* else the kernel wakes it up to 50 us late */
  }
  if (size >= smallest && delay > 0) {
    struct timespec rest = {(time_t)delay, (long)((delay - (double)(time_t)delay) * 1e9)};
    while (nanosleep(&rest, &rest) != 0)
      ;
  }
  return next(socket, buffer, size, flags);
}
