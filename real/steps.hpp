// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/steps.hpp"

#include <deque>
#include <mpi.h>

namespace iocast {

/// One rank's part in the steps that the ranks of a group feed together. When all have read for a step is known by a
/// maximum over the ranks, which is under way while they read on.
class Steps {
public:
  /// Collective.
  explicit Steps(MPI_Comm group);
  ~Steps();
  Steps(const Steps&)            = delete;
  Steps& operator=(const Steps&) = delete;

  void begin_phase() { times_ = {}; }
  /// This rank has read for the steps of `op` at that moment, in nanoseconds since the start of the phase.
  void hand_over(const Op& op, int64_t at_ns);
  /// Hears what the others have handed over; to be called often, as messages between others may pass here.
  void listen();
  const StepTimes& times() const { return times_; }
  /// Collective, at the end of a phase: where some ranks ended early, nobody is left waiting for them.
  void end_phase();

private:
  struct Pending {
    int64_t mine_ns;
    int64_t latest_ns;
    uint64_t compute_ns;
    MPI_Request request;
  };
  void post(int64_t at_ns, uint64_t compute_ns);

  MPI_Comm comm_   = MPI_COMM_NULL; ///< of the steps
  MPI_Comm ends_   = MPI_COMM_NULL; ///< for agreement at the end of a phase
  uint64_t handed_ = 0;             ///< since the start of the run
  StepTimes times_;
  std::deque<Pending> pending_;
};

} // namespace iocast
