// SPDX-License-Identifier: Apache-2.0
#include "models/system.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace iocast {

namespace {
int64_t to_ns(double seconds)
{
  return std::llround(seconds * 1e9);
}
} // namespace

System::System(const Platform& platform, const Pattern& pattern, const Placement& placement, const Options& options,
               std::function<void(const FinishedPhase&)> on_phase)
    : platform_(platform)
    , pattern_(pattern)
    , placement_(placement)
    , options_(options)
    , on_phase_(std::move(on_phase))
    , jobs_(placement.ranks)
    , links_(placement.ranks, nobody)
    , clients_(placement.ranks)
    , limits_(platform.limits.size())
    , stalls_at_(platform.stations.size())
    , sums_(platform.stations.size())
    , background_count_(platform.background.size())
{
  const auto footprint = pattern.footprint();
  for (const auto& [kind, count] : footprint.operations)
    if (count > 0 && kind != OpKind::think && !platform.routes[static_cast<size_t>(kind)].served)
      throw InputError(fmt::format("The platform '{}' has no route for the operation '{}', which the workload asks for; add one "
                                   "under 'operations'.",
                                   platform.file, name_of(kind)));
  if (placement.ranks >= Calendar::owners / 2) // the rest is for the work of others
    throw InputError(fmt::format("{} clients are more than the simulator can tell apart; the most is {}.", placement.ranks, Calendar::owners / 2 - 1));
  uint32_t first = 0;
  for (const auto& spec : platform.stations) {
    stations_.emplace_back(spec, placement.nodes(), first);
    first_instances_.push_back(first);
    first += static_cast<uint32_t>(stations_.back().instances.size());
  }
  for (size_t i = 0; i < platform.limits.size(); ++i)
    limits_[i].resize(platform.limits[i].per == Per::node ? placement.nodes() : 1);
  for (uint32_t i = 0; i < platform.stalls.size(); ++i) {
    stalls_.emplace_back(platform.stalls[i], options.seed, i);
    stalls_at_[platform.stalls[i].station].push_back(i);
  }
  for (uint32_t i = 0; i < platform.failures.size(); ++i) {
    const auto& failure = platform.failures[i];
    failures_.emplace_back(failure, options.seed, i);
    stations_[failure.station].outages.resize(platform.stations[failure.station].count);
    exposed_.resize(placement.ranks);
  }
  for (const auto& work : platform.background) {
    Step step;
    step.kind   = Step::Kind::visit;
    step.target = work.station;
    step.law    = work.demand;
    beside_steps_.push_back(step);
    // Those that are served at once are not too many, nor those that came during some stalls.
    const auto& spec = platform.stations[work.station];
    most_background_ += size_t{spec.servers} * spec.count;
    for (const auto& stall : platform.stalls)
      most_background_ += static_cast<size_t>(10 * work.rate * stall.length);
    for (const auto& failure : platform.failures)
      most_background_ += static_cast<size_t>(10 * work.rate * (failure.length + failure.timeout));
  }
  make_buffers();
  make_pools();
  make_caches();
  make_extents();
  if (platform.speed_sigma > 0)
    for (uint32_t node = 0; node < placement.nodes(); ++node)
      node_speed_.push_back(static_cast<float>(
          std::exp(platform.speed_sigma * normal_quantile(to_uniform(random_words(options.seed, Stream::node_speed, node, 0)[0])))));
  if (!options.op_stream_directory.empty())
    for (uint32_t rank = 0; rank < placement.ranks; ++rank)
      op_streams_.emplace_back(options.op_stream_directory, rank);
  if (std::any_of(platform.stations.begin(), platform.stations.end(),
                  [](const auto& spec) { return spec.discipline == Discipline::timeslice; }))
    slices_.resize(placement.ranks);
  for (const double bandwidth :
       {platform.network.node_bandwidth, platform.network.server_bandwidth, platform.network.backbone_bandwidth})
    if (bandwidth > 0)
      slowest_link_ = std::min(slowest_link_, bandwidth);
  for (size_t i = 0; i < stations_.size(); ++i) {
    const auto& spec          = stations_[i].spec;
    uint64_t most_at_once    = placement.ranks_per_node;
    for (const auto& buffer : platform.buffers)
      if (std::any_of(buffer.drain.begin(), buffer.drain.end(), [&](const Step& step) { return step.kind == Step::Kind::visit && step.target == i; }))
        most_at_once += buffer.at_once;
    for (const auto& pool : platform.pools)
      if (std::any_of(pool.refill.begin(), pool.refill.end(), [&](const Step& step) { return step.kind == Step::Kind::visit && step.target == i; }))
        most_at_once += pool.at_once;
    stations_[i].never_waits = spec.per == Per::node && spec.discipline == Discipline::fcfs && !stations_[i].varies() &&
                               spec.servers >= most_at_once && stalls_at_[i].empty();
  }
  const auto asks_for = [&](OpKind wanted) {
    const auto& operations = footprint.operations;
    return std::any_of(operations.begin(), operations.end(), [&](const auto& o) { return o.first == wanted && o.second > 0; });
  };
  bool sleeps = asks_for(OpKind::think);
  bool open   = sleeps;
  for (uint32_t rank = 0; rank < placement.ranks; ++rank) {
    const auto& arrivals = pattern.arrivals_of(rank);
    open                 = open || arrivals.is_open();
    sleeps               = sleeps || arrivals.thinks() || arrivals.is_open();
  }
  if (sleeps)
    wake_slowdown_ = platform.wake_slowdown;
  if (open)
    intents_.resize(placement.ranks);
  if (asks_for(OpKind::open))
    for (uint32_t rank = 0; rank < placement.ranks; ++rank) {
      const uint32_t group = pattern.group_of(rank);
      groups_.resize(std::max<size_t>(groups_.size(), group + size_t{1}));
      ++groups_[group].size;
    }
  const auto& phases = pattern.phases();
  if (options.time_limits && std::any_of(phases.begin(), phases.end(), [](const Phase& phase) { return phase.most_seconds > 0; }))
    open_.resize(placement.ranks);
  for (uint32_t rank = 0; rank < placement.ranks; ++rank) {
    clients_[rank].cursor.rank = rank;
    jobs_[rank].owner          = placement.node_of(rank);
  }
}

