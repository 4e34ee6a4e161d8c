// SPDX-License-Identifier: Apache-2.0
#include "real/executor.hpp"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <utility>

namespace iocast {

namespace {
volatile std::sig_atomic_t signalled = 0;

constexpr int64_t alarm_every_ns = 250'000'000;

/// Nanoseconds since the start of the phase.
TimedOp timed(const Stopwatch& watch, int64_t start_ns)
{
  TimedOp result{watch.started_ns() - start_ns, watch.ended_ns() - start_ns, {}};
  for (size_t part = 0; part < watch.laps(); ++part)
    result.part_ns[part] = watch.part_ns(part);
  return result;
}
} // namespace

void catch_signals()
{
  struct sigaction action {};
  action.sa_handler = [](int) { signalled = 1; };
  // System calls go on: an interrupted one would count as a failed operation.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool stop_asked()
{
  return signalled != 0;
}

Executor::Executor(const Pattern& pattern, Backend& backend, uint32_t rank, Progress& progress, Alarm& alarm,
                   OpStreamWriter* dump)
    : pattern_(pattern), backend_(backend), rank_(rank), progress_(progress), alarm_(alarm), dump_(dump), name_(pattern)
{
  cursor_.rank = rank;
  for (const auto& [kind, count] : pattern.footprint().operations)
    if (count > 0)
      kinds_.push_back(kind);
}

/// The next operation of this phase.
bool Executor::take(Op& op)
{
  if (!pattern_.next(cursor_, op))
    return false;
  if (dump_)
    dump_->write(op);
  if (op.kind != OpKind::phase) [[likely]]
    return true;
  next_phase_ = op.object;
  return false;
}

std::optional<size_t> Executor::next_phase()
{
  if (!next_phase_) { // the very first, or the end
    Op op;
    take(op);
  }
  return std::exchange(next_phase_, std::nullopt);
}

RankPhase Executor::prepare() const
{
  RankPhase phase;
  for (const OpKind kind : kinds_)
    phase.recorder.of_kind(kind);
  return phase;
}

int Executor::call(const Op& op, Stopwatch& watch)
{
  switch (op.kind) {
    case OpKind::create:
      return backend_.create(name_, op.size, watch);
    case OpKind::stat:
      return backend_.stat(name_);
    case OpKind::read:
      return backend_.read(name_, op.size, watch);
    case OpKind::unlink:
      return backend_.unlink(name_);
    case OpKind::mkdir:
      return backend_.mkdir(name_);
    case OpKind::rmdir:
      return backend_.rmdir(name_);
    case OpKind::phase:
      break;
  }
  return EINVAL;
}

void Executor::run(int64_t start_ns, RankPhase& phase)
{
  phase.failure = failure_of([&] { run_operations(start_ns, phase); });
  if (phase.failure)
    alarm_.raise();
}

void Executor::run_operations(int64_t start_ns, RankPhase& phase)
{
  const Arrivals arrivals = pattern_.arrivals();
  const bool thinks       = arrivals.waiting_factor > 0;
  int64_t answered_ns     = start_ns;
  int64_t asks_again_ns   = 0; // after the think time that follows the last answer
  int64_t listens_ns      = start_ns + alarm_every_ns;
  while (true) {
    if (stop_asked()) [[unlikely]] {
      phase.cut = true;
      break;
    }
    auto& [op, watch] = asked_[answered_];
    if (!take(op))
      break;
    name_.point_at(op);
    if (thinks && asks_again_ns > 0) {
      sleep_until(asks_again_ns);
      phase.think_asked_seconds += static_cast<double>(asks_again_ns - answered_ns) * 1e-9;
      phase.think_actual_seconds += static_cast<double>(now_ns() - answered_ns) * 1e-9;
    }
    watch.start();
    const int error = call(op, watch);
    // One call ends here; a compound one has ended its last part itself, unless it failed before.
    if (watch.laps() == 0 || (error != 0 && watch.laps() < max_parts))
      watch.lap();
    answered_ns = watch.ended_ns();
    if (error != 0) [[unlikely]] {
      phase.recorder.record_error(op.kind);
      phase.errors.add({error, op.kind, rank_, 1, watch.started_ns() - start_ns, op.dataset, op.object});
    } else if (++answered_ == asked_.size()) {
      record_answered(start_ns, phase);
    }
    if (thinks)
      asks_again_ns =
          answered_ns + static_cast<int64_t>(arrivals.think_seconds(static_cast<double>(answered_ns - watch.started_ns())));
    progress_.done(answered_ns);
    if (answered_ns >= listens_ns) [[unlikely]] {
      listens_ns = answered_ns + alarm_every_ns;
      if (alarm_.heard()) {
        phase.cut = true;
        break;
      }
    }
  }
  record_answered(start_ns, phase);
  phase.seconds = static_cast<double>(answered_ns - start_ns) * 1e-9;
}

void Executor::record_answered(int64_t start_ns, RankPhase& phase)
{
  for (size_t i = 0; i < answered_; ++i)
    phase.recorder.record(asked_[i].op, rank_, timed(asked_[i].watch, start_ns));
  answered_ = 0;
}

void Executor::sweep(int64_t start_ns, RankPhase& phase)
{
  phase.failure = failure_of([&] {
    Op op;
    while (!(phase.cut = stop_asked()) && take(op))
      if (op.kind == OpKind::rmdir)
        sweep_dataset(op, phase);
  });
  if (phase.failure)
    alarm_.raise();
  phase.seconds = static_cast<double>(now_ns() - start_ns) * 1e-9;
}

void Executor::sweep_dataset(const Op& rmdir, RankPhase& phase)
{
  auto note = [&](const Op& op, int error) {
    if (error == 0)
      ++phase.swept;
    else if (error != ENOENT) {
      phase.recorder.record_error(op.kind);
      phase.errors.add({error, op.kind, rank_, 1, 0, op.dataset, op.object});
    }
  };
  name_.point_at(rmdir);
  for (const auto& found : backend_.list(name_.dataset())) {
    // Ours is what the pattern would call so; anything else stays, and the dataset with it.
    Op object(OpKind::unlink, rmdir.dataset, 0);
    const auto digits = found.find_last_not_of("0123456789") + 1;
    std::from_chars(found.data() + digits, found.data() + found.size(), object.object);
    name_.point_at(object);
    if (found == name_.object())
      note(object, backend_.unlink(name_));
  }
  note(rmdir, backend_.rmdir(name_));
}

} // namespace iocast
