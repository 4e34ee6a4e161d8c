// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/failure.hpp"
#include "models/job.hpp"
#include "models/platform.hpp"

#include <algorithm>
#include <vector>

namespace iocast {

/// Servers that share a common speed which depends on how many of them work: processor sharing, and first come first served
/// where servers get in each other's way. Each job departs when the virtual clock, which runs at that speed, reaches the value it
/// had at the job's start plus the job's demand: exact, and one heap operation an arrival or departure.
class SharedServers {
public:
  void add(JobId job, double demand, double now, const std::vector<double>& speeds)
  {
    advance(now, speeds);
    jobs_.push_back({virtual_now_ + demand, job});
    std::push_heap(jobs_.begin(), jobs_.end(), later);
  }
  /// When the next job departs if nothing else happens.
  double next_departure(double now, const std::vector<double>& speeds) const
  {
    return now + std::max(0.0, jobs_.front().departs_at - virtual_now_) / speed(speeds);
  }
  JobId pop(double now, const std::vector<double>& speeds)
  {
    advance(now, speeds);
    const JobId job = jobs_.front().job;
    virtual_now_    = std::max(virtual_now_, jobs_.front().departs_at);
    std::pop_heap(jobs_.begin(), jobs_.end(), later);
    jobs_.pop_back();
    if (jobs_.empty())
      virtual_now_ = 0; // keeps the clock's resolution
    return job;
  }
  bool empty() const { return jobs_.empty(); }
  /// All are lost.
  void clear()
  {
    jobs_.clear();
    virtual_now_ = 0;
    scheduled    = -1;
  }
  double scheduled = -1; ///< time of the one calendar event that counts; others are stale

private:
  struct InService {
    double departs_at;
    JobId job;
  };
  static bool later(const InService& a, const InService& b) { return a.departs_at > b.departs_at; }
  double speed(const std::vector<double>& speeds) const { return speeds[std::min(jobs_.size(), speeds.size() - 1)] * tail(speeds); }
  /// Beyond the table (more jobs than servers under processor sharing) the total speed stays the same.
  double tail(const std::vector<double>& speeds) const
  {
    const size_t last = speeds.size() - 1;
    return jobs_.size() > last ? static_cast<double>(last) / static_cast<double>(jobs_.size()) : 1;
  }
  void advance(double now, const std::vector<double>& speeds)
  {
    if (!jobs_.empty())
      virtual_now_ += (now - last_) * speed(speeds);
    last_ = now;
  }

  std::vector<InService> jobs_;
  double virtual_now_ = 0;
  double last_        = 0;
};

/// One instance of a station: who is served and who waits. What happens in time is the system's business.
struct StationInstance {
  uint32_t busy = 0;
  LongQueue waiting;
  std::vector<JobId> running; ///< who holds a server; only where slices take it away, or failures
  uint32_t next_victim = 0;   ///< timeslice only: servers are preempted in turn

  /// True when a server was free.
  bool seize(JobId job, uint32_t servers)
  {
    if (busy < servers) {
      ++busy;
      return true;
    }
    waiting.push_back(job);
    return false;
  }
  /// The job that gets the server now, or nobody.
  JobId release()
  {
    const JobId next = waiting.pop_front();
    if (next == nobody)
      --busy;
    return next;
  }
};

/// All instances of a station of the platform.
struct Station {
  StationSpec spec;
  std::vector<StationInstance> instances;
  std::vector<SharedServers> shared; ///< by instance; only where the speed varies
  Outages outages;                   ///< empty: none of them fails
  std::vector<double> speeds;        ///< speed of each of n busy servers, n = 0 ... servers; empty: always 1
  bool never_waits = false; ///< a server for everyone: set by the system, which knows how many there are
  uint32_t first_instance = 0;       ///< number of instance 0 among the instances of all stations

  Station(const StationSpec& station, uint32_t nodes, uint32_t first) : spec(station), first_instance(first)
  {
    const uint32_t count = spec.per == Per::node ? nodes : spec.count;
    instances.resize(count);
    if (spec.contention > 0 || spec.coherency > 0 || !spec.speeds.empty() || spec.discipline == Discipline::ps) {
      for (uint32_t n = 0; n <= spec.servers; ++n)
        speeds.push_back(spec.speed(std::max(n, 1U)));
      if (spec.discipline != Discipline::timeslice)
        shared.resize(count);
    }
  }
  bool varies() const { return !shared.empty(); }
};

} // namespace iocast