void System::start()
{
  for (uint32_t which = 0; which < platform_.background.size(); ++which)
    schedule_background(which);
  for (uint32_t which = 0; which < failures_.size(); ++which)
    push(failures_[which].next(), EventKind::failure, which);
  for (uint32_t rank = 0; rank < placement_.ranks; ++rank)
    start_op(rank);
}

bool System::run(double horizon, uint64_t most_events)
{
  const uint64_t stop = most_events == UINT64_MAX ? UINT64_MAX : events_ + most_events;
  while (!finished_ && !calendar_.empty()) {
    const double time = calendar_.next_time();
    if (time > horizon || (time > now_ && !new_transfers_.empty()))
      return true;
    if (events_ >= stop)
      return false;
    const auto event = calendar_.pop();
    if (!calendar_.empty() && is_client(calendar_.top().who))
      prefetch(calendar_.top().who);
    now_ = event.time;
    ++events_;
    handle(event);
    while (!granted_.empty()) {
      const JobId job = granted_.back();
      granted_.pop_back();
      ++jobs_[job].at;
      advance(job);
    }
    if (precise_ && !finished_) [[unlikely]] {
      think_actual_ += thinking_ * now_;
      end_phase();
      new_transfers_.clear();
      finished_ = true;
    }
  }
  return true;
}

void System::handle(const Calendar::Event& event)
{
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::wake:
      wake(event.who);
      break;
    case EventKind::resume:
      if (has_op(event.who))
        advance(event.who);
      else
        resume_part(event.who);
      break;
    case EventKind::served:
      if (!is_stale(event))
        served(event.who);
      break;
    case EventKind::slice_over:
      if (jobs_[event.who].in_timeslice)
        slice_over(event.who);
      break;
    case EventKind::shared_departure:
      shared_departure(event.who);
      break;
    case EventKind::stall_over: {
      if (is_stale(event))
        break;
      const JobId id = event.who;
      sums_of(id).stall += now_ - jobs_[id].since;
      jobs_[id].since = now_;
      if (platform_.stations[step_of(id).target].discipline == Discipline::timeslice)
        enter_timeslice(id);
      else
        take_lock(id);
      break;
    }
    case EventKind::background:
      background_arrival(event.who);
      break;
    case EventKind::lingered:
      lingered(event.who);
      break;
    case EventKind::failure: // numbers beyond the failures are jobs
      if (event.who < failures_.size())
        fail(event.who);
      else
        ask_again(event.who - static_cast<uint32_t>(failures_.size()));
      break;
  }
}

// ---- an operation's life ----------------------------------------------------------------------------------------------

/// Takes the next operation of the client's stream; false when there is none to start now (a barrier, a wait, or the end).
bool System::pull_op(JobId id)
{
  Client& client = clients_[id];
  const bool over = was_cut(id);
  if (over && !open_[id].closes.empty()) {
    client.op = open_[id].closes.front();
    open_[id].closes.erase(open_[id].closes.begin());
    return begin_op(id, client.cursor);
  }
  if (now_ >= deadline_ && !over && may_be_cut(id)) [[unlikely]]
    return cut(id);
  const Cursor before = client.cursor;
  const bool more     = pattern_.next(client.cursor, client.op);
  if (!more || client.op.kind == OpKind::phase) {
    if (more && !op_streams_.empty())
      op_streams_[id].write(client.op);
    ended_ += !more;
    if (!groups_.empty()) {
      Group& group = groups_[pattern_.group_of(id)];
      ++group.ended;
      gather(group);
    }
    reach_barrier();
    return false;
  }
  if (over) [[unlikely]]
    throw RunError(fmt::format("The pattern goes on with {} after its phase was cut; this is an error of the pattern.", name_of(client.op.kind)));
  return begin_op(id, before);
}

/// False when the operation has to wait, or is none that the platform sees.
bool System::begin_op(JobId id, const Cursor& before)
{
  if (!intents_.empty() && !keep_to_plan(id, before))
    return false;
  return start_pulled_op(id, before);
}

