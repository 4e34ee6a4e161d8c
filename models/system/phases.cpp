// SPDX-License-Identifier: Apache-2.0
//
// Phases: the barrier between them, what is set back when one begins, and what is reported when it ends.
#include "input/error.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace iocast {

void System::reach_barrier()
{
  if (++waiting_at_barrier_ == placement_.ranks && !between_phases_ && !stage_out())
    pass_barrier();
}

void System::pass_barrier()
{
  // A loop: in a phase without operations all ranks are at the next barrier before begin_phase() has returned.
  between_phases_ = true;
  while (waiting_at_barrier_ == placement_.ranks && !finished_) {
    waiting_at_barrier_ = 0;
    if (phase_ >= 0)
      end_phase();
    if (ended_ == placement_.ranks) {
      finished_ = true;
      check_at_end();
    } else {
      begin_phase();
    }
  }
  between_phases_ = false;
}

void System::begin_phase()
{
  ++phase_;
  phase_start_              = now_;
  think_asked_              = 0;
  think_actual_             = 0;
  cut_ranks_                = 0;
  const double most_seconds = pattern_.phases()[static_cast<size_t>(phase_)].most_seconds;
  deadline_ = options_.time_limits && most_seconds > 0 ? now_ + most_seconds : std::numeric_limits<double>::infinity();
  for (auto& group : groups_) {
    group.ended      = 0;
    group.stopped    = false;
    group.cuts_after = false;
  }
  for (auto& open : open_)
    open.cut = false;
  for (auto& intent : intents_)
    intent = {};
  for (auto& steps : steps_)
    steps.times = {};
  if (options_.trace)
    for (uint32_t rank = 0; rank < placement_.ranks; ++rank)
      options_.trace->add(rank, {{OpKind::phase, 0, static_cast<uint64_t>(phase_)}, to_ns(now_), 0, 0});
  recorder_ = std::make_unique<PhaseRecorder>();
  watch_ =
      pattern_.phases()[static_cast<size_t>(phase_)].name == options_.precision_phase ? options_.precision : nullptr;
  if (watch_)
    watch_->begin(now_);
  sums_.assign(platform_.stations.size(), {});
  moved_ = {};
  for (auto& client : clients_)
    client.since = now_;
  for (uint32_t rank = 0; rank < placement_.ranks; ++rank)
    start_op(rank);
}

void System::end_phase()
{
  std::vector<double> rank_seconds;
  rank_seconds.reserve(placement_.ranks);
  double end = phase_start_;
  for (const auto& client : clients_) {
    rank_seconds.push_back(client.since - phase_start_);
    end = std::max(end, client.since);
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
  check_extents();
  check_stations();
  const auto times = times_of_stations();
  NetworkUse network;
  if (fabric_) {
    fabric_->check(now_);
    network = fabric_->use_since(phase_start_, now_);
  }
  on_phase_({static_cast<size_t>(phase_), phase_start_, end, now_, std::move(rank_seconds), think_asked_, think_actual_,
             cut_ranks_, watch_ != nullptr, *recorder_, sums_, times, moved_, buffer_sums_, cache_sums_, extent_sums_,
             report_mechanisms(), std::move(network),
             steps_.empty() ? 0 : static_cast<double>(steps_.front().times.first_end_ns()) * 1e-9});
}

/// Since the last call, which was at the end of the phase before.
std::vector<StationTimes> System::times_of_stations()
{
  std::vector<StationTimes> to_come(stations_.size()); // counted already
  std::erase_if(visits_ahead_, [this](const VisitAhead& visit) { return visit.end <= now_; });
  for (const auto& visit : visits_ahead_)
    to_come[visit.station].busy += visit.end - std::max(visit.begin, now_);
  std::vector<StationTimes> times;
  for (size_t i = 0; i < stations_.size(); ++i) {
    const double busy    = stations_[i].occupancy.busy.at(now_) - to_come[i].busy;
    const double present = stations_[i].occupancy.present.at(now_) - to_come[i].busy;
    const double others  = stations_[i].occupancy.others.at(now_) - to_come[i].busy;
    times.push_back({std::max(0.0, busy - times_before_[i].busy), std::max(0.0, present - times_before_[i].present),
                     std::max(0.0, others - times_before_[i].others)});
    times_before_[i] = {busy, present, others};
    for (size_t kind = 1; kind < op_count; ++kind)
      clients_times_[i] += sums_[i][kind].total;
  }
  return times;
}

/// No station has more servers than it has, nor serves more requests than are there.
void System::check_stations() const
{
  for (const auto& station : stations_) {
    const auto& [busy, present, others] = station.occupancy;
    const bool keeps = station.spec.discipline == Discipline::timeslice; // a server, between two visits
    const auto most  = static_cast<double>(station.spec.servers) * static_cast<double>(station.instances.size());
    if (busy.count() < 0 || static_cast<double>(busy.count()) > most || (!keeps && busy.count() > present.count()) ||
        others.count() > present.count() || others.count() < 0)
      throw RunError(fmt::format("{} servers of the station '{}' are busy of {}, and {} requests are there, {} of them "
                                 "nobody's; this is an error of the simulator.",
                                 busy.count(), station.spec.name, most, present.count(), others.count()));
  }
}

/// All clients have ended: nothing is held, and time adds up. By Little's law the number of clients' requests at a
/// station, integrated over time, is the time that their visits took.
void System::check_at_end()
{
  check_nothing_is_held();
  for (size_t i = 0; i < stations_.size(); ++i) {
    const auto& [busy, present, others] = stations_[i].occupancy;
    const double in_queue               = present.at(now_) - others.at(now_);
    const bool separable =
        !platform_.routes[0].served &&
        !stations_[i].outages.any(); // waking up is with the work of others, held-up transfers with visits
    if (present.count() != others.count() ||
        (separable &&
         std::abs(in_queue - clients_times_[i]) > 1e-6 * clients_times_[i] + 1e-9 * now_ * (1.0 + placement_.ranks)))
      throw RunError(fmt::format("All clients of '{}' have ended, but {} of their requests are still at the station "
                                 "'{}', where they spent {} s by its queue and {} s by their own account; this is an "
                                 "error of the simulator.",
                                 platform_.file, present.count() - others.count(), stations_[i].spec.name, in_queue,
                                 clients_times_[i]));
  }
}

/// What was taken has been given back.
void System::check_nothing_is_held() const
{
  if (std::any_of(buffers_.begin(), buffers_.end(), [](const Buffers& buffers) { return buffers.sums.held > 0; }))
    return; // what still drains may hold them
  if (std::any_of(mechanisms_.begin(), mechanisms_.end(), [](const auto& mechanism) { return mechanism->is_busy(); }))
    return;
  if (is_fetching())
    return;
  size_t held = locks_.held();
  for (const auto& extents : extents_)
    for (const auto& [key, object] : extents.objects)
      held += object.requests();
  size_t slots = 0;
  for (const auto& limits : limits_)
    for (const auto& limit : limits)
      slots += limit.used();
  if (slots > 0 || held > 0 || parts_ > 0)
    throw RunError(fmt::format("All clients of '{}' have ended, but {} slots of limits and {} locks are still held and "
                               "{} parts of requests are under way; this is an error of the simulator.",
                               platform_.file, slots, held, parts_));
}

} // namespace iocast
