// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <functional>
#include <mutex>
#include <queue>
#include <sys/prctl.h>
#include <thread>
#include <vector>

namespace iocast {

/// Seconds of the monotonic clock.
inline double now_seconds()
{
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Gives answers when they are due, from a thread of its own.
class Answers {
public:
  using Answer = std::function<void()>;

  Answers() : thread_([this] { run(); }) {}

  ~Answers() { end(); }

  /// Gives all that are still due at once; none may follow.
  void end()
  {
    if (!thread_.joinable())
      return;
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void at(double due, Answer answer)
  {
    {
      const std::lock_guard lock(mutex_);
      due_.push({due, order_++, std::move(answer)});
    }
    changed_.notify_one();
  }

private:
  struct Due {
    double at;
    uint64_t order;
    Answer answer;
    bool operator<(const Due& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  void run()
  {
    prctl(PR_SET_TIMERSLACK, 1); // else the kernel wakes it up to 50 us late
    std::unique_lock lock(mutex_);
    while (!ends_ || !due_.empty()) {
      if (due_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const double wait = due_.top().at - now_seconds();
      if (wait > 0 && !ends_) {
        changed_.wait_for(lock, std::chrono::duration<double>(wait));
        continue;
      }
      const Answer answer = due_.top().answer;
      due_.pop();
      lock.unlock();
      answer();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Due> due_;
  uint64_t order_ = 0;
  bool ends_      = false;
  std::thread thread_; // last: it uses all the others
};

} // namespace iocast