/// In an open loop: false when it is too early for the operation that was pulled.
bool System::keep_to_plan(JobId id, const Cursor& before)
{
  const Op& op             = clients_[id].op;
  Intent& intent           = intents_[id];
  const Arrivals& arrivals = pattern_.arrivals_of(id);
  if (op.kind == OpKind::think || !arrivals.is_open() || was_cut(id))
    return true;
  const bool first = std::exchange(intent.first, false);
  intent.ns += arrivals.gap_ns(options_.seed, id, clients_[id].operations, first);
  intent.counts      = true;
  const double start = phase_start_ + static_cast<double>(intent.ns) * 1e-9;
  if (start <= now_)
    return true;
  if (start >= deadline_ && !first && may_be_cut(id)) { // it will not be started in this phase
    clients_[id].cursor = before;
    intent.counts       = false;
    intent.waits        = Intent::Waits::to_go_on;
    push(deadline_, EventKind::wake, id);
    return false;
  }
  intent.waits  = Intent::Waits::to_start;
  intent.before = before;
  push(start + platform_.think_overshoot, EventKind::wake, id);
  return false;
}

bool System::start_pulled_op(JobId id, const Cursor& before)
{
  Client& client  = clients_[id];
  Job& job        = jobs_[id];
  job.kind        = client.op.kind;
  job.at          = 0;
  job.draws       = 0;
  job.parts_done  = 0;
  client.op_start = now_;
  if (job.kind > OpKind::rmdir) {
    if (together(id))
      return join(id, before);
    begun(id);
    if (job.kind == OpKind::think) {
      const double seconds = static_cast<double>(client.op.size) * 1e-9;
      if (!(client.op.flags & until)) {
        trace(id, now_, now_ + seconds);
        think(id, seconds);
        return false;
      }
      Intent& intent   = intents_[id];
      intent.ns        = static_cast<int64_t>(client.op.size);
      intent.counts    = true;
      const double end = phase_start_ + seconds;
      trace(id, now_, std::max(now_, end));
      if (end <= now_)
        return pull_op(id);
      intent.waits = Intent::Waits::to_go_on;
      push(std::min(end + platform_.think_overshoot, std::max(now_, deadline_)), EventKind::wake, id);
      return false;
    }
  } else if (!op_streams_.empty()) {
    op_streams_[id].write(client.op);
  }
  return true;
}

void System::start_op(JobId id)
{
  if (pull_op(id))
    advance(id);
}

/// The think time is over, or the moment of an operation has come; what waking up costs comes before the next operation and is in nobody's response time.
void System::wake(JobId id)
{
  Job& job = jobs_[id];
  job.kind  = OpKind::phase;
  job.at    = 0;
  job.draws = 0;
  if (platform_.routes[0].served) {
    advance(id);
  } else if (awake(id)) {
    advance(id);
  }
}

/// False when there is no operation to start yet.
bool System::awake(JobId id)
{
  if (!intents_.empty() && intents_[id].waits != Intent::Waits::no)
    return std::exchange(intents_[id].waits, Intent::Waits::no) == Intent::Waits::to_start ? start_pulled_op(id, intents_[id].before) : pull_op(id);
  think_actual_ += now_;
  --thinking_;
  return pull_op(id);
}

/// Goes through the route until something must be waited for. Time that nobody else can lengthen (delays, stations that never
/// make anyone wait) is added up and costs one event.
void System::advance(JobId id)
{
  double ahead = 0;
  for (;;) {
    Job& job         = jobs_[id];
    const Step& step = step_of(id);
    switch (step.kind) {
      case Step::Kind::delay:
        ahead += draw(id, step);
        ++job.at;
        continue;
      case Step::Kind::visit:
        if (stations_[step.target].never_waits && step.lock < 0) {
          const double work = work_of(id, step);
          VisitSums& sums   = sums_of(id);
          ++sums.visits;
          sums.total += work;
          ahead += work;
          ++job.at;
          continue;
        }
        break;
      case Step::Kind::transfer:
        if (!is_flow(id) && !stations_[step.target].outages.any()) {
          ahead += step.stripes == Step::spanned ? spanned_transfer_seconds(id, step) : transfer_seconds(id);
          ++job.at;
          continue;
        }
        break;
      case Step::Kind::jump:
        job.at = static_cast<uint16_t>(job.at + step.jump);
        continue;
      case Step::Kind::end_part: {
        Client& client   = clients_[id];
        int64_t part_ns  = to_ns(now_ + ahead - client.op_start);
        for (uint8_t part = 0; part < job.parts_done; ++part)
          part_ns -= client.part_ns[part];
        client.part_ns[job.parts_done++] = part_ns;
        ++job.at;
        continue;
      }
      default:
        break;
    }
    if (ahead > 0) {
      push(now_ + ahead, EventKind::resume, id);
      if (step.kind == Step::Kind::release)
        if (const JobId soon = limit_for(id, step).front(); soon != nobody)
          prefetch(soon);
      return;
    }
    switch (step.kind) {
      case Step::Kind::visit:
        begin_visit(id, step);
        return;
      case Step::Kind::seize:
        if (!limit_for(id, step).acquire(links_, id, platform_.limits[step.target].slots))
          return;
        ++job.at;
        break;
      case Step::Kind::release:
        if (const JobId next = limit_for(id, step).release(links_); next != nobody) {
          granted_.push_back(next);
          prefetch(next);
        }
        ++job.at;
        break;
      case Step::Kind::transfer:
        if (step.stripes == Step::spanned)
          split_transfer(id, step);
        else if (begin_transfer(id, step))
          ++job.at;
        return;
      case Step::Kind::enter:
      case Step::Kind::flush:
      case Step::Kind::take:
      case Step::Kind::drained:
        if (!at_buffer(id, step))
          return;
        break;
      case Step::Kind::look:
        look_up(id, step);
        break;
      case Step::Kind::recalled:
        job.at = static_cast<uint16_t>(job.at + (job.recalled ? 1 : step.jump));
        break;
      case Step::Kind::end: {
        if (job.kind == OpKind::phase) {
          if (!awake(id))
            return;
          break;
        }
        if (clients_[id].op.is_joint() && !part(id))
          return;
        finish_op(id);
        const double response = now_ - clients_[id].op_start;
        const double seconds  = was_cut(id) ? 0 : pattern_.arrivals_of(id).think_seconds(response, options_.seed, id, clients_[id].operations);
        if (seconds > 0) {
          if (now_ + (seconds + platform_.think_overshoot) < deadline_ || !may_be_cut(id)) {
            think(id, seconds);
            return;
          }
          if (!cut(id)) // it would sleep until the phase is over
            return;
          break;
        }
        if (!pull_op(id))
          return;
        break;
      }
      default:
        break;
    }
  }
}

