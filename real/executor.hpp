// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/op_trace.hpp"
#include "profile/recorder.hpp"
#include "real/agree.hpp"
#include "real/alarm.hpp"
#include "real/backend.hpp"
#include "real/brake.hpp"
#include "real/error_table.hpp"
#include "real/open_objects.hpp"
#include "real/progress.hpp"
#include "real/steps.hpp"
#include "real/watchdog.hpp"
#include "workload/op_stream.hpp"
#include "workload/pattern.hpp"

#include <memory>
#include <optional>

namespace iocast {

/// Lets SIGINT and SIGTERM end the timed loop after the current operation; a second signal kills.
void catch_signals();
bool stop_requested();

/// What one rank brings home from a phase.
struct RankPhase {
  PhaseRecorder recorder;
  ErrorTable errors;
  double seconds              = 0; ///< from the start of the phase to this rank's last answer; 0: it had no operation
  double think_asked_seconds  = 0;
  double think_actual_seconds = 0;
  bool interrupted            = false; ///< by a signal, or because another rank can't go on
  bool cut                    = false; ///< its time was over
  uint64_t reached            = 0;     ///< see Pattern
  double first_step_seconds   = 0;     ///< from the start to the end of the first step, see StepTimes
  uint64_t swept              = 0;     ///< objects and datasets removed, see sweep()
  std::optional<Failure> failure;
};

/// Carries out the operations of one rank.
class Executor {
public:
  /// What is kept of the operations beside their latencies.
  struct Keeps {
    OpStreamWriter* stream = nullptr;
    OpTrace* trace         = nullptr;
    uint32_t traced_as     = 0; ///< which of the trace's ranks this one is
    int64_t begun_ns       = 0; ///< the start of the run, which times in the trace are since
    Patience patience;          ///< with operations that get no answer
    Brake brake;
    uint32_t clients = 1; ///< that share the brake's rate
  };

  /// Works for `client`: with content, it verifies what is read.
  Executor(const Pattern& pattern, Backend& backend, const Client& client, Progress& progress, Alarm& alarm,
           const Keeps& keeps);

  /// Takes the OpKind::phase that the stream stands before; the number of the phase, or nothing at the end.
  std::optional<size_t> next_phase();
  /// The start of the run, as clocks were last compared: they drift apart.
  void set_begin(int64_t begun_ns) { keeps_.begun_ns = begun_ns; }
  /// A phase's worth of memory, touched before the clock runs.
  RankPhase prepare() const;
  /// The one timed loop: all operations up to the next phase. It starts at `start_ns`; what isn't done at `deadline_ns`
  /// isn't begun.
  void run(int64_t start_ns, int64_t deadline_ns, RankPhase& phase);
  /// After a phase with a time limit, and before the next: how far the furthest rank came.
  void agree(uint64_t furthest) { pattern_.agree(cursor_, furthest); }
  /// Removes what is left of this rank's datasets, whatever state they are in, up to the next phase.
  void sweep(int64_t start_ns, RankPhase& phase);

private:
  /// An operation, and when its parts ended. They are formed by the dozen and recorded by the dozen: a system call
  /// leaves little of pattern and histograms in the CPU's caches, and fetching them back once serves many operations.
  struct Request {
    explicit Request(const Pattern& pattern) : name(pattern) {}
    Op op;
    Stopwatch watch;
    int64_t intended_ns = TimedOp::not_intended; ///< since the start of the phase
    Name name;
  };
  static constexpr size_t most_requests = 32;
  static constexpr uint32_t most_alike  = 64;
  /// Accesses that are nothing but offsets apart: one stands for all.
  struct Alike {
    Op op;
    uint64_t step     = 0; ///< bytes
    uint32_t answered = 0;
  };

  /// What a rank tells the others of its group when they meet; bits, so that all can be added up.
  enum Word : int {
    begins = 1, ///< an operation that they do together
    late   = 2, ///< begins one although its time is over
    ended  = 4, ///< has no more operations in this phase
    left   = 8, ///< was cut
    fails  = 16 ///< can't go on, or was interrupted
  };

