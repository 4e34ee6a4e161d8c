// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/application/scope.hpp"
#include "workload/pattern.hpp"

#include <optional>

namespace iocast {

/// The processes of an application, and the named sets that they fall into. A process with several requests outstanding
/// is as many neighbouring ranks, its lanes, that deal its requests out among themselves.
class Processes {
public:
  static constexpr uint32_t none     = UINT32_MAX;
  static constexpr uint32_t everyone = 0; ///< the set "all"

  struct Set {
    std::string name;
    uint32_t size   = 0; ///< processes
    uint32_t weight = 1; ///< its share of the processes: weight over the sum of weights
    uint32_t before = 0; ///< sum of the weights of earlier sets
    uint32_t first  = 0; ///< process, when sets are dealt in blocks
  };

  /// Reads `processes: {sets: {NAME: weight, ...}, dealt: blocks | round-robin, outstanding: 1}`; all of it may be
  /// missing.
  Processes(const Scope& scope, const std::optional<YamlNode>& given, const Placement& placement);

  uint32_t count() const { return count_; }
  uint32_t lanes() const { return lanes_; }
  const std::vector<Set>& sets() const { return sets_; }
  /// @throws InputError with the nearest match
  uint32_t set_named(const Scope& scope, const YamlNode& node) const;

  uint32_t process_of(uint32_t rank) const { return lanes_ == 1 ? rank : rank / lanes_; }
  uint32_t lane_of(uint32_t rank) const { return lanes_ == 1 ? 0 : rank % lanes_; }
  /// Of a process; the very last may have fewer.
  uint32_t lanes_of(uint32_t process) const { return process + 1 == count_ ? ranks_ - process * lanes_ : lanes_; }

  /// Place of a process within a set, or none.
  uint32_t index_in(uint32_t set, uint32_t process) const
  {
    if (set == everyone)
      return process;
    const Set& s = sets_[set];
    if (round_robin_) {
      const uint32_t place = process % cycle_ - s.before;
      return place < s.weight ? process / cycle_ * s.weight + place : none;
    }
    const uint32_t place = process - s.first;
    return place < s.size ? place : none;
  }
  uint32_t process_at(uint32_t set, uint32_t index) const;
  /// Ranks of the processes [from, from + size) of a set.
  uint64_t ranks_of(uint32_t set, uint32_t from, uint32_t size) const;

private:
  uint32_t ranks_;
  uint32_t lanes_ = 1;
  uint32_t count_;
  uint32_t cycle_   = 1; ///< sum of the weights
  bool round_robin_ = false;
  std::vector<Set> sets_;
};

} // namespace iocast
