// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/job.hpp"

namespace iocast {

/// A counting semaphore with a queue: requests in flight of a mount or node, threads of a pool.
class Limit {
public:
  /// True when a slot was free; otherwise the job waits and will be returned by a release().
  bool acquire(Links& links, JobId job, uint32_t slots)
  {
    if (used_ < slots) {
      ++used_;
      return true;
    }
    waiting_.push_back(links, job);
    return false;
  }
  /// The job that gets the slot now, or nobody: who waits longest, or the last comer.
  JobId release(Links& links, bool to_last = false)
  {
    const JobId next = to_last ? waiting_.pop_back(links) : waiting_.pop_front(links);
    if (next == nobody)
      --used_;
    return next;
  }
  JobId front() const { return waiting_.front(); }
  uint32_t used() const { return used_; }

private:
  uint32_t used_ = 0;
  JobQueue waiting_;
};

} // namespace iocast
