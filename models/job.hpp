// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/op.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace iocast {

using JobId              = uint32_t;
constexpr JobId nobody   = UINT32_MAX;

/// One request on its way through the platform. A client has one job, which it uses again for each of its operations; work of
/// others has jobs numbered after the clients'.
struct Job {
  JobId next = nobody; ///< behind it in the one queue that it can be in
  uint16_t at = 0;     ///< step of the route
  OpKind kind = OpKind::phase;
  uint8_t parts_done = 0;
  bool in_timeslice  = false; ///< a visit to a timeslice station is going on
  bool locked        = false;
  uint8_t draws      = 0;      ///< random words used by this operation
  uint32_t instance  = 0;      ///< of the station being visited
  uint32_t core      = nobody; ///< instance number of the timeslice station whose server it holds
  std::array<uint32_t, 4> words{};
  double since     = 0; ///< start of what it is doing: waiting, being stalled, ...
  double asked     = 0; ///< start of the visit
  double work      = 0; ///< service that the visit asked for, seconds at speed 1
  double demand    = 0; ///< what of it is still to get
  double slice_end = 0;
  double piece_end = 0; ///< timeslice: when the present stretch of work ends; an event for another time is stale
  float pace       = 1; ///< timeslice: speed of that stretch
};

using Jobs = std::vector<Job>;

/// First come, first served, linked through Job::next.
class JobQueue {
public:
  bool empty() const { return head_ == nobody; }
  uint32_t length() const { return length_; }
  void push_back(Jobs& jobs, JobId job)
  {
    ++length_;
    jobs[job].next = nobody;
    if (head_ == nobody)
      head_ = job;
    else
      jobs[tail_].next = job;
    tail_ = job;
  }
  void push_front(Jobs& jobs, JobId job)
  {
    ++length_;
    jobs[job].next = head_;
    if (head_ == nobody)
      tail_ = job;
    head_ = job;
  }
  JobId pop_front(Jobs& jobs)
  {
    const JobId job = head_;
    if (job != nobody) {
      --length_;
      head_ = jobs[job].next;
      if (head_ != nobody)
        __builtin_prefetch(&jobs[head_]);
    }
    return job;
  }

private:
  JobId head_      = nobody;
  JobId tail_      = nobody;
  uint32_t length_ = 0;
};

} // namespace iocast
