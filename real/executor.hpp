// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/op_trace.hpp"
#include "real/alarm.hpp"
#include "real/backend.hpp"
#include "real/brake.hpp"
#include "real/caller.hpp"
#include "real/lookahead.hpp"
#include "real/meeting.hpp"
#include "real/pacer.hpp"
#include "real/progress.hpp"
#include "real/rank_phase.hpp"
#include "real/sweeper.hpp"
#include "real/watchdog.hpp"
#include "workload/op_stream.hpp"
#include "workload/pattern.hpp"

#include <optional>

namespace iocast {

/// Carries out the operations of one rank, and times them.
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
  void agree(uint64_t furthest) { pattern_.agree(lookahead_.cursor(), furthest); }
  /// Removes what is left of this rank's datasets, whatever state they are in, up to the next phase.
  void sweep(int64_t start_ns, RankPhase& phase);

private:
  static constexpr uint32_t most_alike = 64;
  /// Accesses that are nothing but offsets apart: one stands for all.
  struct Alike {
    Op op;
    uint64_t step     = 0; ///< bytes
    uint32_t answered = 0;
  };

  int64_t ask(Request& request, int64_t start_ns, RankPhase& phase);
  int64_t ask_stretch(int64_t until, int64_t start_ns, RankPhase& phase);
  void run_operations(int64_t start_ns, int64_t deadline_ns, RankPhase& phase);
  void leave(int64_t start_ns, RankPhase& phase);
  void close_all(int64_t start_ns, RankPhase& phase);
  void watch_free_space(int64_t at_ns);
  void watch_latency(const Request& request) const;
  void record_answered(int64_t start_ns, RankPhase& phase);
  void record_error(const Op& op, int error, uint64_t at, int64_t started_ns, int64_t ended_ns, int64_t start_ns,
                    RankPhase& phase);
  void trace(const Op& op, int64_t started_ns, int64_t ended_ns, int error = 0);

  const Pattern& pattern_;
  Backend& backend_;
  uint32_t rank_;
  Progress& progress_;
  Alarm& alarm_;
  Keeps keeps_;
  Lookahead lookahead_;
  Caller caller_;
  Pacer pacer_;
  Meeting meeting_;
  Sweeper sweeper_;
  Watchdog watchdog_;
  uint64_t operations_ = 0;   ///< of the whole stream so far
  std::vector<OpKind> kinds_; ///< that occur in the workload
  size_t phase_ = 0;          ///< the number of the phase that the rank is in
  Alike alike_;
  std::array<int64_t, most_alike + 1>
      between_;               ///< when each of alike_ was issued and the one before it answered; ticks
  int64_t looked_ns_ = 0;     ///< when it last looked how much is free
  bool watches_      = false; ///< the brake limits latencies
  bool streams_      = false; ///< accesses that are alike may be issued in one go, see ask_stretch()
};

} // namespace iocast
