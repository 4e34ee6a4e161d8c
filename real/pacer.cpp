// SPDX-License-Identifier: Apache-2.0
#include "real/pacer.hpp"

#include "real/signals.hpp"
#include "real/stopwatch.hpp"
#include "workload/steps.hpp"

#include <algorithm>
#include <cmath>

namespace iocast {

Pacer::Pacer(const Pattern& pattern, const Client& client, const Brake& brake, uint32_t clients, Alarm& alarm)
    : arrivals_(pattern.arrivals_of(client.rank))
    , rank_(client.rank)
    , seed_(client.seed)
    , clients_(clients)
    , alarm_(alarm)
    , thinks_(arrivals_.thinks())
    , is_open_(arrivals_.is_open())
{
  constexpr double longest_pace = 1e18; // ns, 31 years
  if (brake.max_rate > 0)
    pace_ns_ = std::max<int64_t>(1, std::llround(std::min(longest_pace, 1e9 * clients / brake.max_rate)));
  if (pattern.footprint().steps)
    steps_.emplace(client.group);
}

void Pacer::begin_phase(int64_t start_ns, int64_t deadline_ns)
{
  start_ns_      = start_ns;
  deadline_ns_   = deadline_ns;
  first_         = true;
  intended_ns_   = 0;
  streamed_ns_   = TimedOp::not_intended;
  asks_again_ns_ = 0;
  begins_ns_     = first_turn(start_ns);
  admitted_ns_   = -pace_ns_;
  if (steps_)
    steps_->begin_phase();
}

bool Pacer::hold(Request& request, uint64_t number, int64_t answered, bool joint, RankPhase& phase)
{
  if (asks_again_ns_ > 0 && !pause_until(std::exchange(asks_again_ns_, 0), phase, Ticks::to_ns(answered)))
    return false;
  if (request.op.kind == OpKind::think)
    return true;
  if (is_open_) {
    intended_ns_ += arrivals_.gap_ns(seed_, rank_, number, first_);
    request.intended_ns = intended_ns_;
    if (!std::exchange(first_, false) && start_ns_ + intended_ns_ >= deadline_ns_ && !joint) {
      phase.cut = pause_until(deadline_ns_, phase);
      return false;
    }
    if (!pause_until(start_ns_ + intended_ns_, phase))
      return false;
  }
  if (pace_ns_ > 0) {
    const int64_t until_ns = std::min(begins_ns_, deadline_ns_);
    if (request.intended_ns != TimedOp::not_intended)
      request.intended_ns = admitted_ns_ = Brake::admitted_ns(
          pace_ns_, request.intended_ns, admitted_ns_, begins_ns_ - start_ns_, Ticks::to_ns(answered) - start_ns_);
    if (!pause_until(until_ns, phase))
      return false;
    begins_ns_ = std::max(begins_ns_, now_ns()) + pace_ns_;
    if (until_ns >= deadline_ns_ && !joint) {
      phase.cut = true;
      return false;
    }
  }
  return true;
}

bool Pacer::think(const Op& op, int64_t from_ns, RankPhase& phase)
{
  if (op.flags & paced)
    return wait_for_step(op, phase);
  if (op.flags & until) {
    streamed_ns_ = static_cast<int64_t>(op.size);
    return pause_until(std::min(start_ns_ + streamed_ns_, deadline_ns_), phase);
  }
  const int64_t length_ns = std::min(static_cast<int64_t>(op.size), std::max<int64_t>(0, deadline_ns_ - from_ns));
  return pause_until(from_ns + length_ns, phase, from_ns);
}

void Pacer::draw_think(const Request& request, uint64_t number)
{
  const auto response_ns = static_cast<double>(request.watch.ended_ns() - request.watch.started_ns());
  asks_again_ns_ =
      request.watch.ended_ns() + std::llround(1e9 * arrivals_.think_seconds(response_ns * 1e-9, seed_, rank_, number));
}

/// Hands over steps, and sleeps until the one begins that the operation waits for. @return whether the rank may go on
bool Pacer::wait_for_step(const Op& op, RankPhase& phase)
{
  constexpr int64_t nap_ns = 50'000;
  steps_->hand_over(op, now_ns() - start_ns_);
  steps_->listen();
  if (op.offset == StepTimes::no_step)
    return true;
  int64_t listens_ns = now_ns() + Alarm::listens_every_ns;
  for (; !steps_->times().is_known(op.offset); steps_->listen()) {
    const int64_t at_ns = now_ns();
    if (at_ns >= listens_ns) {
      listens_ns = at_ns + Alarm::listens_every_ns;
      if (stop_requested() || alarm_.heard()) {
        interrupt(phase);
        return false;
      }
    }
    sleep_until(at_ns + nap_ns);
  }
  return pause_until(start_ns_ + steps_->times().begin_ns(op.offset), phase);
}

void Pacer::end_phase(RankPhase& phase)
{
  if (!steps_)
    return;
  phase.first_step_seconds = static_cast<double>(steps_->times().first_end_ns()) * 1e-9;
  steps_->end_phase();
}

bool Pacer::take_turn(RankPhase& phase)
{
  if (pace_ns_ == 0)
    return true;
  if (!pause_until(begins_ns_, phase))
    return false;
  begins_ns_ = std::max(begins_ns_, now_ns()) + pace_ns_;
  return true;
}

/// When this rank may begin under the brake's rate. Ranks take turns: the first operations of all would be a burst.
int64_t Pacer::first_turn(int64_t start_ns) const
{
  return start_ns + static_cast<int64_t>(static_cast<double>(pace_ns_) / clients_ * rank_);
}

/// Sleeps to a moment, and hears in the meantime when the run has to end. With `thinks_since_ns` the time from there on
/// is think time, up to the moment. @return whether the rank may go on
bool Pacer::pause_until(int64_t moment_ns, RankPhase& phase, std::optional<int64_t> thinks_since_ns)
{
  bool goes_on  = true;
  int64_t at_ns = now_ns();
  while (goes_on && at_ns < moment_ns) {
    sleep_until(std::min(moment_ns, at_ns + Alarm::listens_every_ns));
    at_ns   = now_ns();
    goes_on = at_ns >= moment_ns || !(stop_requested() || alarm_.heard());
  }
  if (thinks_since_ns) {
    phase.think_asked_seconds += static_cast<double>(std::min(moment_ns, at_ns) - *thinks_since_ns) * 1e-9;
    phase.think_actual_seconds += static_cast<double>(at_ns - *thinks_since_ns) * 1e-9;
  }
  if (!goes_on)
    interrupt(phase);
  return goes_on;
}

void Pacer::interrupt(RankPhase& phase)
{
  phase.interrupted = true;
  if (stop_requested())
    alarm_.raise();
}

} // namespace iocast
