// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/// The system calls of timed operations that the C library makes points of cancellation: in a process with threads, and
/// MPI has some, that takes 10 to 20 ns more of each, which are not the file system's. Nobody cancels a thread here, so
/// they go to the kernel directly, unless somebody stands between (LD_PRELOAD or GOTCHA: Darshan, file systems in user
/// space): then through the C library, so that these see all that they came for.
///
/// Results and errno are those of the functions of the same names.
namespace iocast::system_calls {

/// Whether the kernel is called directly: where no other library has taken the place of the C library's functions.
extern const bool direct;

inline int openat(int directory, const char* path, int flags, mode_t mode = 0)
{
  return direct ? static_cast<int>(::syscall(SYS_openat, directory, path, flags, mode))
                : ::openat(directory, path, flags, mode);
}

inline int close(int file)
{
  return direct ? static_cast<int>(::syscall(SYS_close, file)) : ::close(file);
}

inline ssize_t read(int file, void* to, size_t bytes)
{
  return direct ? ::syscall(SYS_read, file, to, bytes) : ::read(file, to, bytes);
}

inline ssize_t write(int file, const void* from, size_t bytes)
{
  return direct ? ::syscall(SYS_write, file, from, bytes) : ::write(file, from, bytes);
}

inline ssize_t pread(int file, void* to, size_t bytes, off_t at)
{
  return direct ? ::syscall(SYS_pread64, file, to, bytes, at) : ::pread(file, to, bytes, at);
}

inline ssize_t pwrite(int file, const void* from, size_t bytes, off_t at)
{
  return direct ? ::syscall(SYS_pwrite64, file, from, bytes, at) : ::pwrite(file, from, bytes, at);
}

} // namespace iocast::system_calls
