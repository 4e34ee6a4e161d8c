/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a server: each answer to a client takes IOCAST_ANSWER_DELAY seconds before it is sent. Who sends it
 * is busy meanwhile, as with work of that length. With IOCAST_ANSWER_THREADS that is the most answers of the process
 * that take their time at once; others wait, in the order in which they were ready. What has fewer bytes than
 * IOCAST_ANSWER_SMALLEST is no answer (a handshake), and neither is what does not come from the server's port
 * IOCAST_ANSWER_PORT, where that is given. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { most_threads = 1024 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int64_t delay; /* nanoseconds, as all times here */
static int threads;   /* 0: as many as send */
static size_t smallest;
static int port; /* 0: any */
static int64_t free_from[most_threads];

static double given(const char* name)
{
  const char* text = getenv(name);
  return text ? atof(text) : 0;
}

static void configure(void)
{
  delay    = (int64_t)(given("IOCAST_ANSWER_DELAY") * 1e9);
  threads  = (int)given("IOCAST_ANSWER_THREADS");
  threads  = threads > most_threads ? most_threads : threads;
  smallest = (size_t)given("IOCAST_ANSWER_SMALLEST");
  port     = (int)given("IOCAST_ANSWER_PORT");
}

static int comes_from_port(int socket)
{
  struct sockaddr_storage own = {0};
  socklen_t size              = sizeof own;
  if (getsockname(socket, (struct sockaddr*)&own, &size) != 0)
    return 0;
  return (own.ss_family == AF_INET && ((struct sockaddr_in*)&own)->sin_port == htons((uint16_t)port)) ||
         (own.ss_family == AF_INET6 && ((struct sockaddr_in6*)&own)->sin6_port == htons((uint16_t)port));
}

/* When an answer that is ready now may go: after its time with the thread that is free first. */
static int64_t end_of_service(void)
{
  struct timespec clock;
  pthread_mutex_lock(&turn);
  clock_gettime(CLOCK_MONOTONIC, &clock);
  int64_t begin = clock.tv_sec * 1000000000LL + clock.tv_nsec;
  int first     = 0;
  for (int i = 1; i < threads; ++i)
    first = free_from[i] < free_from[first] ? i : first;
  if (threads > 0) {
    begin            = free_from[first] > begin ? free_from[first] : begin;
    free_from[first] = begin + delay;
  }
  pthread_mutex_unlock(&turn);
  return begin + delay;
}

static void serve(int socket, size_t size)
{
  pthread_once(&once, configure);
  if (size < smallest || delay <= 0 || (port && !comes_from_port(socket)))
    return;
  const int64_t end          = end_of_service();
  const struct timespec when = {end / 1000000000, end % 1000000000};
  prctl(PR_SET_TIMERSLACK, 1UL); /* else the kernel wakes it up to 50 us late */
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) != 0)
    ;
}

ssize_t send(int socket, const void* buffer, size_t size, int flags)
{
  ssize_t (*next)(int, const void*, size_t, int) =
      (ssize_t (*)(int, const void*, size_t, int))dlsym(RTLD_NEXT, "send");
  serve(socket, size);
  return next(socket, buffer, size, flags);
}

ssize_t sendmsg(int socket, const struct msghdr* message, int flags)
{
  ssize_t (*next)(int, const struct msghdr*, int) =
      (ssize_t (*)(int, const struct msghdr*, int))dlsym(RTLD_NEXT, "sendmsg");
  size_t size = 0;
  for (size_t i = 0; i < message->msg_iovlen; ++i)
    size += message->msg_iov[i].iov_len;
  serve(socket, size);
  return next(socket, message, flags);
}
