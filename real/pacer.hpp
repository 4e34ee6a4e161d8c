// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/alarm.hpp"
#include "real/backend.hpp"
#include "real/brake.hpp"
#include "real/lookahead.hpp"
#include "real/rank_phase.hpp"
#include "real/steps.hpp"
#include "workload/pattern.hpp"

#include <optional>

namespace iocast {

/// When: arrivals, think times, the brake's rate and the steps of a workload. A rank waits here, and in Meeting.
class Pacer {
public:
  /// clients: that share the brake's rate
  Pacer(const Pattern& pattern, const Client& client, const Brake& brake, uint32_t clients, Alarm& alarm);

  /// An operation begins as soon as the one before was answered, but where the stream says otherwise.
  bool is_eager() const { return !thinks_ && !is_open_ && pace_ns_ == 0; }

  void begin_phase(int64_t start_ns, int64_t deadline_ns);
  /// Waits until the operation may begin. number: of those before it in the whole stream. answered: when the one before
  /// was, in ticks. joint: others wait for this rank, whose time is never over before it. @return whether it may
  bool admit(Request& request, uint64_t number, int64_t answered, bool joint, RankPhase& phase)
  {
    request.intended_ns = std::exchange(streamed_ns_, TimedOp::not_intended);
    return is_eager() || hold(request, number, answered, joint, phase);
  }
  /// Carries out an OpKind::think, from `from_ns` on. @return whether the rank may go on
  bool think(const Op& op, int64_t from_ns, RankPhase& phase);
  /// Draws the think time that follows the answer.
  void answer(const Request& request, uint64_t number)
  {
    if (thinks_)
      draw_think(request, number);
  }
  /// The end of the think time that follows the last answer; 0: there is none.
  int64_t goes_on_ns() const { return asks_again_ns_; }
  /// Hears of others' steps; to be called often.
  void listen()
  {
    if (steps_)
      steps_->listen();
  }
  /// Collective where the workload has steps.
  void end_phase(RankPhase& phase);

  /// For the sweep: the first turn, and the next. @return whether the rank may go on
  void begin_turns(int64_t start_ns) { begins_ns_ = first_turn(start_ns); }
  bool take_turn(RankPhase& phase);
  /// A signal has come, or word that another rank can't go on.
  void interrupt(RankPhase& phase);

private:
  bool hold(Request& request, uint64_t number, int64_t answered, bool joint, RankPhase& phase);
  void draw_think(const Request& request, uint64_t number);
  bool wait_for_step(const Op& op, RankPhase& phase);
  bool pause_until(int64_t moment_ns, RankPhase& phase, std::optional<int64_t> thinks_since_ns = std::nullopt);
  int64_t first_turn(int64_t start_ns) const;

  const Arrivals& arrivals_;
  uint32_t rank_;
  uint64_t seed_;
  uint32_t clients_;
  Alarm& alarm_;
  bool thinks_;
  bool is_open_;
  int64_t pace_ns_ = 0;        ///< between two operations of this rank, by the brake
  std::optional<Steps> steps_; ///< when the workload has some

  int64_t start_ns_      = 0;
  int64_t deadline_ns_   = 0;
  bool first_            = true;
  int64_t intended_ns_   = 0; ///< when an operation is meant to start in an open loop, since the start of the phase
  int64_t streamed_ns_   = TimedOp::not_intended; ///< the same, from the stream
  int64_t asks_again_ns_ = 0;
  int64_t begins_ns_     = 0; ///< when the brake lets the next begin
  int64_t admitted_ns_   = 0; ///< when it let the last operation of an open loop come, since the start
};

} // namespace iocast
