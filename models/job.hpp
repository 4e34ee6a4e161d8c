// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/op.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace iocast {

using JobId              = uint32_t;
constexpr JobId nobody   = UINT32_MAX;

/// One request on its way through the platform: what its present visit needs, in one cache line. A client has one job, which it
/// uses again for each of its operations; work of others has jobs numbered after the clients'.
struct alignas(64) Job {
  uint32_t instance  = 0;      ///< of the station being visited
  uint16_t at        = 0;      ///< step of the route
  OpKind kind        = OpKind::phase;
  uint8_t parts_done = 0;
  uint8_t draws      = 0; ///< random words used by this operation
  bool locked        = false;
  bool in_timeslice  = false; ///< a visit to a timeslice station is going on
  std::array<uint32_t, 4> words{};
  double since  = 0; ///< start of what it is doing: waiting, being stalled, ...
  double asked  = 0; ///< start of the visit
  double work   = 0; ///< service that the visit asked for, seconds at speed 1
  double demand = 0; ///< what of it is still to get
};
static_assert(sizeof(Job) == 64);

/// What a job at a timeslice station has besides.
struct Slice {
  JobId core    = nobody; ///< instance number of the station whose server it holds
  float pace    = 1;      ///< speed of the present stretch of work
  double end    = 0;      ///< when it must give way to those who wait
  double stretch_end = 0; ///< when the present stretch ends; an event for another time is stale
};

/// For every job the one behind it in the one queue that it can be in. Apart from the jobs, because queues of a million
/// sleeping clients would otherwise fetch a cold cache line for each link.
using Links = std::vector<JobId>;

/// First come, first served.
class JobQueue {
public:
  bool empty() const { return head_ == nobody; }
  JobId front() const { return head_; }
  uint32_t length() const { return length_; }
  void push_back(Links& links, JobId job)
  {
    ++length_;
    links[job] = nobody;
    if (head_ == nobody)
      head_ = job;
    else
      links[tail_] = job;
    tail_ = job;
  }
  void push_front(Links& links, JobId job)
  {
    ++length_;
    links[job] = head_;
    if (head_ == nobody)
      tail_ = job;
    head_ = job;
  }
  JobId pop_front(Links& links)
  {
    const JobId job = head_;
    if (job != nobody) {
      --length_;
      head_ = links[job];
    }
    return job;
  }

private:
  JobId head_      = nobody;
  JobId tail_      = nobody;
  uint32_t length_ = 0;
};

} // namespace iocast
