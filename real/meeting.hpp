// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/alarm.hpp"
#include "real/rank_phase.hpp"
#include "workload/op_stream.hpp"

#include <mpi.h>

namespace iocast {

/// Together: the ranks of a group meet before what they do at once. Nobody may be left alone in it.
class Meeting {
public:
  /// acts_together: the backend does joint operations by all ranks at once. number: of the group
  Meeting(MPI_Comm group, uint64_t number, bool acts_together, Alarm& alarm);

  bool acts_together() const { return together_; }
  /// The ranks meet before this operation.
  bool is_before(const Op& op) const { return together_ && op.is_joint(); }
  void begin_phase() { met_at_last_ = cut_after_ = false; }
  /// Before an operation of the whole group: when one of the ranks has stopped, none begins. When the time of one is
  /// over that has not stopped yet, they do this one and then stop together.
  bool may_begin(bool in_time, RankPhase& phase);
  /// The operation that they have met for is the last of the phase.
  bool cuts_after() const { return cut_after_; }
  /// At the end of a phase for this rank: whether it closes what is open.
  bool leave(const RankPhase& phase);

private:
  /// What a rank tells the others; bits, so that all can be added up.
  enum Word : int {
    begins = 1, ///< an operation that they do together
    late   = 2, ///< begins one although its time is over
    ended  = 4, ///< has no more operations in this phase
    left   = 8, ///< was cut
    fails  = 16 ///< can't go on, or was interrupted
  };
  int meet(int word);

  MPI_Comm group_;
  uint64_t number_;
  Alarm& alarm_;
  bool together_;
  bool met_at_last_ = false; ///< in this phase: they will not meet again
  bool cut_after_   = false;
};

} // namespace iocast
