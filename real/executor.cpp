// SPDX-License-Identifier: Apache-2.0
#include "real/executor.hpp"

#include "input/units.hpp"
#include "real/content.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <fmt/format.h>
#include <sched.h>
#include <utility>

namespace iocast {

namespace {
std::atomic<bool> signalled = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

constexpr int64_t alarm_every_ns = 250'000'000;
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

/// "rank3.item07" -> 3, 7
std::vector<uint64_t> numbers_in(const std::string& name)
{
  std::vector<uint64_t> numbers;
  const char* const end = name.data() + name.size();
  for (const char* at = name.data(); at < end;) {
    uint64_t number   = 0;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ptr == at) {
      ++at;
      continue;
    }
    if (parsed.ec == std::errc())
      numbers.push_back(number);
    at = parsed.ptr;
  }
  return numbers;
}
} // namespace

void catch_signals()
{
  struct sigaction action {};
  action.sa_handler = [](int) { signalled.store(true, std::memory_order_relaxed); };
  // System calls go on: an interrupted one would count as a failed operation.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN); // a service that hangs up is an error of the operation
}

bool stop_requested()
{
  return signalled.load(std::memory_order_relaxed);
}

Executor::Executor(const Pattern& pattern, Backend& backend, const Client& client, Progress& progress, Alarm& alarm,
                   const Keeps& keeps)
    : pattern_(pattern)
    , backend_(backend)
    , rank_(client.rank)
    , seed_(client.seed)
    , content_(client.content)
    , progress_(progress)
    , alarm_(alarm)
    , keeps_(keeps)
    , requests_(most_requests, Request(pattern))
    , swept_(pattern)
    , watchdog_(pattern, client.rank, keeps.patience)
    , group_(client.group)
{
  cursor_.rank         = rank_;
  const auto footprint = pattern.footprint();
  bool accesses        = false;
  for (const auto& [kind, count] : footprint.operations)
    if (count > 0 && kind != OpKind::think) {
      kinds_.push_back(kind);
      accesses = accesses || is_access(kind);
    }
  prepares_                     = backend.prepares_calls();
  watches_                      = keeps.brake.limits_latencies();
  constexpr double longest_pace = 1e18; // ns, 31 years
  if (keeps.brake.max_rate > 0)
    pace_ns_ = std::max<int64_t>(1, std::llround(std::min(longest_pace, 1e9 * keeps.clients / keeps.brake.max_rate)));
  int ranks = 1;
  MPI_Comm_size(group_, &ranks);
  together_ = backend.acts_together() && ranks > 1;
  if (footprint.steps)
    steps_.emplace(group_);
  if (accesses)
    backend.reserve(std::min(footprint.largest_size, most_reserved));
}

/// The next operation of this phase.
bool Executor::take(Op& op)
{
  if (!pattern_.next(cursor_, op))
    return false;
  if (op.kind != OpKind::phase) [[likely]]
    return true;
  next_phase_ = op.object;
  return false;
}

/// The next operations with their names: as many as there is room for, but none behind the first of a stretch of
/// accesses. Where the rank is cut short after that, look_back() is to follow. @return false at the end of the phase
bool Executor::form(int64_t start_ns, RankPhase& phase)
{
  record_answered(start_ns, phase);
  recorded_ = answered_ = formed_ = 0;
  formed_from_                    = cursor_;
  while (!over_ && formed_ < requests_.size()) {
    Request& next = requests_[formed_];
    if (!take(next.op)) {
      over_ = true;
      break;
    }
    ++formed_;
    if (next.op.kind <= OpKind::open)
      next.name.point_at(next.op);
    else if (Cursor behind = cursor_; streams_ && is_access(next.op.kind) && pattern_.stretch(behind, 1).count > 0)
      break;
  }
  return formed_ > 0;
}

/// The cursor stands behind the last operation that was issued, and before the end of the phase unless that was.
void Executor::look_back()
{
  if (answered_ < formed_ || (over_ && formed_ > 0)) {
    next_phase_.reset();
    cursor_ = formed_from_;
    Op passed;
    for (size_t i = 0; i < answered_; ++i)
      pattern_.next(cursor_, passed);
  }
  recorded_ = answered_ = formed_ = 0;
  over_                           = false;
}