  bool take(Op& op);
  bool form(int64_t start_ns, RankPhase& phase);
  void look_back();
  void pass();
  bool may_begin(bool in_time, RankPhase& phase);
  int meet(int word);
  void leave(int64_t start_ns, RankPhase& phase);
  int64_t ask(Request& request, int64_t start_ns, RankPhase& phase);
  int64_t ask_stretch(int64_t until, int64_t start_ns, RankPhase& phase);
  int prepare(const Request& request);
  int call(Request& request);
  int check(const Op& op, int error);
  void prepare_content(const Name& name, Op op);
  bool pause_until(int64_t moment_ns, RankPhase& phase, std::optional<int64_t> thinks_since_ns = std::nullopt);
  bool pace(const Op& op, int64_t start_ns, RankPhase& phase);
  void interrupt(RankPhase& phase);
  void trace(const Op& op, int64_t started_ns, int64_t ended_ns, int error = 0);
  void watch_free_space(int64_t at_ns);
  void watch_latencies(size_t first, size_t last) const;
  void run_operations(int64_t start_ns, int64_t deadline_ns, RankPhase& phase);
  void close_all(int64_t start_ns, RankPhase& phase);
  void record_answered(int64_t start_ns, RankPhase& phase);
  void record_error(const Op& op, int error, uint64_t at, int64_t started_ns, int64_t ended_ns, int64_t start_ns,
                    RankPhase& phase);
  int64_t first_turn(int64_t start_ns) const;
  void sweep_one(const Op& op, RankPhase& phase);
  void sweep_dataset(const Op& rmdir, RankPhase& phase);

  const Pattern& pattern_;
  Backend& backend_;
  uint32_t rank_;
  uint64_t seed_;
  const Content* content_; ///< null: whatever is read is right
  Progress& progress_;
  Alarm& alarm_;
  Keeps keeps_;
  uint64_t operations_ = 0; ///< of the whole stream so far
  Cursor cursor_;
  std::vector<OpKind> kinds_;        ///< that occur in the workload
  size_t phase_ = 0;                 ///< the number of the phase that the rank is in
  std::optional<size_t> next_phase_; ///< the number of the phase that the stream stands before
  std::vector<Request> requests_;
  size_t recorded_ = 0; ///< number of recorded ones, the first of requests_; the next up to `answered_` are answered,
                        ///< and those up to `formed_` are not issued yet
  size_t answered_ = 0;
  size_t formed_   = 0;
  Cursor formed_from_; ///< before the first of requests_
  bool over_ = false;  ///< the phase has no more than they are
  Name swept_;
  Alike alike_;
  std::array<int64_t, most_alike + 1>
      between_; ///< when each of alike_ was issued and the one before it answered; ticks
  Watchdog watchdog_;
  OpenObjects open_;
  Slot slot_         = 0; ///< of the object that the operation is about
  uint64_t found_    = 0; ///< what a stat or readdir found
  uint64_t wrong_at_ = 0; ///< the byte of the object that was wrong, or where the operation began
  MPI_Comm group_;
  std::optional<Steps> steps_; ///< when the workload has some
  int64_t pace_ns_   = 0;      ///< between two operations of this rank, by the brake
  int64_t turn_ns_   = 0;      ///< when a sweep may go on, by the brake
  int64_t looked_ns_ = 0;      ///< when it last looked how much is free
  bool watches_      = false;  ///< the brake limits latencies
  bool prepares_     = false;  ///< the backend prepares calls that name an object
  bool streams_      = false;  ///< accesses that are alike may be issued in one go, see ask_stretch()
  bool together_     = false;  ///< the ranks of the group meet before what they do together
  bool met_at_last_  = false;  ///< in this phase: they will not meet again
  bool cut_after_    = false;  ///< the operation that they have met for
};

} // namespace iocast
