// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/pattern.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>

namespace iocast {

/// How long a rank may wait for an answer.
struct Patience {
  double report_seconds  = 0; ///< before it says for what; 0: it never does
  double give_up_seconds = 0; ///< before the process ends; 0: it waits on
};

/// Watches a rank's operations from a thread of its own and says which one has no answer, since the rank itself can't.
/// Its price is a few stores an operation.
class Watchdog {
public:
  Watchdog(const Pattern& pattern, uint32_t rank, const Patience& patience);
  ~Watchdog();
  Watchdog(const Watchdog&)            = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The rank begins its `number`-th operation. Who sees a part of it also sees that the one before was answered.
  void begins(uint64_t number, const Op& op)
  {
    kind_.store(op.kind, std::memory_order_release);
    flags_.store(op.flags, std::memory_order_release);
    dataset_.store(op.dataset, std::memory_order_release);
    object_.store(op.object, std::memory_order_release);
    turn_.store(2 * number + 1, std::memory_order_release);
  }
  /// One that is like the one before.
  void begins(uint64_t number) { turn_.store(2 * number + 1, std::memory_order_release); }
  void answered(uint64_t number) { turn_.store(2 * number, std::memory_order_relaxed); }

private:
  void watch();
  Op operation() const;
  void report(const Op& op, double seconds, const char* what) const;

  const Pattern& pattern_;
  const uint32_t rank_;
  const Patience patience_;
  std::atomic<uint64_t> turn_{0}; ///< odd while an operation has no answer
  std::atomic<OpKind> kind_{OpKind::phase};
  std::atomic<uint8_t> flags_{0};
  std::atomic<uint64_t> dataset_{0};
  std::atomic<uint64_t> object_{0};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_; // last: it uses all of the others
};

} // namespace iocast
