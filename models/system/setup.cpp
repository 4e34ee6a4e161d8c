// SPDX-License-Identifier: Apache-2.0
//
// A system is made from a platform, a pattern and where its ranks are. What only one part of it needs is made in that
// part's file.
#include "input/error.hpp"
#include "input/portable.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace iocast {

namespace {
bool asks_for(const Footprint& footprint, OpKind wanted)
{
  const auto& operations = footprint.operations;
  return std::any_of(operations.begin(), operations.end(),
                     [&](const auto& o) { return o.first == wanted && o.second > 0; });
}

bool visit(const std::vector<Step>& steps, size_t station)
{
  return std::any_of(steps.begin(), steps.end(),
                     [&](const Step& step) { return step.kind == Step::Kind::visit && step.target == station; });
}
} // namespace

System::System(const Platform& platform, const Pattern& pattern, const Placement& placement, const Options& options,
               std::function<void(FinishedPhase)> on_phase)
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
    , times_before_(platform.stations.size())
    , clients_times_(platform.stations.size())
    , background_count_(platform.background.size())
{
  const auto footprint = pattern.footprint();
  for (const auto& [kind, count] : footprint.operations)
    if (count > 0 && kind != OpKind::think && !platform.routes[static_cast<size_t>(kind)].served)
      throw InputError(
          fmt::format("The platform '{}' has no route for the operation '{}', which the workload asks for; add one "
                      "under 'operations'.",
                      platform.file, name_of(kind)));
  if (placement.ranks >= Calendar::owners / 2) // the rest is for the work of others
    throw InputError(fmt::format("{} clients are more than the simulator can tell apart; the most is {}.",
                                 placement.ranks, Calendar::owners / 2 - 1));
  make_fabric(footprint);
  make_stations();
  make_failures();
  make_background();
  make_buffers(footprint);
  make_mechanisms();
  make_caches();
  make_read_ahead(asks_for(footprint, OpKind::pread));
  for (const auto& buffers : buffers_)
    add_beside_steps(buffers.spec->stage_in_steps, size_t{buffers.spec->at_once} * buffers.instances.size());
  make_locks();
  make_extents();
  find_where_nobody_waits();
  find_locks_held_ahead();
  make_clients(asks_for(footprint, OpKind::think));
  if (asks_for(footprint, OpKind::open))
    make_groups();
  if (footprint.steps)
    make_steps();
}

void System::make_stations()
{
  uint32_t first = 0;
  for (const auto& spec : platform_.stations) {
    stations_.emplace_back(spec, placement_.nodes(), first);
    first_instances_.push_back(first);
    first += static_cast<uint32_t>(stations_.back().instances.size());
    if (spec.discipline == Discipline::timeslice) {
      stations_.back().first_core = static_cast<uint32_t>(cores_.size());
      cores_.resize(cores_.size() + stations_.back().instances.size() * spec.servers);
    }
  }
  for (size_t i = 0; i < platform_.limits.size(); ++i)
    limits_[i].resize((platform_.limits[i].per == Per::node ? placement_.nodes() : 1) *
                      (platform_.limits[i].station < 0
                           ? 1
                           : platform_.stations[static_cast<size_t>(platform_.limits[i].station)].count));
  for (uint32_t i = 0; i < platform_.stalls.size(); ++i) {
    stalls_.emplace_back(platform_.stalls[i], options_.seed, i);
    stalls_at_[platform_.stalls[i].station].push_back(i);
  }
  if (platform_.speed_sigma > 0)
    for (uint32_t node = 0; node < placement_.nodes(); ++node)
      node_speed_.push_back(static_cast<float>(
          portable::exp(platform_.speed_sigma *
                        normal_quantile(to_uniform(random_words(options_.seed, Stream::node_speed, node, 0)[0])))));
}

/// Stations of nodes that have a server for each who can come at the same time.
void System::find_where_nobody_waits()
{
  for (size_t i = 0; i < stations_.size(); ++i) {
    const auto& spec      = stations_[i].spec;
    uint64_t most_at_once = placement_.ranks_per_node;
    for (const auto& buffer : platform_.buffers)
      if (visit(buffer.steps, i))
        most_at_once += buffer.at_once;
    for (const auto& mechanism : platform_.mechanisms)
      if (visit(mechanism->steps, i))
        most_at_once += mechanism->at_once == 0 ? placement_.ranks : mechanism->at_once;
    for (const auto& cache : platform_.caches)
      if (visit(cache.steps, i))
        most_at_once += cache.at_once;
    stations_[i].never_waits = spec.per == Per::node && spec.discipline == Discipline::fcfs && !stations_[i].varies() &&
                               spec.servers >= most_at_once && stalls_at_[i].empty();
    if (spec.per == Per::node && !stations_[i].never_waits && placement_.ranks >= few_clients)
      queues_of_nodes_.push_back(i);
  }
  const bool buffers =
      placement_.ranks >= few_clients && std::any_of(platform_.buffers.begin(), platform_.buffers.end(),
                                                     [](const BufferSpec& buffer) { return buffer.of_nodes(); });
  looks_ahead_ = !queues_of_nodes_.empty() || buffers;
  if (looks_ahead_)
    calendar_.look_ahead();
}

void System::make_clients(bool thinks)
{
  for (uint32_t rank = 0; rank < placement_.ranks; ++rank) {
    clients_[rank].cursor.rank = rank;
    jobs_[rank].owner          = placement_.node_of(rank);
  }
  if (!options_.op_stream_directory.empty())
    for (uint32_t rank = 0; rank < placement_.ranks; ++rank)
      op_streams_.emplace_back(options_.op_stream_directory, rank);
  bool sleeps = thinks;
  bool open   = thinks;
  for (uint32_t rank = 0; rank < placement_.ranks; ++rank) {
    const auto& arrivals = pattern_.arrivals_of(rank);
    open                 = open || arrivals.is_open();
    sleeps               = sleeps || arrivals.thinks() || arrivals.is_open();
  }
  if (sleeps)
    wake_slowdown_ = platform_.wake_slowdown;
  if (open)
    intents_.resize(placement_.ranks);
  const auto& phases = pattern_.phases();
  if (options_.time_limits &&
      std::any_of(phases.begin(), phases.end(), [](const Phase& phase) { return phase.most_seconds > 0; }))
    open_.resize(placement_.ranks);
}

} // namespace iocast
