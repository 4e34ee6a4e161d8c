// SPDX-License-Identifier: Apache-2.0
//
// Phases: the barrier between them, what is set back when one begins, and what is reported when it ends.
#include "input/error.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace iocast {

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
  check_pools();
  check_extents();
  on_phase_({static_cast<size_t>(phase_), phase_start_, end, std::move(rank_seconds), think_asked_, think_actual_, cut_ranks_, watch_ != nullptr, *recorder_, sums_, buffer_sums_, cache_sums_, pool_sums_, extent_sums_});
}

/// What was taken has been given back.
void System::check_nothing_is_held() const
{
  if (std::any_of(buffers_.begin(), buffers_.end(), [](const Buffers& buffers) { return buffers.sums.held > 0; }))
    return; // what still drains may hold them
  for (const auto& pools : pools_)
    if (std::any_of(pools.instances.begin(), pools.instances.end(), [](const Pool& pool) { return pool.is_making(); }))
      return; // and so may what is being made
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
    throw RunError(fmt::format("All clients of '{}' have ended, but {} slots of limits and {} locks are still held and {} parts of requests are under way; this is an error of the simulator.",
                               platform_.file, slots, held, parts_));
}

} // namespace iocast
