// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/job.hpp"

namespace iocast {

/// A counting semaphore with a first-come-first-served queue: requests in flight of a mount or node, threads of a pool.
class Limit {
public:
  /// True when a slot was free; otherwise the job waits and will be returned by a release().
  bool acquire(Jobs& jobs, JobId job, uint32_t slots)
  {
    if (used_ < slots) {
      ++used_;
      return true;
    }
    waiting_.push_back(jobs, job);
    return false;
  }
  /// The job that gets the slot now, or nobody.
  JobId release(Jobs& jobs)
  {
    const JobId next = waiting_.pop_front(jobs);
    if (next == nobody)
      --used_;
    return next;
  }
  uint32_t used() const { return used_; }

private:
  uint32_t used_ = 0;
  JobQueue waiting_;
};

} // namespace iocast