void System::think(JobId id, double seconds)
{
  const double end = std::max(now_, std::min(now_ + (seconds + platform_.think_overshoot), deadline_));
  think_asked_ += std::min(seconds, end - now_);
  think_actual_ -= now_; // until the next operation starts
  ++thinking_;
  push(end, EventKind::wake, id);
}

void System::finish_op(JobId id)
{
  Client& client = clients_[id];
  TimedOp timed{to_ns(client.op_start - phase_start_), to_ns(now_ - phase_start_), client.part_ns};
  if (!intents_.empty() && std::exchange(intents_[id].counts, false))
    timed.intended_ns = intents_[id].ns;
  recorder_->record(client.op, id, timed);
  trace(id, client.op_start, now_);
  if (watch_ && watch_->add(client.op.kind, timed.end_ns - timed.start_ns, now_)) [[unlikely]]
    precise_ = true;
  client.last_answer = now_;
  ++client.operations;
  ++requests_;
}

void System::trace(JobId id, double start, double end) const
{
  if (options_.trace)
    options_.trace->add(id, {clients_[id].op, to_ns(start), to_ns(end) - to_ns(start), 0});
}

void System::reach_barrier()
{
  if (++waiting_at_barrier_ < placement_.ranks)
    return;
  waiting_at_barrier_ = 0;
  if (phase_ >= 0)
    end_phase();
  if (ended_ == placement_.ranks) {
    finished_ = true;
    check_nothing_is_held();
  } else {
    begin_phase();
  }
}

void System::begin_phase()
{
  ++phase_;
  phase_start_  = now_;
  think_asked_  = 0;
  think_actual_ = 0;
  cut_ranks_    = 0;
  const double most_seconds = pattern_.phases()[static_cast<size_t>(phase_)].most_seconds;
  deadline_     = options_.time_limits && most_seconds > 0 ? now_ + most_seconds : std::numeric_limits<double>::infinity();
  for (auto& group : groups_) {
    group.ended      = 0;
    group.stopped    = false;
    group.cuts_after = false;
  }
  for (auto& open : open_)
    open.cut = false;
  for (auto& intent : intents_)
    intent = {};
  if (options_.trace)
    for (uint32_t rank = 0; rank < placement_.ranks; ++rank)
      options_.trace->add(rank, {{OpKind::phase, 0, static_cast<uint64_t>(phase_)}, to_ns(now_), 0, 0});
  recorder_     = std::make_unique<PhaseRecorder>();
  watch_        = pattern_.phases()[static_cast<size_t>(phase_)].name == options_.precision_phase ? options_.precision : nullptr;
  if (watch_)
    watch_->begin(now_);
  sums_.assign(platform_.stations.size(), {});
  for (auto& client : clients_)
    client.last_answer = now_;
  for (uint32_t rank = 0; rank < placement_.ranks; ++rank)
    start_op(rank);
}

void System::end_phase()
{
  std::vector<double> rank_seconds;
  rank_seconds.reserve(placement_.ranks);
  double end = phase_start_;
  for (const auto& client : clients_) {
    rank_seconds.push_back(client.last_answer - phase_start_);
    end = std::max(end, client.last_answer);
  }
  if (pattern_.phases()[static_cast<size_t>(phase_)].most_seconds > 0) {
    uint64_t furthest = 0;
    for (const auto& client : clients_)
      furthest = std::max(furthest, pattern_.reached(client.cursor));
    for (auto& client : clients_)
      pattern_.agree(client.cursor, furthest);
  }
  recorder_->trim_slow();
  check_buffers();
  check_caches();
  check_pools();
  check_extents();
  on_phase_({static_cast<size_t>(phase_), phase_start_, end, std::move(rank_seconds), think_asked_, think_actual_, cut_ranks_, watch_ != nullptr, *recorder_, sums_, buffer_sums_, cache_sums_, pool_sums_, extent_sums_});
}

// ---- what ranks do together, and time limits --------------------------------------------------------------------------

/// The rank waits until all of its group are there to begin.
bool System::join(JobId id, const Cursor& before)
{
  Group& group = groups_[pattern_.group_of(id)];
  if (group.stopped && !was_cut(id)) {
    clients_[id].cursor = before;
    return cut(id);
  }
  group.waiting.emplace_back(id, before);
  gather(group);
  return false;
}

