// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/job.hpp"
#include "models/platform.hpp"
#include "workload/op.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace iocast {

/// Units of an object, without the last.
struct Units {
  uint64_t begin = 0;
  uint64_t end   = 0;

  bool overlaps(const Units& other) const { return begin < other.end && other.begin < end; }
  bool holds(const Units& other) const { return begin <= other.begin && other.end <= end; }
  bool operator==(const Units&) const = default;
};

/// The units that an access requests, ascending: units that lie together are one range. Where the servers of a station
/// have the locks of their stripes, each has units of its own, so that a range ends at a server's end.
class ExtentCutter {
public:
  /// Units of `extent` bytes, of the whole object or (`striped` is a station that is spread by stripe) of each server's
  /// part of it.
  ExtentCutter(uint64_t extent, const StationSpec* striped) : extent_(extent), striped_(striped) {}

  /// An operation without bytes requests the whole object.
  std::vector<Units> cut(const Op& op) const;
  /// All units of the server, or object, that has this one.
  Units space(uint64_t unit) const;

private:
  void cut_piece(uint64_t begin, uint64_t size, std::vector<Units>& out) const;

  uint64_t extent_;
  const StationSpec* striped_;
};

/// What locks on ranges did, over all objects.
struct ExtentSums {
  uint64_t taken       = 0; ///< ranges requested
  uint64_t kept        = 0; ///< of these: the node had them still
  uint64_t called_back = 0; ///< others had to give up some of them first
  uint64_t ranges      = 0; ///< that nodes keep at this moment
  uint64_t forgotten   = 0; ///< given up at no cost, as there were more than ExtentLock::most_ranges
};

/// Ranges that may overlap, each with a number. Finding those that overlap another costs a search for each class of
/// lengths, a power of two.
class OverlapIndex {
public:
  void add(const Units& units, uint64_t number);
  void remove(const Units& units, uint64_t number);
  /// Calls do_it(number) for each range that overlaps, twice where two of a number's do.
  template <class DoIt> void overlapping(const Units& units, DoIt do_it) const
  {
    for (size_t length = 0; length < classes_.size(); ++length) {
      const auto& ranges   = classes_[length];
      const uint64_t reach = length < 63 ? std::min(units.begin, uint64_t{2} << length) : units.begin; // none is longer
      for (auto at = ranges.lower_bound({units.begin - reach, 0}); at != ranges.end() && at->first.first < units.end;
           ++at)
        if (at->second > units.begin)
          do_it(at->first.second);
    }
  }
  /// Calls do_it(number, begin) for the ranges from here on upwards of each class, until it returns true.
  template <class DoIt> void above(uint64_t from, DoIt do_it) const
  {
    for (const auto& ranges : classes_)
      for (auto at = ranges.lower_bound({from, 0}); at != ranges.end() && !do_it(at->first.second, at->first.first);)
        ++at;
  }
  /// Calls do_it(number, end) for the ranges that end here or before, downwards, until it returns true.
  template <class DoIt> void below(uint64_t to, DoIt do_it) const
  {
    for (auto at = ends_.lower_bound({to + 1, 0}); at != ends_.begin();)
      if (--at; do_it(at->second, at->first))
        return;
  }

private:
  std::vector<std::map<std::pair<uint64_t, uint64_t>, uint64_t>> classes_; ///< by length: end by (begin, number)
  std::set<std::pair<uint64_t, uint64_t>> ends_;                           ///< (end, number)
};

/// Locks on ranges of one object. Who asks gets all its ranges at once, when nobody who came before has or wants any of
/// them in a way that conflicts, so that no two wait for each other. A node keeps a range after use, grown as far as
/// nobody contests it; who is called back gives up what the other gets. While it is in use all that was granted is;
/// others' requests wait.
class ExtentLock {
public:
  /// Kept by nodes, at most (25 MB of an object); beyond that those that were taken longest ago are given up, which
  /// ExtentSums::forgotten counts.
  static constexpr size_t most_ranges = 1 << 18;

