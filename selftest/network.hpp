// SPDX-License-Identifier: Apache-2.0
#pragma once
// A FUSE file system on one machine, mounted on others: the kernel's requests and the answers travel as they are over
// TCP. Each message begins with its length (fuse_in_header and fuse_out_header, linux/fuse.h), so none needs a frame.
#define FUSE_USE_VERSION 31
#include "input/error.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fuse_lowlevel.h>
#include <mutex>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace iocast {

/// Bytes of a buffer that any message fits into; the kernel's largest is 1 MiB of data and a page.
constexpr size_t largest_message = size_t{2} << 20;

inline RunError network_error(const std::string& what, const std::string& address)
{
  return RunError(fmt::format("The address {} can't be {}: {}.", address, what, std::strerror(errno)));
}

/// A socket that listens at "HOST:PORT", or is connected to it.
/// @throws InputError for another spelling, RunError where it fails
inline int socket_at(const std::string& address, bool to_listen)
{
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size())
    throw InputError(fmt::format("'{}' is no address; write HOST:PORT.", address));
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int code = getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints, &found))
    throw InputError(fmt::format("The address '{}' is unknown: {}.", address, gai_strerror(code)));
  const int one    = 1;
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const int failed = to_listen ? ::bind(socket, found->ai_addr, found->ai_addrlen) || ::listen(socket, SOMAXCONN)
                               : ::connect(socket, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  if (failed)
    throw network_error(to_listen ? "listened at" : "reached", address);
  return socket;
}

/// Sends all of it. @return -1 with errno where the other end is gone
inline ssize_t send_whole(int socket, std::vector<iovec> parts)
{
  ssize_t total = 0;
  for (size_t first = 0; first < parts.size();) {
    msghdr message{};
    message.msg_iov    = &parts[first];
    message.msg_iovlen = parts.size() - first;
    ssize_t sent       = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0)
      return -1;
    total += sent;
    for (; first < parts.size() && static_cast<size_t>(sent) >= parts[first].iov_len; ++first)
      sent -= static_cast<ssize_t>(parts[first].iov_len);
    if (first < parts.size()) {
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + sent;
      parts[first].iov_len -= static_cast<size_t>(sent);
    }
  }
  return total;
}

/// One message. @return its length; 0 where the other end has closed the connection or sends none that fits
inline ssize_t receive_message(int socket, void* buffer, size_t size)
{
  uint32_t length = 0;
  if (recv(socket, &length, sizeof length, MSG_WAITALL) != sizeof length || length < sizeof length || length > size)
    return 0;
  std::memcpy(buffer, &length, sizeof length);
  const size_t rest = length - sizeof length;
  if (rest > 0 &&
      recv(socket, static_cast<char*>(buffer) + sizeof length, rest, MSG_WAITALL) != static_cast<ssize_t>(rest))
    return 0;
  return length;
}

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 14)

/// Serves one file system to every machine that connects, until SIGTERM or SIGINT. Requests are taken one by one;
/// answers may come from other threads. A session stays when its machine has gone: answers to it may still be due.
class FuseServer {
public:
  FuseServer(const fuse_lowlevel_ops& operations, const std::string& address)
      : operations_(operations), listener_(socket_at(address, true))
  {
  }

  void run()
  {
    struct sigaction action {};
    action.sa_handler = [](int) { ends = 1; };
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    std::vector<pollfd> watched{{listener_, POLLIN, 0}};
    fuse_buf buffer{};
    while (!ends) {
      if (poll(watched.data(), watched.size(), 200) <= 0) // a signal between the test and the call waits 0.2 s
        continue;
      for (size_t i = watched.size(); i-- > 1;)
        if (watched[i].revents && !serve(sessions_[i - 1], buffer)) {
          shutdown(watched[i].fd, SHUT_RDWR);
          sessions_.erase(sessions_.begin() + static_cast<ptrdiff_t>(i - 1));
          watched.erase(watched.begin() + static_cast<ptrdiff_t>(i));
        }
      if (watched[0].revents)
        if (const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); socket >= 0) {
          sessions_.push_back(connected(operations_, socket));
          watched.push_back({socket, POLLIN, 0});
        }
    }
    free(buffer.mem);
  }

private:
  static fuse_session* connected(const fuse_lowlevel_ops& operations, int socket)
  {
    const int one = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    std::string program         = "iocast-queuefs";
    char* arguments[]           = {program.data(), nullptr};
    fuse_args given             = FUSE_ARGS_INIT(1, arguments);
    fuse_session* const session = fuse_session_new(&given, &operations, sizeof operations, nullptr);
    static const fuse_custom_io io{[](int to, iovec* parts, int count, void*) {
                                     const std::lock_guard lock(answering);
                                     return send_whole(to, {parts, parts + count});
                                   },
                                   [](int from, void* into, size_t size, void*) {
                                     if (const ssize_t length = receive_message(from, into, size))
                                       return length;
                                     errno = ENODEV; // as the kernel says that a file system was unmounted
                                     return ssize_t{-1};
                                   },
                                   nullptr, nullptr};
    if (!session || fuse_session_custom_io(session, &io, socket) != 0)
      throw RunError("A connection can't be served: libfuse makes no session.");
    return session;
  }

  /// Takes one request. @return false when the connection has ended
  static bool serve(fuse_session* session, fuse_buf& buffer)
  {
    const int received = fuse_session_receive_buf(session, &buffer);
    if (received > 0)
      fuse_session_process_buf(session, &buffer);
    return received > 0 || received == -EINTR || received == -EAGAIN;
  }

  static inline volatile sig_atomic_t ends = 0;
  static inline std::mutex answering; ///< messages of one connection must not mix

  fuse_lowlevel_ops operations_;
  int listener_;
  std::vector<fuse_session*> sessions_; ///< of `watched`, without the listener
};

#else

/// libfuse before 3.14 has no sessions over other connections than the kernel's.
class FuseServer {
public:
  FuseServer(const fuse_lowlevel_ops&, const std::string&)
  {
    throw RunError("This iocast-queuefs can't serve other machines; build it with libfuse 3.14 or later.");
  }
  void run() {}
};

#endif

/// Mounts here what a FuseServer at `address` serves, until it is unmounted or the server has gone. Root only.
inline void mount_from(const std::string& address, const std::string& mountpoint)
{
  const int socket = socket_at(address, false);
  const int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0)
    throw RunError(fmt::format("/dev/fuse can't be opened: {}.", std::strerror(errno)));
  const auto options = fmt::format("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device);
  if (mount("iocast-queuefs", mountpoint.c_str(), "fuse.iocast", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    throw RunError(fmt::format("The file system at {} can't be mounted at '{}': {}. Only root can.", address,
                               mountpoint, std::strerror(errno)));
  std::thread([=] {
    std::vector<char> answer(largest_message);
    while (const ssize_t length = receive_message(socket, answer.data(), answer.size()))
      if (write(device, answer.data(), static_cast<size_t>(length)) < 0 && errno == ENODEV)
        break; // unmounted; any other error is of a request that was interrupted
    umount2(mountpoint.c_str(), MNT_DETACH);
    _exit(0);
  }).detach();
  std::vector<char> request(largest_message);
  for (;;) {
    const ssize_t length = read(device, request.data(), request.size());
    if (length < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT))
      continue;
    if (length <= 0 || send_whole(socket, {{request.data(), static_cast<size_t>(length)}}) < 0)
      break;
  }
}

} // namespace iocast