/// All that can still come are there: those who wait begin.
void System::gather(Group& group)
{
  if (group.waiting.empty() || group.waiting.size() + group.ended < group.size)
    return;
  if (group.ended > 0 && !group.stopped)
    throw RunError(fmt::format("The pattern gives the ranks of group {} different numbers of shared and collective operations in one phase; "
                               "this is an error of the pattern.",
                               &group - groups_.data()));
  group.cuts_after = now_ >= deadline_ && !group.stopped;
  group.begun      = group.waiting.size();
  for (const auto& [id, before] : std::exchange(group.waiting, {})) {
    clients_[id].op_start = now_;
    begun(id);
    push(now_, EventKind::resume, id);
  }
}

void System::begun(JobId id)
{
  const Op& op = clients_[id].op;
  if (!op_streams_.empty() && !was_cut(id))
    op_streams_[id].write(op);
  if (open_.empty())
    return;
  auto& closes = open_[id].closes;
  if (op.kind == OpKind::open) {
    closes.emplace_back(OpKind::close, op.dataset, op.object);
    closes.back().flags = op.flags & shared;
  } else if (op.kind == OpKind::close) {
    std::erase_if(closes, [&](const Op& close) { return close.dataset == op.dataset && close.object == op.object; });
  }
}

/// False while others of the group are still at what they do together.
bool System::part(JobId id)
{
  Job& job = jobs_[id];
  if (!job.joined && together(id)) {
    Group& group = groups_[pattern_.group_of(id)];
    if (group.done.size() + 1 < group.begun) {
      group.done.push_back(id);
      return false;
    }
    for (const JobId other : std::exchange(group.done, {})) {
      jobs_[other].joined = true;
      push(now_, EventKind::resume, other);
    }
  }
  job.joined = false;
  return true;
}

/// The time of the phase is over for this rank: it closes what it has open, and goes to the end of the phase.
bool System::cut(JobId id)
{
  ++cut_ranks_;
  open_[id].cut = true;
  pattern_.cut(clients_[id].cursor);
  if (!groups_.empty()) {
    Group& group = groups_[pattern_.group_of(id)];
    if (!std::exchange(group.stopped, true))
      for (const auto& [other, before] : std::exchange(group.waiting, {})) {
        clients_[other].cursor = before;
        if (cut(other))
          advance(other);
      }
  }
  return pull_op(id);
}

// ---- a visit to a station ---------------------------------------------------------------------------------------------

/// The service that a visit asks for, seconds at speed 1.
double System::work_of(JobId id, const Step& step)
{
  double work = draw(id, step) / stations_[step.target].spec.rating;
  if (has_op(id)) {
    if (step.times != Times::once)
      work *= static_cast<double>(step.times == Times::entry ? clients_[id].op.size : clients_[id].op.count);
    if (step.bandwidth > 0)
      work += static_cast<double>(op_of(id).bytes()) / step.stripes / step.bandwidth;
    if (stations_[step.target].spec.per == Per::node)
      work *= (node_speed_.empty() ? 1 : node_speed_[jobs_[id].owner]) * (is_client(id) ? wake_slowdown_ : 1);
  }
  return work;
}

void System::begin_visit(JobId id, const Step& step)
{
  if (step.stripes != 1) {
    split_visit(id, step);
    return;
  }
  if (has_op(id))
    jobs_[id].instance = instance_for(id, stations_[step.target].spec);
  arrive(id, step, work_of(id, step));
}

/// A job that is nobody's client, for the time of one visit.
JobId System::new_job()
{
  if (free_jobs_.empty()) {
    free_jobs_.push_back(static_cast<JobId>(jobs_.size()));
    jobs_.emplace_back();
    links_.push_back(nobody);
    if (!slices_.empty())
      slices_.emplace_back();
    if (!exposed_.empty())
      exposed_.emplace_back();
  }
  const JobId id = free_jobs_.back();
  free_jobs_.pop_back();
  jobs_[id] = {};
  return id;
}

/// The job has come to its instance of the station and asks for so much work, seconds at speed 1.
void System::arrive(JobId id, const Step& step, double work)
{
  Station& station = stations_[step.target];
  Job& job         = jobs_[id];
  job.work         = work;
  job.asked        = now_;
  job.since        = now_;
  if (station.outages.any()) [[unlikely]] {
    exposed_[id].home = job.instance;
    exposed_[id].work = work;
    if (!find_server(id, step))
      return;
  }
  enter(id, step);
}

/// The job stands before the instance that will serve it.
void System::enter(JobId id, const Step& step)
{
  Station& station = stations_[step.target];
  Job& job         = jobs_[id];
  if (station.spec.crowding > 0)
    job.work *= 1 + station.spec.crowding * std::log1p(static_cast<double>(station.instances[job.instance].waiting.length()) / station.spec.servers);
  job.demand = job.work;
  job.since  = now_;
  switch (station.spec.discipline) {
    case Discipline::timeslice:
      if (const double end = end_of_stall(job, step.target); end > now_)
        await(end, EventKind::stall_over, id);
      else
        enter_timeslice(id);
      break;
    case Discipline::ps:
      begin_service(id);
      break;
    case Discipline::fcfs:
      if (station.instances[job.instance].seize(id, station.spec.servers))
        begin_service(id);
      break;
  }
}

double System::end_of_stall(const Job& job, uint32_t station)
{
  double end = now_;
  for (const uint32_t stall : stalls_at_[station])
    if (platform_.stalls[stall].operations[static_cast<size_t>(job.kind)])
      end = std::max(end, stalls_[stall].end_of_window(now_));
  return end;
}

