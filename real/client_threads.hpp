// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace iocast {

/// A phase of the clients of one rank, side by side: the first in the rank's own thread, the only one that speaks MPI,
/// each of the others in one of its own.
class ClientThreads {
public:
  /// Prepares each client in its thread, and returns when all are ready.
  /// @throws RunError when the system gives no more threads, and whatever `prepare` throws
  ClientThreads(size_t count, const std::function<void(size_t client)>& prepare,
                std::function<void(size_t client, int64_t start_ns)> work);
  ~ClientThreads();
  ClientThreads(const ClientThreads&)            = delete;
  ClientThreads& operator=(const ClientThreads&) = delete;

  /// Tells all but the first when to start work: they sleep until then.
  void start_at(int64_t start_ns);
  /// The first one's work, then waits for that of the others, asleep; calls `meanwhile` between naps.
  void work(const std::function<void()>& meanwhile);

private:
  void keep_failure();
  void release();

  std::function<void(size_t, int64_t)> work_;
  std::atomic<int64_t> start_ns_{0}; ///< 0: wait; below: there will be no work
  std::atomic<size_t> prepared_{0};
  std::atomic<size_t> done_{0};
  std::mutex mutex_;
  std::exception_ptr failure_; ///< the first of a thread
  std::vector<std::thread> threads_;
};

} // namespace iocast
