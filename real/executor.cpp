// SPDX-License-Identifier: Apache-2.0
#include "real/executor.hpp"

#include "input/units.hpp"
#include "real/signals.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <utility>

namespace iocast {

namespace {
/// Accesses up to this size find their memory before the clock runs; larger ones make the first of them late.
constexpr uint64_t most_reserved = uint64_t{64} << 20;

/// Nanoseconds since the start of the phase.
TimedOp timed(const Stopwatch& watch, int64_t start_ns, int64_t intended_ns)
{
  TimedOp result{watch.started_ns() - start_ns, 0, {}, intended_ns};
  int64_t ended_ns = result.start_ns;
  for (size_t part = 0; part < watch.laps(); ++part) {
    const int64_t began_ns = std::exchange(ended_ns, watch.lap_ns(part) - start_ns);
    result.part_ns[part]   = ended_ns - began_ns; // they add up to the whole, to the nanosecond
  }
  result.end_ns = ended_ns;
  return result;
}

} // namespace

Executor::Executor(const Pattern& pattern, Backend& backend, const Client& client, Progress& progress, Alarm& alarm,
                   const Keeps& keeps)
    : pattern_(pattern)
    , backend_(backend)
    , rank_(client.rank)
    , progress_(progress)
    , alarm_(alarm)
    , keeps_(keeps)
    , lookahead_(pattern, client.rank)
    , caller_(backend, client.content)
    , pacer_(pattern, client, keeps.brake, keeps.clients, alarm)
    , meeting_(client.group, pattern.group_of(client.rank), backend.acts_together(), alarm)
    , sweeper_(pattern, backend, pacer_)
    , watchdog_(pattern, client.rank, keeps.patience)
    , watches_(keeps.brake.limits_latencies())
{
  const auto footprint = pattern.footprint();
  bool accesses        = false;
  for (const auto& [kind, count] : footprint.operations)
    if (count > 0 && kind != OpKind::think) {
      kinds_.push_back(kind);
      accesses = accesses || is_access(kind);
    }
  streams_ = pacer_.is_eager() && !client.content && !meeting_.acts_together() && !keeps.stream && !watches_;
  if (accesses)
    backend.reserve(std::min(footprint.largest_size, most_reserved));
}

std::optional<size_t> Executor::next_phase()
{
  const auto next = lookahead_.next_phase();
  phase_          = next.value_or(0);
  if (next && keeps_.stream)
    keeps_.stream->write({OpKind::phase, 0, phase_});
  return next;
}

RankPhase Executor::prepare() const
{
  RankPhase phase;
  for (const OpKind kind : kinds_) {
    auto& of = phase.recorder.of_kind(kind);
    of.whole.make_room();
    for (size_t part = 0; part < parts_of(kind).size(); ++part)
      of.parts[part].make_room();
    if (pattern_.arrivals_of(rank_).is_open())
      of.response_histogram().make_room();
  }
  return phase;
}

// ---- one operation
// ----------------------------------------------------------------------------------------------------

/// One operation, timed and noted. @return when it was answered, in ticks
int64_t Executor::ask(Request& request, int64_t start_ns, RankPhase& phase)
{
  const Op& op     = request.op;
  Stopwatch& watch = request.watch;
  const bool plain = caller_.is_plain(op);
  int error        = plain ? 0 : caller_.prepare(request);
  watchdog_.begins(++operations_, op);
  watch.start();
  if (error == 0) [[likely]]
    error = caller_.call(request);
  // One call ends here; a compound one has ended its last part itself, unless it failed before.
  if (watch.laps() == 0 || (error != 0 && watch.laps() < max_parts))
    watch.lap();
  watchdog_.answered(operations_);
  if (!plain)
    error = caller_.check(op, error, meeting_.is_before(op));
  if (error == 0) [[likely]] {
    lookahead_.answer();
  } else {
    record_answered(start_ns, phase); // a trace has them in order
    record_error(op, error, plain ? 0 : caller_.wrong_at(), watch.started_ns(), watch.ended_ns(), start_ns, phase);
    lookahead_.pass();
    if (op.kind == OpKind::mkdir && error == EEXIST)
      throw RunError(
          fmt::format("{} holds a '{}' that this run did not make; nothing is written into it. Look who puts "
                      "something there, and measure in a directory of your own.",
                      backend_.place(), request.name.dataset()));
  }
  return watch.ended();
}

/// Asks for the access `op` and those like it that follow, in a loop that does no more for each than must be: beside a
/// small access to what is cached, all that happens between two calls counts. So little does here that one reading of
/// the clock is the end of one and the start of the next. Only operations without preparation or check can be issued
/// this way.
/// @return when the last was answered, in ticks
int64_t Executor::ask_stretch(int64_t until, int64_t start_ns, RankPhase& phase)
{
  Request& first        = lookahead_.next();
  Op op                 = first.op;
  const Cursor before   = lookahead_.cursor();
  const Stretch stretch = pattern_.stretch(lookahead_.cursor(), most_alike - 1);
  if (stretch.count == 0)
    return ask(first, start_ns, phase);
  record_answered(start_ns, phase);
  alike_    = {op, stretch.step, 0};
  int error = caller_.prepare(first);
  watchdog_.begins(operations_ + 1, op);
  between_[0] = Ticks::now();
  while (true) {
    watchdog_.begins(++operations_);
    if (error == 0) [[likely]]
      error = caller_.access(op);
    const int64_t now = between_[alike_.answered + 1] = Ticks::now();
    if (error != 0) [[unlikely]]
      break;
    ++alike_.answered;
    if (alike_.answered > stretch.count || now >= until || stop_requested()) [[unlikely]]
      break;
    op.offset += stretch.step;
  }
  watchdog_.answered(operations_);
  const uint32_t request = alike_.answered + (error != 0 ? 1 : 0);
  if (request <= stretch.count)
    lookahead_.go_to(before, request - 1);
  const int64_t answered = between_[request];
  const int64_t began_ns = Ticks::to_ns(between_[request - 1]);
  record_answered(start_ns, phase);
  if (error != 0) [[unlikely]]
    record_error(op, error, op.offset, began_ns, Ticks::to_ns(answered), start_ns, phase);
  lookahead_.pass();
  return answered;
}

// ---- a phase
// ----------------------------------------------------------------------------------------------------------

void Executor::run(int64_t start_ns, int64_t deadline_ns, RankPhase& phase)
{
  meeting_.begin_phase();
  pacer_.begin_phase(start_ns, deadline_ns);
  phase.failure = failure_of([&] {
    if (keeps_.trace)
      trace({OpKind::phase, 0, phase_}, start_ns, start_ns);
    run_operations(start_ns, deadline_ns, phase);
  });
  watchdog_.answered(operations_); // what failed was, too
  const auto unrecorded = failure_of([&] { record_answered(start_ns, phase); });
  phase.failure         = phase.failure ? phase.failure : unrecorded;
  lookahead_.look_back();
  if (phase.failure)
    alarm_.raise();
  if (const auto failure = failure_of([&] { leave(start_ns, phase); }); failure && !phase.failure) {
    phase.failure = failure;
    alarm_.raise();
  }
  phase.reached = pattern_.reached(lookahead_.cursor());
  pacer_.end_phase(phase);
  progress_.reached(operations_, now_ns());
}

void Executor::run_operations(int64_t start_ns, int64_t deadline_ns, RankPhase& phase)
{
  const int64_t began = Ticks::from_ns(start_ns);
  int64_t answered    = began; // what happens at every operation is in ticks, the rest in nanoseconds
  int64_t looks_ns    = std::min(start_ns + Alarm::listens_every_ns, deadline_ns);
  int64_t looks       = Ticks::from_ns(looks_ns);
  while (true) {
    if (stop_requested()) [[unlikely]] {
      pacer_.interrupt(phase);
      break;
    }
    if (!lookahead_.has_next()) {
      record_answered(start_ns, phase);
      if (!lookahead_.form(streams_))
        break;
    }
    Request& request = lookahead_.next();
    const Op& op     = request.op;
    const bool joint = meeting_.is_before(op);
    if (!pacer_.admit(request, operations_, answered, joint, phase))
      break;
    if (joint && !meeting_.may_begin(Ticks::to_ns(answered) < deadline_ns, phase))
      break;
    if (keeps_.stream)
      keeps_.stream->write(op);
    pacer_.listen();
    int64_t now = 0;
    if (op.kind == OpKind::think) {
      const int64_t from_ns = now_ns();
      record_answered(start_ns, phase); // in the meantime, and in order
      lookahead_.pass();
      const bool goes_on     = pacer_.think(op, from_ns, phase);
      const int64_t until_ns = now_ns();
      now                    = Ticks::from_ns(until_ns);
      if (op.flags & paced) // to feed steps is work
        answered = now;
      if (keeps_.trace)
        trace(op, from_ns, until_ns);
      if (!goes_on)
        break;
    } else if (streams_ && is_access(op.kind) && lookahead_.is_last() && request.intended_ns == TimedOp::not_intended) {
      now = answered = ask_stretch(looks, start_ns, phase);
    } else {
      now = answered = ask(request, start_ns, phase);
      pacer_.answer(request, operations_);
    }
    if (now >= looks || pacer_.goes_on_ns() >= looks_ns || meeting_.cuts_after()) [[unlikely]] {
      const int64_t at_ns = Ticks::to_ns(now);
      // After what all did together the others may be about to begin the next such operation: so is this rank.
      if (meeting_.cuts_after() || (!joint && std::max(at_ns, pacer_.goes_on_ns()) >= deadline_ns)) {
        phase.cut = true;
        break;
      }
      record_answered(start_ns, phase);
      progress_.reached(operations_, at_ns);
      watch_free_space(at_ns);
      const int64_t answered_ns = Ticks::to_ns(answered);
      Ticks::align();
      answered = answered == began ? began : Ticks::from_ns(answered_ns);
      looks_ns = std::min(at_ns + Alarm::listens_every_ns, std::max(deadline_ns, at_ns + 1));
      looks    = Ticks::from_ns(looks_ns);
      if (alarm_.heard()) {
        phase.interrupted = true;
        break;
      }
    }
  }
  record_answered(start_ns, phase);
  phase.seconds =
      answered == began ? 0 : static_cast<double>(std::max<int64_t>(1, Ticks::to_ns(answered) - start_ns)) * 1e-9;
}

/// The end of a phase for this rank.
void Executor::leave(int64_t start_ns, RankPhase& phase)
{
  if (meeting_.leave(phase))
    close_all(start_ns, phase);
  if (!phase.cut)
    return;
  pattern_.cut(lookahead_.cursor());
  if (Op op; lookahead_.take(op))
    throw RunError(fmt::format("The pattern goes on with {} after its phase was cut; this is an error of the pattern.",
                               name_of(op.kind)));
}

/// Closes what is open, whatever comes: what is shared is closed by all. When nothing went wrong, this is work of the
/// phase.
void Executor::close_all(int64_t start_ns, RankPhase& phase)
{
  std::optional<Failure> failure = phase.failure;
  for (const Op& op : caller_.closes()) {
    if (failure || phase.interrupted) {
      caller_.give_up(op); // the first error is reported
      continue;
    }
    failure = failure_of([&] {
      Request& request    = lookahead_.next();
      request.op          = op;
      request.intended_ns = TimedOp::not_intended;
      phase.seconds       = static_cast<double>(Ticks::to_ns(ask(request, start_ns, phase)) - start_ns) * 1e-9;
      record_answered(start_ns, phase);
      lookahead_.forget();
    });
  }
  if (failure && !phase.failure)
    throw RunError(failure->message);
}

// ---- what is kept
// ------------------------------------------------------------------------------------------------------

/// @throws RunError
void Executor::watch_free_space(int64_t at_ns)
{
  constexpr int64_t between_looks = 1'000'000'000;
  if (keeps_.brake.min_free == 0 || rank_ != 0 || at_ns - looked_ns_ < between_looks)
    return;
  looked_ns_ = at_ns;
  if (const auto free = backend_.free_bytes(); free && *free < static_cast<double>(keeps_.brake.min_free))
    throw RunError(fmt::format(
        "The run ends because {} has {} free, less than the {} of --min-free; what it made is removed with --sweep.",
        backend_.place(), format_size(*free), format_size(static_cast<double>(keeps_.brake.min_free))));
}

/// @throws RunError
void Executor::watch_latency(const Request& request) const
{
  const OpKind kind     = request.op.kind;
  const int64_t most_ns = keeps_.brake.longest_ns[static_cast<size_t>(kind)];
  if (const int64_t took_ns = request.watch.ended_ns() - request.watch.started_ns(); took_ns > most_ns)
    throw RunError(fmt::format("The run ends because a {} on rank {} took {:.3g} s, more than the {:.3g} s of "
                               "--stop-latency; what it made is removed with --sweep.",
                               name_of(kind), rank_, static_cast<double>(took_ns) * 1e-9,
                               static_cast<double>(most_ns) * 1e-9));
}

/// Each is recorded once, also when the trace has no room for it.
void Executor::record_answered(int64_t start_ns, RankPhase& phase)
{
  const auto answered = lookahead_.unrecorded();
  for (const Request& one : answered)
    phase.recorder.record(one.op, rank_, timed(one.watch, start_ns, one.intended_ns));
  if (keeps_.trace)
    for (const Request& one : answered)
      trace(one.op, one.watch.started_ns(), one.watch.ended_ns());
  if (watches_) [[unlikely]]
    for (const Request& one : answered)
      watch_latency(one);

  const size_t alike = std::exchange(alike_.answered, 0);
  if (alike == 0)
    return;
  for (size_t i = 0; i <= alike; ++i)
    between_[i] = Ticks::to_ns(between_[i]);
  phase.recorder.record_stretch(alike_.op, rank_, start_ns, std::span(between_).first(alike + 1));
  for (size_t i = 0; keeps_.trace && i < alike; ++i, alike_.op.offset += alike_.step)
    trace(alike_.op, between_[i], between_[i + 1]);
}

void Executor::record_error(const Op& op, int error, uint64_t at, int64_t started_ns, int64_t ended_ns,
                            int64_t start_ns, RankPhase& phase)
{
  phase.recorder.record_error(op.kind);
  phase.errors.add({error, op.kind, rank_, 1, started_ns - start_ns, op.dataset, op.object, at, op.flags});
  if (keeps_.trace)
    trace(op, started_ns, ended_ns, error);
}

void Executor::trace(const Op& op, int64_t started_ns, int64_t ended_ns, int error)
{
  keeps_.trace->add(keeps_.traced_as, {op, started_ns - keeps_.begun_ns, ended_ns - started_ns, error});
}

void Executor::sweep(int64_t start_ns, RankPhase& phase)
{
  pacer_.begin_turns(start_ns);
  phase.failure = failure_of([&] { sweeper_.sweep(lookahead_, rank_, phase); });
  if (phase.failure)
    alarm_.raise();
  phase.seconds = static_cast<double>(now_ns() - start_ns) * 1e-9;
}

} // namespace iocast