/// The job has a server.
void System::begin_service(JobId id)
{
  const Step& step = step_of(id);
  Job& job         = jobs_[id];
  sums_of(id).wait += now_ - job.since;
  job.since = now_;
  if (stations_[step.target].outages.any()) [[unlikely]]
    stations_[step.target].instances[job.instance].running.push_back(id);
  if (!stalls_at_[step.target].empty())
    if (const double end = end_of_stall(job, step.target); end > now_) {
      await(end, EventKind::stall_over, id);
      return;
    }
  take_lock(id);
}

void System::take_lock(JobId id)
{
  const Step& step = step_of(id);
  Job& job         = jobs_[id];
  if (step.lock >= 0 && step.lock_share > 0) {
    job.locked   = true;
    job.recalled = false;
    if (!acquire_lock(id, step))
      return;
  }
  serve(id);
}

/// False when the job waits for it.
bool System::acquire_lock(JobId id, const Step& step)
{
  if (ExtentLocks* extents = extents_of(step))
    return take_extents(id, step, *extents);
  return locks_.acquire(links_, lock_key(id, step.lock), id);
}

/// The job has all it needs for its next stretch of service: what it does with the lock, or all the rest.
void System::serve(JobId id)
{
  const Step& step = step_of(id);
  Station& station = stations_[step.target];
  Job& job         = jobs_[id];
  double stretch   = job.demand;
  if (job.locked) {
    sums_of(id).lock_wait += now_ - job.since;
    job.since = now_;
    stretch   = job.work * step.lock_share;
  }
  job.demand -= stretch;
  if (job.locked && platform_.locks[static_cast<size_t>(step.lock)].hand_over)
    stretch += hand_over(id, step);
  if (station.varies()) {
    station.shared[job.instance].add(id, stretch, now_, station.speeds);
    schedule_departure(station, job.instance);
  } else {
    await(now_ + stretch, EventKind::served, id);
  }
}

/// The lock comes from whoever keeps it.
double System::hand_over(JobId id, const Step& step)
{
  const uint64_t key   = lock_key(id, step.lock);
  ExtentLocks* extents = extents_of(step);
  const uint32_t times = extents ? extents->objects[key].called_back(id) : keepers_.take(key, jobs_[id].owner, step.lock_shared);
  if (times == 0)
    return 0;
  const double seconds = times * draw(id, *platform_.locks[static_cast<size_t>(step.lock)].hand_over);
  jobs_[id].recalled   = true;
  sums_of(id).lock_wait += seconds;
  jobs_[id].since += seconds;
  return seconds;
}

void System::served(JobId id)
{
  Job& job = jobs_[id];
  if (job.locked) {
    job.locked = false;
    if (ExtentLocks* extents = extents_of(step_of(id)))
      give_back_extents(id, step_of(id), *extents);
    else if (const JobId next = locks_.release(links_, lock_key(id, step_of(id).lock)); next != nobody)
      serve(next);
    if (job.demand > 0) {
      serve(id);
      return;
    }
  }
  end_visit(id);
}

void System::end_visit(JobId id)
{
  const Step& step = step_of(id);
  Station& station = stations_[step.target];
  Job& job         = jobs_[id];
  VisitSums& sums  = sums_of(id);
  ++sums.visits;
  sums.total += now_ - (job.beside ? start_in_phase(job) : job.asked);
  if (station.outages.any()) [[unlikely]]
    std::erase(station.instances[job.instance].running, id);
  if (station.spec.discipline == Discipline::fcfs) {
    auto& instance = station.instances[job.instance];
    if (const JobId next = instance.release(); next != nobody) {
      if (const JobId soon = instance.waiting.ahead(3); soon != nobody && is_client(soon))
        prefetch(soon);
      begin_service(next);
    }
  } else {
    sums.wait += std::max(0.0, now_ - job.since - job.work);
  }
  const JobId whole = has_op(id) ? id : job.owner;
  if (whole == nobody) {
    free_jobs_.push_back(id);
    return;
  }
  if (whole != id && !join_part(id))
    return;
  ++jobs_[whole].at;
  advance(whole);
}

/// The visit goes on at that time, unless it is lost before.
void System::await(double time, EventKind kind, JobId id)
{
  if (!exposed_.empty()) [[unlikely]] {
    exposed_[id].due  = time;
    exposed_[id].kind = static_cast<uint32_t>(kind);
  }
  push(time, kind, id);
}

void System::schedule_departure(Station& station, uint32_t instance)
{
  SharedServers& servers = station.shared[instance];
  if (servers.empty()) {
    servers.scheduled = -1;
    return;
  }
  const double time = servers.next_departure(now_, station.speeds);
  if (time == servers.scheduled)
    return;
  servers.scheduled = time;
  push(time, EventKind::shared_departure, station.first_instance + instance);
}

void System::shared_departure(uint32_t instance_number)
{
  Station& station        = station_of_instance(instance_number);
  const uint32_t instance = instance_number - station.first_instance;
  SharedServers& servers  = station.shared[instance];
  if (servers.empty() || servers.scheduled != now_)
    return; // arrivals or departures since have moved it
  const JobId id    = servers.pop(now_, station.speeds);
  servers.scheduled = -1;
  schedule_departure(station, instance);
  served(id);
}

