// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/failure.hpp"
#include "models/huge.hpp"
#include "models/integral.hpp"
#include "models/job.hpp"
#include "models/platform.hpp"
#include "models/priority.hpp"

#include <algorithm>
#include <vector>

namespace iocast {

/// The speed of each of n busy servers: a table as far as there can be many of them, beyond it the station's law.
class Speeds {
public:
  Speeds() = default;
  explicit Speeds(const StationSpec& spec) : spec_(&spec)
  {
    for (uint32_t n = 0; n <= std::min(spec.servers, most_in_table); ++n)
      table_.push_back(spec.speed(std::max(n, 1U)));
  }
  bool empty() const { return table_.empty(); }
  /// Of n of the servers.
  double of(size_t n) const { return n < table_.size() ? table_[n] : spec_->speed(static_cast<uint32_t>(n)); }
  /// Of each of n jobs that share them. With more jobs than servers the total speed stays the same.
  double of_sharing(size_t n) const
  {
    const size_t servers = spec_->servers;
    return n <= servers ? of(n) : of(servers) * (static_cast<double>(servers) / static_cast<double>(n));
  }

private:
  static constexpr uint32_t most_in_table = 1 << 16;

  const StationSpec* spec_ = nullptr;
  std::vector<double> table_; ///< by the number of busy servers, from 0 on; empty: always 1
};

/// Servers that share a common speed which depends on how many of them work: processor sharing, and first come first
/// served where servers get in each other's way. Each job departs when the virtual clock, which runs at that speed,
/// reaches the value it had at the job's start plus the job's demand: exact, and one heap operation an arrival or
/// departure.
class SharedServers {
public:
  void add(JobId job, double demand, double now, const Speeds& speeds)
  {
    advance(now, speeds);
    jobs_.push_back({virtual_now_ + demand, job});
    std::push_heap(jobs_.begin(), jobs_.end(), later);
  }
  /// When the next job departs if nothing else happens.
  double next_departure(double now, const Speeds& speeds) const
  {
    return now + std::max(0.0, jobs_.front().departs_at - virtual_now_) / speeds.of_sharing(jobs_.size());
  }
  JobId pop(double now, const Speeds& speeds)
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
  size_t size() const { return jobs_.size(); }
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
  /// Of equals the first by number: heaps of different standard libraries disagree on them.
  static bool later(const InService& a, const InService& b)
  {
    return a.departs_at > b.departs_at || (a.departs_at == b.departs_at && a.job > b.job);
  }
  void advance(double now, const Speeds& speeds)
  {
    if (!jobs_.empty())
      virtual_now_ += (now - last_) * speeds.of_sharing(jobs_.size());
    last_ = now;
  }

  std::vector<InService> jobs_;
  double virtual_now_ = 0;
  double last_        = 0;
};

/// One instance of a station: how many are served and who waits. What happens in time is the system's business.
struct StationInstance {
  uint32_t busy        = 0;
  uint32_t next_victim = 0; ///< timeslice only: servers are preempted in turn
  JobQueue waiting;         ///< on a node
};

/// All instances of a station of the platform. Looked up at each visit, which whole cache lines make cheap.
struct alignas(64) Station {
  Occupancy occupancy;
  StationSpec spec;
  HugeVector<StationInstance> instances;
  std::vector<LongQueue> lines;            ///< who waits, by instance, unless it is on a node, where few can
  std::vector<ClassQueues> classes;        ///< likewise, where there are classes
  std::vector<SharedServers> shared;       ///< by instance; only where the speed varies
  std::vector<std::vector<JobId>> running; ///< who holds a server, by instance; only where they fail
  Outages outages;                         ///< empty: none of them fails
  Speeds speeds;                           ///< empty: always 1
  bool has_classes        = false;         ///< some are served before others
  bool never_waits        = false;         ///< a server for everyone: set by the system, which knows how many there are
  uint32_t first_instance = 0;             ///< number of instance 0 among the instances of all stations
  uint32_t first_core     = 0; ///< timeslice only: number of server 0 of instance 0 among those of all such stations

  Station(const StationSpec& station, uint32_t nodes, uint32_t first) : spec(station), first_instance(first)
  {
    const uint32_t count = spec.per == Per::node ? nodes : spec.count;
    instances.resize(count);
    if (spec.contention > 0 || spec.coherency > 0 || !spec.speeds.empty() || spec.discipline == Discipline::ps) {
      speeds = Speeds(station);
      if (spec.discipline != Discipline::timeslice)
        shared.resize(count);
    }
    has_classes = !spec.priority.empty();
    if (has_classes)
      for (uint32_t number = 0; number < count; ++number)
        classes.emplace_back(spec.priority.size());
    else if (spec.per != Per::node)
      lines.resize(count);
  }
  bool varies() const { return !shared.empty(); }
  uint32_t instance_of_core(uint32_t core) const { return (core - first_core) / spec.servers; }

  /// First come, first served, of its class if there are some. True when a server was free.
  bool seize(Links& links, JobId id, const Job& job)
  {
    StationInstance& instance = instances[job.instance];
    if (instance.busy < spec.servers) {
      ++instance.busy;
      return true;
    }
    if (has_classes) [[unlikely]]
      wait_in_class(id, job);
    else if (spec.newest_first) [[unlikely]]
      wait_first(links, job.instance, id);
    else
      wait(links, job.instance, id);
    return false;
  }
  /// The job that gets the server now, or nobody.
  JobId release(Links& links, uint32_t number)
  {
    const JobId next = next_waiting(links, number);
    if (next == nobody)
      --instances[number].busy;
    return next;
  }
  /// Behind all others.
  void wait(Links& links, uint32_t number, JobId id)
  {
    if (lines.empty())
      instances[number].waiting.push_back(links, id);
    else
      lines[number].push_back(id);
  }
  /// Before all others.
  void wait_first(Links& links, uint32_t number, JobId id)
  {
    if (lines.empty())
      instances[number].waiting.push_front(links, id);
    else
      lines[number].push_front(id);
  }
  /// Takes out who has waited longest, or nobody.
  JobId next_waiting(Links& links, uint32_t number)
  {
    if (!lines.empty())
      return lines[number].pop_front();
    return has_classes ? classes[number].pop_front() : instances[number].waiting.pop_front(links);
  }
  /// Who has waited longest, or nobody; of no classes.
  JobId first_waiting(uint32_t number) const
  {
    return lines.empty() ? instances[number].waiting.front() : lines[number].front();
  }
  uint32_t waiting(uint32_t number) const
  {
    return has_classes     ? classes[number].length()
           : lines.empty() ? instances[number].waiting.length()
                           : lines[number].length();
  }
  /// Takes out all that wait, in the order in which they would have been served.
  void lose_waiting(Links& links, uint32_t number, std::vector<JobId>& lost)
  {
    for (JobId next = next_waiting(links, number); next != nobody; next = next_waiting(links, number))
      lost.push_back(next);
  }

private:
  [[gnu::noinline]] void wait_in_class(JobId id, const Job& job)
  {
    const size_t kind = job.beside && job.kind != draining ? work_of_others : static_cast<size_t>(job.kind);
    classes[job.instance].push_back(id, spec.class_of[kind]);
  }
};

} // namespace iocast
