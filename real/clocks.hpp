// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/cluster.hpp"

#include <cstdint>
#include <functional>

namespace iocast {

/// How the monotonic clocks of the nodes differ: they count from when each was started, and not quite equally fast. The
/// clock of the first node is the run's. (Cristian, "Probabilistic clock synchronization", Distributed Computing 3
/// (1989) 146-158: of several answers that one is believed that came soonest, to half of its round trip.)
class Clocks {
public:
  explicit Clocks(const Cluster& cluster);
  ~Clocks();
  Clocks(const Clocks&)            = delete;
  Clocks& operator=(const Clocks&) = delete;

  /// All ranks call it together, while nothing is measured: about 12 messages back and forth between the first node and
  /// each other one, in turn.
  void compare();
  /// Waits for all ranks, compares, and returns the common moment, on this node's clock, at which a phase starts: now.
  /// `tell` hears of it before.
  int64_t start_together(const std::function<void(int64_t start_ns)>& tell);
  /// A moment of the run's clock on this node's.
  int64_t here(int64_t run_ns) const { return run_ns + offset_ns_; }

  /// Of all nodes together, as of the last comparison; only rank 0 knows.
  /// Half of the longest round trip that was believed, which no offset is wrong by more than. 0 with one node.
  double uncertainty_seconds() const { return static_cast<double>(uncertainty_ns_) * 1e-9; }
  /// By how much a clock went apart from the first node's since the comparison before, over the time in between: the
  /// most of all. 0 at first.
  double drift() const { return drift_; }

private:
  const Cluster& cluster_;
  MPI_Comm leaders_       = MPI_COMM_NULL; ///< the first ranks of all nodes
  int64_t offset_ns_      = 0;
  int64_t compared_ns_    = 0; ///< when it was last, here; 0: never
  int64_t uncertainty_ns_ = 0;
  double drift_           = 0;
};

} // namespace iocast