  explicit ExtentLock(size_t most = most_ranges) : most_(most) {}

  /// True when the job has its ranges; otherwise it waits and will be appended to the `freed` of a grant().
  bool acquire(JobId job, uint32_t node, bool shared, std::vector<Units> requested, const ExtentCutter& cutter,
               const LockSpec& spec, ExtentSums& sums);
  /// The job has and wants nothing any longer. To be followed by grant().
  void drop(JobId job);
  /// Those that wait for nobody any longer have their ranges.
  void grant(const ExtentCutter& cutter, const LockSpec& spec, ExtentSums& sums, std::vector<JobId>& freed);

  /// How many of the ranges that the job has were called back from others.
  uint32_t called_back(JobId job) const;
  size_t requests() const { return requests_.size(); }
  size_t ranges() const { return exclusive_.size() + shared_.size(); }
  /// What nodes keep, by node and ascending.
  std::vector<std::pair<uint32_t, Units>> kept() const;
  /// No unit is one node's alone and another's as well.
  bool adds_up() const;

private:
  struct Request {
    JobId job       = nobody;
    uint32_t node   = 0;
    bool shared     = false;
    bool active     = false; ///< it has its ranges; otherwise it waits
    uint32_t waits  = 0;     ///< number of requests before it
    uint32_t called = 0;
    std::vector<Units> requested; ///< ascending
    std::vector<Units> held;      ///< what nobody else may have meanwhile

    const std::vector<Units>& claimed() const { return active ? held : requested; }
  };
  struct Kept {
    uint64_t end       = 0;
    uint32_t node      = 0;
    uint64_t requested = 0; ///< first unit of the request for which this was granted
    uint64_t stamp     = 0;
  };

  static bool overlap(const std::vector<Units>& some, const std::vector<Units>& others);
  /// Whether one that came later has to wait for it.
  static bool stops(const Request& earlier, const Request& later);
  /// Numbers of requests, ascending, whose claims overlap and may conflict.
  std::vector<uint64_t> near(const std::vector<Units>& units, bool shared) const;
  void claim(uint64_t number, const Request& request);
  void unclaim(uint64_t number, const Request& request);
  void activate(Request& request, const ExtentCutter& cutter, const LockSpec& spec, ExtentSums& sums);
  bool keeps(const Request& request, const Units& requested, Units& kept) const;
  bool call_back(const Request& request, const Units& requested, Units& room) const;
  void clip(const Request& request, const Units& requested, Units& room) const;
  void give_up(const Request& request, const Units& room);
  void keep(const Request& request, Units room, uint64_t requested);
  void forget_oldest();
  /// Calls do_it(begin, kept range) for the ranges of others that conflict with it and matter for its growth or are in
  /// its way.
  template <class DoIt> void for_each_rival(const Request& request, const Units& requested, DoIt do_it) const;

  std::map<uint64_t, Request> requests_; ///< by a number, as they came
  std::unordered_map<JobId, uint64_t> numbers_;
  uint64_t next_ = 0;
  std::set<uint64_t> ready_;                             ///< that wait for nobody any longer
  std::array<OverlapIndex, 2> claims_;                   ///< what requests claim: alone, shared
  std::map<uint64_t, Kept> exclusive_;                   ///< by begin; they don't overlap
  std::map<std::pair<uint32_t, uint64_t>, Kept> shared_; ///< by node and begin; those of a node don't overlap
  uint64_t stamp_ = 0;
  size_t most_; ///< ranges
};

/// Those of all objects, of one lock of the platform.
struct ExtentLocks {
  const LockSpec* spec;
  ExtentCutter cutter;
  std::unordered_map<uint64_t, ExtentLock> objects;
  ExtentSums sums;

  ExtentLocks(const LockSpec& lock, const StationSpec* striped) : spec(&lock), cutter(lock.extent, striped) {}
};

} // namespace iocast
