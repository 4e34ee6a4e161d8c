// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/failure.hpp"
#include "models/job.hpp"
#include "models/platform.hpp"
#include "models/priority.hpp"

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
  LongQueue waiting;
  uint32_t busy = 0;
};

/// Who holds a server of an instance.
struct Running {
  std::vector<JobId> jobs;
  uint32_t next_victim = 0; ///< timeslice only: servers are preempted in turn
};

/// All instances of a station of the platform. Looked up at each visit, which whole cache lines make cheap.
struct alignas(64) Station {
  StationSpec spec;
  std::vector<StationInstance> instances;
  std::vector<Running> running;      ///< by instance; only where slices take servers away, or failures
  std::vector<SharedServers> shared; ///< by instance; only where the speed varies
  std::vector<ClassQueues> classes;  ///< who waits, by instance, where there are classes
  Outages outages;                   ///< empty: none of them fails
  std::vector<double> speeds;        ///< speed of each of n busy servers, n = 0 ... servers; empty: always 1
  bool has_classes = false; ///< some are served before others
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
    if (spec.discipline == Discipline::timeslice)
      running.resize(count);
    has_classes = !spec.priority.empty();
    for (uint32_t number = 0; has_classes && number < count; ++number)
      classes.emplace_back(spec.priority.size());
  }
  bool varies() const { return !shared.empty(); }

  /// First come, first served, of its class if there are some. True when a server was free.
  bool seize(JobId id, const Job& job)
  {
    StationInstance& instance = instances[job.instance];
    if (instance.busy < spec.servers) {
      ++instance.busy;
      return true;
    }
    if (has_classes) [[unlikely]]
      wait_in_class(id, job);
    else
      instance.waiting.push_back(id);
    return false;
  }
  /// The job that gets the server now, or nobody.
  JobId release(uint32_t number)
  {
    StationInstance& instance = instances[number];
    const JobId next          = has_classes ? classes[number].pop_front() : instance.waiting.pop_front();
    if (next == nobody)
      --instance.busy;
    return next;
  }
  uint32_t waiting(uint32_t number) const { return has_classes ? classes[number].length() : instances[number].waiting.length(); }
  /// Takes out all that wait, in the order in which they would have been served.
  void lose_waiting(uint32_t number, std::vector<JobId>& lost)
  {
    for (auto& waiting = instances[number].waiting; !waiting.empty();)
      lost.push_back(waiting.pop_front());
    while (has_classes && classes[number].length() > 0)
      lost.push_back(classes[number].pop_front());
  }

private:
  [[gnu::noinline]] void wait_in_class(JobId id, const Job& job)
  {
    const size_t kind = job.beside && job.kind != draining ? work_of_others : static_cast<size_t>(job.kind);
    classes[job.instance].push_back(id, spec.class_of[kind]);
  }
};

} // namespace iocast