/// Beyond an operation that is not to be recorded, or was already; those before it are.
void Executor::pass()
{
  recorded_ = ++answered_;
}

std::optional<size_t> Executor::next_phase()
{
  if (!next_phase_) { // the very first, or the end
    Op op;
    take(op);
  }
  phase_ = next_phase_.value_or(0);
  if (next_phase_ && keeps_.stream)
    keeps_.stream->write({OpKind::phase, 0, phase_});
  return std::exchange(next_phase_, std::nullopt);
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

/// What a call needs beside the name, and all that must not be timed.
int Executor::prepare(const Request& request)
{
  const Op& op = request.op;
  if (op.kind == OpKind::open) {
    const auto slot = open_.free_slot();
    slot_           = slot.value_or(0);
    return slot ? 0 : EMFILE;
  }
  if (op.kind < OpKind::open) {
    found_ = op.size;
    if (op.bytes() > 0 && content_)
      prepare_content(request.name, op);
    if (prepares_)
      backend_.prepare_call(request.name, op);
    return 0;
  }
  const auto slot = open_.find(op.dataset, op.object);
  if (!slot)
    return EBADF; // opening it has failed
  slot_ = *slot;
  if (is_access(op.kind))
    backend_.prepare(slot_, op);
  return 0;
}

/// Of a compound operation.
void Executor::prepare_content(const Name& name, Op op)
{
  if (op.kind == OpKind::append)
    backend_.stat(name, op.offset); // if there is no such object, the append will say so
  backend_.prepare(slot_, op);
}

int Executor::call(Request& request)
{
  const Op& op     = request.op;
  const Name& name = request.name;
  switch (op.kind) {
    case OpKind::create:
      return backend_.create(name, op.size, request.watch);
    case OpKind::stat:
      return backend_.stat(name, found_);
    case OpKind::read:
      return backend_.read(name, op.size, request.watch);
    case OpKind::unlink:
      return backend_.unlink(name);
    case OpKind::mkdir:
      return backend_.mkdir(name);
    case OpKind::rmdir:
      return backend_.rmdir(name);
    case OpKind::append:
      return backend_.append(name, op.size, request.watch);
    case OpKind::readdir:
      return backend_.readdir(name, found_);
    case OpKind::open:
      return backend_.open(name, op.flags, slot_);
    case OpKind::pwrite:
      return backend_.pwrite(slot_, op);
    case OpKind::pread:
      return backend_.pread(slot_, op);
    case OpKind::fsync:
      return backend_.fsync(slot_);
    case OpKind::close:
      return backend_.close(slot_);
    case OpKind::phase:
    case OpKind::think:
      break;
  }
  return EINVAL;
}

/// After a call: what it changed, and whether it brought what it had to.
int Executor::check(const Op& op, int error)
{
  wrong_at_ = op.offset;
  if (op.kind == OpKind::open) {
    if (together_ && op.is_joint())
      error = backend_.opened_together(slot_, error);
    if (error == 0)
      open_.opened(slot_, op);
  } else if (op.kind == OpKind::close && error != EBADF) {
    open_.closed(slot_);
  }
  if (error != 0)
    return error;
  if (op.kind == OpKind::readdir && found_ != op.size)
    return wrong_entries;
  if (!content_)
    return 0;
  if (op.kind == OpKind::stat && op.size > 0 && found_ != op.size)
    return wrong_size;
  if (op.kind == OpKind::read || op.kind == OpKind::pread)
    if (const auto wrong = content_->first_wrong(backend_.fetched(), op)) {
      wrong_at_ = *wrong;
      return wrong_content;
    }
  return 0;
}

/// One operation, timed and noted. @return when it was answered, in ticks
int64_t Executor::ask(Request& request, int64_t start_ns, RankPhase& phase)
{
  const Op& op     = request.op;
  Stopwatch& watch = request.watch;
  const bool plain = op.kind <= OpKind::rmdir && !content_ && !prepares_; // nothing but its call
  int error        = plain ? 0 : prepare(request);
  watchdog_.begins(++operations_, op);
  watch.start();
  if (error == 0) [[likely]]
    error = call(request);
  // One call ends here; a compound one has ended its last part itself, unless it failed before.
  if (watch.laps() == 0 || (error != 0 && watch.laps() < max_parts))
    watch.lap();
  watchdog_.answered(operations_);
  if (!plain)
    error = check(op, error);
  if (error == 0) [[likely]] {
    ++answered_;
  } else {
    record_answered(start_ns, phase); // a trace has them in order
    record_error(op, error, plain ? 0 : wrong_at_, watch.started_ns(), watch.ended_ns(), start_ns, phase);
    pass();
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
  Op op                 = requests_[answered_].op;
  const Cursor before   = cursor_;
  const Stretch stretch = pattern_.stretch(cursor_, most_alike - 1);
  if (stretch.count == 0)
    return ask(requests_[answered_], start_ns, phase);
  record_answered(start_ns, phase);
  alike_            = {op, stretch.step, 0};
  const bool writes = op.kind == OpKind::pwrite;
  int error         = prepare(requests_[answered_]);
  watchdog_.begins(operations_ + 1, op);
  between_[0] = Ticks::now();
  while (true) {
    watchdog_.begins(++operations_);
    if (error == 0) [[likely]]
      error = writes ? backend_.pwrite(slot_, op) : backend_.pread(slot_, op);
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
  if (request <= stretch.count) { // the cursor is to stand behind the last of them
    Op passed;
    cursor_ = before;
    for (uint32_t i = 1; i < request; ++i)
      pattern_.next(cursor_, passed);
  }
  const int64_t answered = between_[request];
  const int64_t began_ns = Ticks::to_ns(between_[request - 1]);
  record_answered(start_ns, phase);
  if (error != 0) [[unlikely]]
    record_error(op, error, op.offset, began_ns, Ticks::to_ns(answered), start_ns, phase);
  pass();
  return answered;
}

/// When this rank may begin under the brake's rate. Ranks take turns: the first operations of all would be a burst.
int64_t Executor::first_turn(int64_t start_ns) const
{
  return start_ns + static_cast<int64_t>(static_cast<double>(pace_ns_) / keeps_.clients * rank_);
}

/// Sleeps to a moment, and hears in the meantime when the run has to end. With `thinks_since_ns` the time from there on
/// is think time, up to the moment. The only place where a rank waits. @return whether it may go on
bool Executor::pause_until(int64_t moment_ns, RankPhase& phase, std::optional<int64_t> thinks_since_ns)
{
  bool goes_on  = true;
  int64_t at_ns = now_ns();
  while (goes_on && at_ns < moment_ns) {
    sleep_until(std::min(moment_ns, at_ns + alarm_every_ns));
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

/// Hands over steps, and sleeps until the one begins that the operation waits for. @return whether it may go on
bool Executor::pace(const Op& op, int64_t start_ns, RankPhase& phase)
{
  constexpr int64_t nap_ns = 50'000;
  steps_->hand_over(op, now_ns() - start_ns);
  steps_->listen();
  if (op.offset == StepTimes::no_step)
    return true;
  int64_t listens_ns = now_ns() + alarm_every_ns;
  for (; !steps_->times().is_known(op.offset); steps_->listen()) {
    const int64_t at_ns = now_ns();
    if (at_ns >= listens_ns) {
      listens_ns = at_ns + alarm_every_ns;
      if (stop_requested() || alarm_.heard()) {
        interrupt(phase);
        return false;
      }
    }
    sleep_until(at_ns + nap_ns);
  }
  return pause_until(start_ns + steps_->times().begin_ns(op.offset), phase);
}

/// A signal has come, or word that another rank can't go on.
void Executor::interrupt(RankPhase& phase)
{
  phase.interrupted = true;
  if (stop_requested())
    alarm_.raise();
}

// ---- a phase
// ----------------------------------------------------------------------------------------------------------

void Executor::run(int64_t start_ns, int64_t deadline_ns, RankPhase& phase)
{
  const Arrivals& arrivals = pattern_.arrivals_of(rank_);
  streams_ = !arrivals.thinks() && !arrivals.is_open() && !content_ && !together_ && !keeps_.stream && pace_ns_ == 0 &&
             !watches_;
  met_at_last_ = false;
  cut_after_   = false;
  if (steps_)
    steps_->begin_phase();
  phase.failure = failure_of([&] {
    if (keeps_.trace)
      trace({OpKind::phase, 0, phase_}, start_ns, start_ns);
    run_operations(start_ns, deadline_ns, phase);
  });
  watchdog_.answered(operations_); // what failed was, too
  const auto unrecorded = failure_of([&] { record_answered(start_ns, phase); });
  phase.failure         = phase.failure ? phase.failure : unrecorded;
  look_back();
  if (phase.failure)
    alarm_.raise();
  if (const auto failure = failure_of([&] { leave(start_ns, phase); }); failure && !phase.failure) {
    phase.failure = failure;
    alarm_.raise();
  }
  phase.reached = pattern_.reached(cursor_);
  if (steps_) {
    phase.first_step_seconds = static_cast<double>(steps_->times().first_end_ns()) * 1e-9;
    steps_->end_phase();
  }
  progress_.reached(operations_, now_ns());
}

void Executor::run_operations(int64_t start_ns, int64_t deadline_ns, RankPhase& phase)
{
  const Arrivals& arrivals = pattern_.arrivals_of(rank_);
  const bool thinks        = arrivals.thinks();
  int64_t intended_ns      = 0; // when an operation is meant to start in an open loop, since the start of the phase
  bool first               = true;
  int64_t streamed_ns      = TimedOp::not_intended; // the same, from the stream
  const int64_t began      = Ticks::from_ns(start_ns);
  int64_t answered         = began; // what happens at every operation is in ticks, the rest in nanoseconds
  int64_t asks_again_ns    = 0;     // the end of the think time that follows the last answer; 0: there is none
  int64_t looks_ns         = std::min(start_ns + alarm_every_ns, deadline_ns);
  int64_t looks            = Ticks::from_ns(looks_ns);
  int64_t begins_ns        = first_turn(start_ns);
  int64_t admitted_ns      = -pace_ns_; // when the brake let the last operation of an open loop come, since the start
  while (true) {
    if (stop_requested()) [[unlikely]] {
      interrupt(phase);
      break;
    }
    if (answered_ == formed_ && !form(start_ns, phase))
      break;
    Request& request = requests_[answered_];
    const Op& op     = request.op;
    if (thinks && asks_again_ns > 0 && !pause_until(std::exchange(asks_again_ns, 0), phase, Ticks::to_ns(answered)))
      break;
    request.intended_ns = std::exchange(streamed_ns, TimedOp::not_intended);
    if (arrivals.is_open() && op.kind != OpKind::think) {
      intended_ns += arrivals.gap_ns(seed_, rank_, operations_, first);
      request.intended_ns = intended_ns;
      if (!std::exchange(first, false) && start_ns + intended_ns >= deadline_ns && !(together_ && op.is_joint())) {
        phase.cut = pause_until(deadline_ns, phase);
        break;
      }
      if (!pause_until(start_ns + intended_ns, phase))
        break;
    }
    if (pace_ns_ > 0 && op.kind != OpKind::think) [[unlikely]] {
      const int64_t until_ns = std::min(begins_ns, deadline_ns);
      if (request.intended_ns != TimedOp::not_intended)
        request.intended_ns = admitted_ns = Brake::admitted_ns(pace_ns_, request.intended_ns, admitted_ns,
                                                               begins_ns - start_ns, Ticks::to_ns(answered) - start_ns);
      if (!pause_until(until_ns, phase))
        break;
      begins_ns = std::max(begins_ns, now_ns()) + pace_ns_;
      if (until_ns >= deadline_ns && !(together_ && op.is_joint())) {
        phase.cut = true;
        break;
      }
    }
    const bool joint = together_ && op.is_joint();
    if (joint && !may_begin(Ticks::to_ns(answered) < deadline_ns, phase))
      break;
    if (keeps_.stream)
      keeps_.stream->write(op);
    if (steps_)
      steps_->listen();
    int64_t now  = 0;
    bool goes_on = true;
    if (op.kind == OpKind::think) {
      const int64_t from_ns = now_ns();
      record_answered(start_ns, phase); // in the meantime, and in order
      pass();
      if (op.flags & paced) {
        goes_on  = pace(op, start_ns, phase);
        answered = Ticks::from_ns(now_ns());
      } else if (op.flags & until) {
        streamed_ns = static_cast<int64_t>(op.size);
        goes_on     = pause_until(std::min(start_ns + streamed_ns, deadline_ns), phase);
      } else {
        const int64_t length_ns = std::min(static_cast<int64_t>(op.size), std::max<int64_t>(0, deadline_ns - from_ns));
        goes_on                 = pause_until(from_ns + length_ns, phase, from_ns);
      }
      const int64_t until_ns = now_ns();
      now                    = Ticks::from_ns(until_ns);
      if (keeps_.trace)
        trace(op, from_ns, until_ns);
    } else if (streams_ && is_access(op.kind) && answered_ + 1 == formed_ &&
               request.intended_ns == TimedOp::not_intended) {
      now = answered = ask_stretch(looks, start_ns, phase);
    } else {
      now = answered = ask(request, start_ns, phase);
      if (thinks) {
        const auto response_ns = static_cast<double>(request.watch.ended_ns() - request.watch.started_ns());
        asks_again_ns          = request.watch.ended_ns() +
                        std::llround(1e9 * arrivals.think_seconds(response_ns * 1e-9, seed_, rank_, operations_));
      }
    }
    if (!goes_on) [[unlikely]]
      break;
    if (now >= looks || asks_again_ns >= looks_ns || cut_after_) [[unlikely]] {
      const int64_t at_ns = Ticks::to_ns(now);
      // After what all did together the others may be about to begin the next such operation: so is this rank.
      if (cut_after_ || (!joint && std::max(at_ns, asks_again_ns) >= deadline_ns)) {
        phase.cut = true;
        break;
      }
      record_answered(start_ns, phase);
      progress_.reached(operations_, at_ns);
      watch_free_space(at_ns);
      const int64_t answered_ns = Ticks::to_ns(answered);
      Ticks::align();
      answered = answered == began ? began : Ticks::from_ns(answered_ns);
      looks_ns = std::min(at_ns + alarm_every_ns, std::max(deadline_ns, at_ns + 1));
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

// ---- ranks that act together
// ------------------------------------------------------------------------------------------

/// Before an operation of the whole group. Nobody may be left alone in it: when one of them has stopped, none begins.
/// When the time of one is over that has not stopped yet, they do this one and then stop together.
bool Executor::may_begin(bool in_time, RankPhase& phase)
{
  const int words   = meet(in_time ? begins : begins | late);
  phase.interrupted = words & fails;
  phase.cut         = !phase.interrupted && words & left;
  cut_after_        = words & late;
  return !(words & (fails | left));
}

/// The words of all ranks of the group.
int Executor::meet(int word)
{
  int words = 0;
  MPI_Request all;
  MPI_Iallreduce(&word, &words, 1, MPI_INT, MPI_BOR, group_, &all);
  int64_t listens_ns = now_ns() + alarm_every_ns;
  for (int done = 0; MPI_Test(&all, &done, MPI_STATUS_IGNORE), !done; sched_yield())
    if (const int64_t now = now_ns(); now >= listens_ns) {
      listens_ns = now + alarm_every_ns;
      alarm_.heard(); // and passes it on
    }
  met_at_last_ = words != begins;
  if (words == (begins | ended) || words == (begins | late | ended))
    throw RunError(fmt::format(
        "The pattern gives the ranks of group {} different numbers of shared and collective operations in one "
        "phase; this is an error of the pattern.",
        pattern_.group_of(rank_)));
  return words;
}

/// The end of a phase for this rank.
void Executor::leave(int64_t start_ns, RankPhase& phase)
{
  bool closes = phase.failure || phase.interrupted || phase.cut;
  if (together_ && !met_at_last_) {
    const int words = meet(phase.failure || phase.interrupted ? fails : phase.cut ? left : ended);
    closes          = words != ended; // what is shared is closed by all
  }
  if (closes)
    close_all(start_ns, phase);
  if (!phase.cut)
    return;
  pattern_.cut(cursor_);
  if (Op op; take(op))
    throw RunError(fmt::format("The pattern goes on with {} after its phase was cut; this is an error of the pattern.",
                               name_of(op.kind)));
}

/// Closes what is open, whatever comes: what is shared is closed by all. When nothing went wrong, this is work of the
/// phase.
void Executor::close_all(int64_t start_ns, RankPhase& phase)
{
  std::optional<Failure> failure = phase.failure;
  for (const Op& op : open_.closes()) {
    if (failure || phase.interrupted) {
      const Slot slot = *open_.find(op.dataset, op.object);
      open_.closed(slot);
      failure_of([&] { backend_.close(slot); }); // the first error is reported
      continue;
    }
    failure = failure_of([&] {
      Request& request    = requests_[0];
      request.op          = op;
      request.intended_ns = TimedOp::not_intended;
      phase.seconds       = static_cast<double>(Ticks::to_ns(ask(request, start_ns, phase)) - start_ns) * 1e-9;
      record_answered(start_ns, phase);
      recorded_ = answered_ = 0;
    });
  }
  if (failure && !phase.failure)
    throw RunError(failure->message);
}

// ---- brakes
// -----------------------------------------------------------------------------------------------------------

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
void Executor::watch_latencies(size_t first, size_t last) const
{
  for (size_t i = first; i < last; ++i) {
    const OpKind kind     = requests_[i].op.kind;
    const int64_t most_ns = keeps_.brake.longest_ns[static_cast<size_t>(kind)];
    if (const int64_t took_ns = requests_[i].watch.ended_ns() - requests_[i].watch.started_ns(); took_ns > most_ns)
      throw RunError(fmt::format("The run ends because a {} on rank {} took {:.3g} s, more than the {:.3g} s of "
                                 "--stop-latency; what it made is removed with --sweep.",
                                 name_of(kind), rank_, static_cast<double>(took_ns) * 1e-9,
                                 static_cast<double>(most_ns) * 1e-9));
  }
}

/// Each is recorded once, also when the trace has no room for it.
void Executor::record_answered(int64_t start_ns, RankPhase& phase)
{
  const size_t first = std::exchange(recorded_, answered_);
  for (size_t i = first; i < answered_; ++i)
    phase.recorder.record(requests_[i].op, rank_, timed(requests_[i].watch, start_ns, requests_[i].intended_ns));
  for (size_t i = first; keeps_.trace && i < answered_; ++i)
    trace(requests_[i].op, requests_[i].watch.started_ns(), requests_[i].watch.ended_ns());
  if (watches_) [[unlikely]]
    watch_latencies(first, answered_);

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

// ---- what an unfinished run has left
// ----------------------------------------------------------------------------------

void Executor::sweep(int64_t start_ns, RankPhase& phase)
{
  turn_ns_      = first_turn(start_ns);
  phase.failure = failure_of([&] {
    Op op;
    while (!phase.interrupted && !(phase.interrupted = stop_requested()) && take(op))
      if (op.kind == OpKind::unlink)
        sweep_one(op, phase);
      else if (op.kind == OpKind::rmdir)
        sweep_dataset(op, phase);
  });
  if (phase.failure)
    alarm_.raise();
  phase.seconds = static_cast<double>(now_ns() - start_ns) * 1e-9;
}

void Executor::sweep_one(const Op& op, RankPhase& phase)
{
  if (pace_ns_ > 0) {
    if (!pause_until(turn_ns_, phase))
      return; // the caller hears it, too
    turn_ns_ = std::max(turn_ns_, now_ns()) + pace_ns_;
  }
  swept_.point_at(op);
  const int error = op.kind == OpKind::rmdir ? backend_.rmdir(swept_) : backend_.remove_left(swept_);
  if (error == 0)
    ++phase.swept;
  else if (error != ENOENT && error != EISDIR) { // a directory is left to its own rmdir
    phase.recorder.record_error(op.kind);
    phase.errors.add({error, op.kind, rank_, 1, 0, op.dataset, op.object, 0});
  }
}

/// The stream has removed what it would remove after a whole run; what else lies there is listed. Ours is what the
/// pattern would call so, and the number of an object is one of those in its name; anything else stays, and the dataset
/// with it.
void Executor::sweep_dataset(const Op& rmdir, RankPhase& phase)
{
  swept_.point_at(rmdir);
  for (const auto& found : backend_.list(swept_.dataset()))
    for (const uint64_t number : numbers_in(found)) {
      const Op object(OpKind::unlink, rmdir.dataset, number);
      swept_.point_at(object);
      if (found == swept_.object()) {
        sweep_one(object, phase);
        break;
      }
    }
  sweep_one(rmdir, phase);
}

} // namespace iocast