// ---- a visit to a timeslice station: round robin, but a job that needs no wait keeps its server from visit to visit ----------

void System::enter_timeslice(JobId id)
{
  const uint32_t target = step_of(id).target;
  Station& station      = stations_[target];
  Job& job              = jobs_[id];
  const JobId core      = slices_[id].core;
  if (core != nobody && core != station.first_instance + job.instance)
    leave_core(id);
  job.in_timeslice = true;
  job.since        = now_;
  if (slices_[id].core == nobody) {
    StationInstance& instance = station.instances[job.instance];
    if (instance.busy < station.spec.servers)
      ++instance.busy;
    else if (!station.spec.wakeup_preempts || starves(instance, station.spec.quantum) || !preempt(station, job.instance)) {
      slices_[id].end = now_;
      instance.waiting.push_back(id);
      return;
    }
    take_core(id, station, job.instance);
  }
  run_slice(id);
}

/// The server is counted as busy already.
void System::take_core(JobId id, Station& station, uint32_t instance)
{
  slices_[id].core = station.first_instance + instance;
  slices_[id].end  = now_ + station.spec.quantum;
  station.instances[instance].running.push_back(id);
}

void System::give_up_core(JobId id, StationInstance& instance)
{
  slices_[id].core = nobody;
  auto& running    = instance.running;
  *std::find(running.begin(), running.end(), id) = running.back();
  running.pop_back();
}

/// Someone has waited so long that a fair scheduler lets nobody pass any more. While a job waits, its slice's end says since when.
bool System::starves(const StationInstance& instance, double quantum) const
{
  return !instance.waiting.empty() && now_ - slices_[instance.waiting.front()].end > quantum;
}

/// Takes a server from a job that is at work; that one waits at the head of the queue and goes on where it was.
bool System::preempt(Station& station, uint32_t number)
{
  StationInstance& instance = station.instances[number];
  for (size_t tries = 0; tries < instance.running.size(); ++tries) {
    const JobId victim = instance.running[instance.next_victim++ % instance.running.size()];
    Slice& slice       = slices_[victim];
    if (!jobs_[victim].in_timeslice || slice.stretch_end <= now_)
      continue; // between two visits, or done at this very moment
    jobs_[victim].demand += (slice.stretch_end - now_) * slice.pace;
    slice.stretch_end = -1;
    slice.end         = now_;
    give_up_core(victim, instance);
    instance.waiting.push_front(victim);
    return true;
  }
  return false;
}

/// The job holds a server; it works until it is done or its slice is over.
void System::run_slice(JobId id)
{
  Station& station          = stations_[step_of(id).target];
  const uint32_t number     = jobs_[id].instance;
  StationInstance& instance = station.instances[number];
  if (slices_[id].end <= now_) {
    if (!instance.waiting.empty()) {
      give_up_core(id, instance);
      const JobId next = instance.waiting.pop_front();
      slices_[id].end  = now_;
      instance.waiting.push_back(id);
      take_core(next, station, number);
      id = next;
    } else {
      slices_[id].end = now_ + station.spec.quantum;
    }
  }
  Job& job           = jobs_[id];
  Slice& slice       = slices_[id];
  const double speed = station.speeds.empty() ? 1 : station.speeds[instance.busy];
  const double need  = job.demand / speed;
  const double worked = std::min(need, slice.end - now_);
  job.demand          = worked == need ? 0 : job.demand - worked * speed;
  slice.pace          = static_cast<float>(speed);
  slice.stretch_end   = now_ + worked;
  push(slice.stretch_end, EventKind::slice_over, id);
}

void System::slice_over(JobId id)
{
  if (slices_[id].stretch_end != now_)
    return; // it was preempted since
  if (jobs_[id].demand > 0) {
    run_slice(id);
    return;
  }
  jobs_[id].in_timeslice = false;
  end_visit(id);
  // Unless it went straight on to its next visit, it has left the server.
  if (slices_[id].core != nobody && !jobs_[id].in_timeslice)
    leave_core(id);
}

void System::leave_core(JobId id)
{
  Station& station          = station_of_instance(slices_[id].core);
  const uint32_t number     = slices_[id].core - station.first_instance;
  StationInstance& instance = station.instances[number];
  give_up_core(id, instance);
  const JobId next = instance.waiting.pop_front();
  if (next == nobody) {
    --instance.busy;
    return;
  }
  take_core(next, station, number);
  run_slice(next);
}

Station& System::station_of_instance(uint32_t instance_number)
{
  const auto after = std::upper_bound(first_instances_.begin(), first_instances_.end(), instance_number);
  return stations_[static_cast<size_t>(after - first_instances_.begin()) - 1];
}

// ---- transfers and the work of others ---------------------------------------------------------------------------------

bool System::is_flow(JobId id) const
{
  return options_.flows && static_cast<double>(op_of(id).bytes()) >= platform_.network.flow_threshold;
}

/// A transfer that is too small to compete for bandwidth.
double System::transfer_seconds(JobId id) const
{
  return platform_.network.latency + static_cast<double>(op_of(id).bytes()) / slowest_link_;
}

