// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>

namespace iocast {

inline std::atomic<bool> signalled = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

/// Lets SIGINT and SIGTERM end the timed loop after the current operation; a second signal kills.
void catch_signals();

inline bool stop_requested()
{
  return signalled.load(std::memory_order_relaxed);
}

} // namespace iocast
