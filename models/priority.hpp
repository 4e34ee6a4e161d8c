// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/job.hpp"

#include <vector>

namespace iocast {

/// Who waits for an instance of a station that serves some classes of work before others: first come, first served
/// within each.
class ClassQueues {
public:
  explicit ClassQueues(size_t classes) : classes_(classes) {}

  uint32_t length() const { return length_; }
  void push_back(JobId job, size_t of)
  {
    classes_[of].push_back(job);
    ++length_;
  }
  /// The first of the first class that waits, or nobody.
  [[gnu::noinline]] JobId pop_front()
  {
    for (auto& waiting : classes_)
      if (const JobId job = waiting.pop_front(); job != nobody) {
        --length_;
        return job;
      }
    return nobody;
  }

private:
  std::vector<LongQueue> classes_;
  uint32_t length_ = 0;
};

} // namespace iocast
