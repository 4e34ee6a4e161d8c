// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/recorder.hpp"
#include "real/agree.hpp"
#include "real/alarm.hpp"
#include "real/backend.hpp"
#include "real/error_table.hpp"
#include "real/progress.hpp"
#include "workload/op_stream.hpp"
#include "workload/pattern.hpp"

#include <memory>
#include <optional>

namespace iocast {

/// Lets SIGINT and SIGTERM end the timed loop after the current operation; a second signal kills.
void catch_signals();
bool stop_asked();

/// What one rank brings home from a phase.
struct RankPhase {
  PhaseRecorder recorder;
  ErrorTable errors;
  double seconds              = 0; ///< from the start of the phase to this rank's last answer
  double think_asked_seconds  = 0;
  double think_actual_seconds = 0;
  bool cut                    = false; ///< stopped before the phase was done
  uint64_t swept              = 0;     ///< objects removed by listing, see sweep()
  std::optional<Failure> failure;
};

/// Carries out the operations of one rank.
class Executor {
public:
  Executor(const Pattern& pattern, Backend& backend, uint32_t rank, Progress& progress, Alarm& alarm, OpStreamWriter* dump);

  /// Takes the OpKind::phase that the stream stands before; the number of the phase, or nothing at the end.
  std::optional<size_t> next_phase();
  /// A phase's worth of memory, touched before the clock runs.
  RankPhase prepare() const;
  /// The one timed loop: all operations up to the next phase, which starts at `start_ns`.
  void run(int64_t start_ns, RankPhase& phase);
  /// Removes what is left of this rank's datasets, whatever state they are in, up to the next phase.
  void sweep(int64_t start_ns, RankPhase& phase);

private:
  /// An operation and when its parts ended. Answers wait and are recorded by the dozen: a system call leaves little of the
  /// histograms in the CPU's caches, and fetching them back once serves many operations.
  struct Asked {
    Op op;
    Stopwatch watch;
  };

  bool take(Op& op);
  int call(const Op& op, Stopwatch& watch);
  void run_operations(int64_t start_ns, RankPhase& phase);
  void record_answered(int64_t start_ns, RankPhase& phase);
  void sweep_dataset(const Op& rmdir, RankPhase& phase);

  const Pattern& pattern_;
  Backend& backend_;
  uint32_t rank_;
  Progress& progress_;
  Alarm& alarm_;
  OpStreamWriter* dump_;
  Cursor cursor_;
  Name name_;
  std::vector<OpKind> kinds_;       ///< that occur in the workload
  std::optional<size_t> next_phase_; ///< the number of the phase that the stream stands before
  std::array<Asked, 64> asked_;
  size_t answered_ = 0; ///< of asked_
};

} // namespace iocast
