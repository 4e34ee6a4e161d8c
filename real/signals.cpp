// SPDX-License-Identifier: Apache-2.0
#include "real/signals.hpp"

#include <csignal>

namespace iocast {

void catch_signals()
{
  struct sigaction action {};
  action.sa_handler = [](int) { signalled.store(true, std::memory_order_relaxed); };
  // System calls go on: an interrupted one would count as a failed operation.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN); // a service that hangs up is an error of the operation
}

} // namespace iocast
