// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/pattern.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace iocast {

/// Limits on a run's load on a system that others use.
struct Brake {
  double max_rate      = 0; ///< operations begun a second, of all clients together; 0: any
  uint64_t max_objects = 0; ///< objects that exist at once; 0: any
  uint64_t min_free    = 0; ///< bytes free in the file system, below which the run ends
  /// Nanoseconds by kind of operation: one that took longer ends the run.
  std::array<int64_t, op_count> longest_ns = no_limits();

  /// "create:5s,stat:500ms"; "any:5s" is of each. @throws InputError
  void set_latencies(const std::string& option, const std::string& text);
  bool limits_latencies() const;
  /// @throws InputError when the workload has more objects than it may
  void check(const Footprint& footprint) const;
  /// @throws InputError when the place has less free than it must keep; `free` in bytes, nothing where that isn't known
  void check(const std::string& place, std::optional<double> free) const;
  /// When an operation of an open loop comes to the storage: as intended, and no sooner than the pace allows after the
  /// one before, which came at `last_ns`. What it waits for its turn alone is the brake's, and part of no response
  /// time; what it waits for the answer to an earlier one, which came at `answered_ns`, is the storage's.
  static int64_t admitted_ns(int64_t pace_ns, int64_t intended_ns, int64_t last_ns, int64_t turn_ns,
                             int64_t answered_ns);
  /// Of run.json; null without a limit.
  nlohmann::ordered_json to_json() const;

private:
  static constexpr std::array<int64_t, op_count> no_limits()
  {
    std::array<int64_t, op_count> result{};
    result.fill(std::numeric_limits<int64_t>::max());
    return result;
  }
};

} // namespace iocast