bool System::begin_transfer(JobId id, const Step& step)
{
  uint32_t instance = instance_for(id, platform_.stations[step.target]);
  if (stations_[step.target].outages.any()) [[unlikely]] {
    if (!find_end(id, step, instance))
      return false;
    if (!is_flow(id)) {
      push(now_ + transfer_seconds(id), EventKind::resume, id);
      return true;
    }
  }
  new_transfers_.push_back({id, jobs_[id].owner, step.target, instance, static_cast<double>(op_of(id).bytes()), step.to_server});
  if (jobs_[id].piece)
    send_from_buffer(id, new_transfers_.back());
  return true;
}

void System::transfer_done(JobId job, double now)
{
  push(std::max(now, now_), EventKind::resume, job);
}

void System::schedule_background(uint32_t which)
{
  const double rate = platform_.background[which].rate;
  if (rate <= 0)
    return;
  const auto words = random_words(options_.seed, Stream::background, which, 2 * background_count_[which]);
  push(now_ - std::log(to_uniform(words[0])) / rate, EventKind::background, which);
}

void System::background_arrival(uint32_t which)
{
  const Step& step = beside_steps_[which];
  if (jobs_.size() - free_jobs_.size() > placement_.ranks + most_background_) [[unlikely]]
    throw RunError(fmt::format("The work of others '{}' comes to the station '{}' of '{}' faster than it is served: {} requests of others are there. Lower its rate or its share.",
                               platform_.background[which].name, platform_.stations[platform_.background[which].station].name, platform_.file, most_background_));
  const JobId id = new_job();
  Job& job       = jobs_[id];
  job.at     = static_cast<uint16_t>(which);
  job.beside = true;
  job.words = random_words(options_.seed, Stream::background, which, 2 * background_count_[which]++ + 1);
  job.draws = 1;
  const auto instances = stations_[step.target].instances.size();
  job.instance         = static_cast<uint32_t>(to_uniform(job.words[0]) * static_cast<double>(instances));
  begin_visit(id, step);
  schedule_background(which);
}

/// Asks for the cache lines of a client that will be looked at soon; among a million clients they are cold.
void System::prefetch(JobId id) const
{
  if (placement_.ranks < 4000 || !is_client(id))
    return; // all of them fit in the processor's cache, or there are few
  asm volatile(""); // else GCC takes this for a function without effects and drops the calls
  __builtin_prefetch(&jobs_[id]);
  __builtin_prefetch(&links_[id]);
  __builtin_prefetch(&clients_[id]);
  __builtin_prefetch(reinterpret_cast<const char*>(&clients_[id]) + 64);
  const uint32_t node = placement_.node_of(id); // not from the job, which is still on its way
  for (const auto& limit : limits_)
    if (limit.size() > 1)
      __builtin_prefetch(&limit[node]);
}

// ---- look-ups ---------------------------------------------------------------------------------------------------------

Limit& System::limit_for(JobId id, const Step& step)
{
  return limits_[step.target][platform_.limits[step.target].per == Per::node ? jobs_[id].owner : 0];
}

const Step& System::step_of(JobId id) const
{
  const Job& job = jobs_[id];
  return job.beside ? beside_steps_[job.at] : platform_.routes[static_cast<size_t>(job.kind)].steps[job.at];
}

double System::draw(JobId id, const Step& step)
{
  return step.constant >= 0 ? step.constant : draw(id, *step.law);
}

double System::draw(JobId id, const Law& law)
{
  return law.at(uniform(id));
}

/// The next number of the job, in (0, 1).
double System::uniform(JobId id)
{
  Job& job        = jobs_[id];
  const auto word = job.draws++ % 4U;
  // Keyed by client and operation, so that the same operation draws the same on any platform: common random numbers.
  if (word == 0) {
    if (is_client(id))
      job.words = random_words(options_.seed, job.kind == OpKind::phase ? Stream::wake : Stream::service, id,
                               clients_[id].operations << 8 | job.draws);
    else if (job.piece)
      job.words = words_of_piece(id);
  }
  return to_uniform(job.words[word]);
}

uint32_t System::instance_for(JobId id, const StationSpec& spec) const
{
  if (spec.per == Per::node)
    return jobs_[id].owner;
  if (spec.count == 1)
    return 0;
  if (jobs_[id].piece && is_own_station(id, spec))
    return pieces_[id - placement_.ranks].instance;
  const Op& op = op_of(id);
  return instance_of(op, spec, op.offset);
}

/// Where that byte of the operation's object lies, at a station of the system.
uint32_t System::instance_of(const Op& op, const StationSpec& spec, uint64_t offset)
{
  if (spec.spread == Spread::round_robin)
    return static_cast<uint32_t>((mix(op.dataset) % spec.count + op.object % spec.count) % spec.count);
  const uint64_t first = mix(spec.spread == Spread::dataset ? op.dataset : mix(op.dataset) ^ op.object);
  const uint64_t next  = spec.spread == Spread::stripe ? offset / spec.stripe_size % spec.stripe_count : 0;
  return static_cast<uint32_t>((first % spec.count + next) % spec.count);
}

uint64_t System::lock_key(JobId id, int32_t lock) const
{
  const uint64_t which = static_cast<uint64_t>(lock) << 56;
  switch (platform_.locks[static_cast<size_t>(lock)].per) {
    case Per::system:
      return which;
    case Per::node:
      return which | jobs_[id].owner;
    case Per::object:
      return which | (mix(mix(op_of(id).dataset) ^ op_of(id).object) >> 8);
    default:
      return which | op_of(id).dataset;
  }
}

} // namespace iocast
