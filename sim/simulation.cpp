// SPDX-License-Identifier: Apache-2.0
#include "sim/simulation.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace iocast {

namespace {
nlohmann::ordered_json stations_json(const Platform& platform, const Placement& placement, const FinishedPhase& phase)
{
  auto json = nlohmann::ordered_json::object();
  for (size_t i = 0; i < platform.stations.size(); ++i) {
    const auto& spec = platform.stations[i];
    uint64_t visits  = 0;
    auto operations  = nlohmann::ordered_json::object();
    for (size_t k = 0; k < work_count; ++k) {
      const auto& sums = phase.stations[i][k];
      if (sums.visits == 0 && sums.replays == 0)
        continue;
      const auto n = static_cast<double>(std::max<uint64_t>(sums.visits, 1)); // none: transfers that a failure held up
      visits += sums.visits;
      auto& entry = operations[k == 0                               ? "others"
                               : k == static_cast<size_t>(draining) ? "drain"
                                                                    : std::string(op_names[k])];
      entry       = {{"visits", sums.visits},
                     {"wait", sums.wait / n},
                     {"service", (sums.total - sums.wait - sums.lock_wait - sums.stall - sums.lost) / n},
                     {"lock_wait", sums.lock_wait / n},
                     {"stall", sums.stall / n}};
      if (std::any_of(platform.failures.begin(), platform.failures.end(),
                      [&](const auto& failure) { return failure.station == i; })) {
        entry["lost"]    = sums.lost / n;
        entry["replays"] = sums.replays;
      }
    }
    const double servers = static_cast<double>(spec.servers) * (spec.per == Per::node ? placement.nodes() : spec.count);
    const auto& times    = phase.times[i];
    // Servers go on for a moment after the last answer, as a core does on which a rank falls asleep.
    const bool until_closed = times.others > 0 || times.busy > servers * (phase.end - phase.start);
    const double duration   = (until_closed ? phase.closed : phase.end) - phase.start;
    json[spec.name]         = {{"utilisation", duration > 0 ? times.busy / (servers * duration) : 0},
                               {"requests", duration > 0 ? times.present / duration : 0},
                               {"visits", visits},
                               {"operations", operations}};
  }
  return json;
}

/// Of the phase; what is held and the most that was, at its end.
nlohmann::ordered_json buffers_json(const Platform& platform, const std::vector<BufferSums>& before,
                                    const FinishedPhase& phase)
{
  auto json         = nlohmann::ordered_json::object();
  const auto& after = phase.buffers;
  for (size_t i = 0; i < after.size(); ++i) {
    json[platform.buffers[i].name] = {{"entered", after[i].entered - before[i].entered},
                                      {"drained", after[i].drained - before[i].drained},
                                      {"pieces", after[i].pieces - before[i].pieces},
                                      {"held", after[i].held},
                                      {"peak", after[i].peak},
                                      {"stopped", after[i].stopped - before[i].stopped},
                                      {"wait", after[i].wait - before[i].wait}};
    if (platform.buffers[i].stage_in > 0 && phase.number == 0)
      json[platform.buffers[i].name]["staged_in_seconds"] = phase.start;
    if (platform.buffers[i].stage_out)
      json[platform.buffers[i].name]["staged_out_seconds"] = phase.closed - phase.end;
  }
  return json;
}

/// Of the phase; what is held at its end.
nlohmann::ordered_json caches_json(const Platform& platform, const std::vector<CacheSums>& before,
                                   const std::vector<CacheSums>& after)
{
  auto json = nlohmann::ordered_json::object();
  for (size_t i = 0; i < after.size(); ++i) {
    auto& entry = json[platform.caches[i].name];
    entry       = {{"lookups", after[i].lookups - before[i].lookups},
                   {"hits", after[i].hits - before[i].hits},
                   {"held", after[i].held},
                   {"known", after[i].rate}};
    if (platform.caches[i].ahead > 0)
      entry.update({{"fetched", after[i].fetched - before[i].fetched},
                    {"requests", after[i].requests - before[i].requests},
                    {"waited", after[i].waited - before[i].waited},
                    {"unused", after[i].unused - before[i].unused}});
    if (platform.caches[i].valid > 0)
      entry["expired"] = after[i].expired - before[i].expired;
    if (platform.caches[i].forgotten_by_others)
      entry["taken"] = after[i].taken - before[i].taken;
    if (const uint64_t interrupted = after[i].interrupted - before[i].interrupted; interrupted > 0)
      entry["interrupted"] = interrupted;
  }
  return json;
}

/// Likewise, of locks on ranges; `ranges` at its end.
nlohmann::ordered_json locks_json(const Platform& platform, const std::vector<ExtentSums>& before,
                                  const std::vector<ExtentSums>& after)
{
  auto json = nlohmann::ordered_json::object();
  size_t i  = 0;
  for (const auto& lock : platform.locks)
    if (lock.extent > 0) {
      json[lock.name] = {{"taken", after[i].taken - before[i].taken},
                         {"kept", after[i].kept - before[i].kept},
                         {"called_back", after[i].called_back - before[i].called_back},
                         {"ranges", after[i].ranges}};
      if (const uint64_t forgotten = after[i].forgotten - before[i].forgotten; forgotten > 0)
        json[lock.name]["forgotten"] = forgotten;
      ++i;
    }
  return json;
}

/// Of the phase, the three busiest links, and of each station's bytes the largest share of an instance; flows are
/// counted since the start.
nlohmann::ordered_json network_json(const NetworkUse& use)
{
  auto links = nlohmann::ordered_json::array();
  for (const auto& link : use.busiest)
    links.push_back({{"name", link.name}, {"bytes", link.bytes}, {"busy", link.busy}});
  auto shares = nlohmann::ordered_json::object();
  for (const auto& most : use.shares)
    shares[most.station] = {{"instance", most.instance}, {"share", most.share}, {"instances", most.instances}};
  return {{"busiest", links}, {"shares", shares}, {"flows", use.flows}, {"fallbacks", use.fallbacks}};
}

nlohmann::ordered_json precision_json(const PrecisionWatch::Achieved& achieved)
{
  auto estimates = nlohmann::ordered_json::object();
  for (const auto& one : achieved.estimates)
    estimates[one.name] = {
        {"value", one.value}, {"half_width", one.half_width}, {"requested", one.requested}, {"met", one.met}};
  return {{"met", achieved.met},
          {"warm_up", achieved.warm_up_seconds},
          {"operations", achieved.operations},
          {"estimates", estimates}};
}

void check_phase(const Pattern& pattern, const std::string& name)
{
  std::vector<std::string> names;
  for (const auto& phase : pattern.phases())
    if (std::find(names.begin(), names.end(), phase.name) == names.end())
      names.push_back(phase.name);
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw InputError(
        fmt::format("The workload has no phase '{}', which --until is about; name another one with --phase. {}", name,
                    allowed_sentence(name, names)));
}
} // namespace

Simulation::Simulation(const SimulationRequest& request)
    : request_(request)
    , hands_out_flows_(request.simgrid_flows && Fabric::limits(request.platform))
    , pattern_(request.workload.make(request.placement))
    , coverage_(request.platform, *pattern_, request.placement)
    , buffers_(request.platform.buffers.size())
    , caches_(request.platform.caches.size())
    , extents_(request.platform.locks.size())
{
  if (!request.until.empty())
    watch_precision();
  if (!request.op_stream_directory.empty() && !std::filesystem::create_directories(request.op_stream_directory))
    throw InputError(
        fmt::format("The directory '{}' of --dump-ops exists already; name a new one, nothing is overwritten.",
                    request.op_stream_directory));
  System::Options options;
  options.seed                = request.seed;
  options.hands_out_flows     = hands_out_flows_;
  options.op_stream_directory = request.op_stream_directory;
  options.time_limits         = request.time_limits;
  options.precision           = precision_ ? &*precision_ : nullptr;
  options.precision_phase     = request.until_phase;
  if (request.trace)
    options.trace = &trace_.emplace(request.placement.ranks);
  system_.emplace(request.platform, *pattern_, request.placement, options,
                  [this](FinishedPhase phase) { add_phase(std::move(phase)); });
  check_size(pattern_->footprint());
  begin_directory();
}

void Simulation::watch_precision()
{
  check_phase(*pattern_, request_.until_phase);
  double longest_period = 0;
  for (const auto& stall : request_.platform.stalls)
    longest_period = std::max(longest_period, stall.every);
  for (const auto& failure : request_.platform.failures) {
    if (failure.every == 0)
      throw InputError(fmt::format("The failure '{}' of '{}' happens once, so that nothing settles that --until "
                                   "could know well; give it an 'every', or simulate the whole workload.",
                                   failure.name, request_.platform.file));
    longest_period = std::max(longest_period, failure.every);
  }
  precision_.emplace(request_.until, request_.placement.ranks, longest_period);
}

void Simulation::begin_directory()
{
  directory_.emplace(request_.out, request_.brief ? Detail::brief : Detail::full);
  nlohmann::ordered_json header{{"schema_version", 1}, {"kind", "run"}, {"source", "simulated"}};
  header["tool"]     = {{"name", "iocast-sim"}, {"version", IOCAST_VERSION}};
  header["command"]  = request_.command;
  header["label"]    = request_.label;
  header["seed"]     = request_.seed;
  header["workload"] = request_.workload.to_json();
  if (!request_.brief)
    header["platform"] = request_.platform.to_json(false);
  header["placement"] = {{"ranks", request_.placement.ranks},
                         {"nodes", request_.placement.nodes()},
                         {"ranks_per_node", request_.placement.ranks_per_node}};
  if (request_.placement.cyclic)
    header["placement"]["order"] = "cyclic";
  header["basis"]        = request_.platform.serves.basis(request_.placement, request_.platform.name);
  header["warnings"]     = pattern_->warnings();
  header["peak_objects"] = pattern_->footprint().peak_objects;
  directory_->begin(std::move(header));
}

void Simulation::add_phase(FinishedPhase phase)
{
  PhaseResult result;
  result.name                 = pattern_->phases()[phase.number].name;
  result.repeat               = pattern_->phases()[phase.number].repeat;
  result.start_seconds        = phase.start;
  result.seconds              = phase.end - phase.start;
  result.rank_seconds         = std::move(phase.rank_seconds);
  result.think_asked_seconds  = phase.think_asked;
  result.think_actual_seconds = phase.think_actual;
  result.most_seconds         = request_.time_limits ? pattern_->phases()[phase.number].most_seconds : 0;
  result.cut_ranks            = phase.cut_ranks;
  result.ranks_per_node       = request_.placement.ranks_per_node;
  result.cyclic               = request_.placement.cyclic;
  result.accelerators         = pattern_->accelerators(phase.number);
  result.first_step_seconds   = phase.first_step_seconds;
  nlohmann::ordered_json more{{"stations", stations_json(request_.platform, request_.placement, phase)}};
  coverage_.add(phase, buffers_);
  if (!buffers_.empty())
    more["buffers"] = buffers_json(request_.platform, buffers_, phase);
  buffers_ = phase.buffers;
  if (!caches_.empty())
    more["caches"] = caches_json(request_.platform, caches_, phase.caches);
  caches_ = phase.caches;
  for (auto& [section, did] : phase.mechanisms.items())
    more[section] = std::move(did);
  if (!phase.extents.empty())
    more["locks"] = locks_json(request_.platform, extents_, phase.extents);
  extents_      = phase.extents;
  short_trains_ = phase.network.short_trains;
  if (!phase.network.busiest.empty())
    more["network"] = network_json(phase.network);
  if (phase.watched)
    more["until"] = precision_json(precision_->achieved());
  directory_->add_phase(std::move(result), phase.recorder, more);
}

/// Bounds of the implementation that the run met, and that changed its answer.
void Simulation::note_bounds()
{
  coverage_.add_bound(
      "short-trains", request_.platform.name, short_trains_,
      fmt::format("{} accesses are of more requests than one and of less than four windows: their rates "
                  "and the lengths of phases hold, the time of a single one is within a window's share "
                  "of its requests.",
                  short_trains_));
  size_t i = 0;
  for (const auto& lock : request_.platform.locks)
    if (lock.extent > 0) {
      const uint64_t forgotten = extents_[i++].forgotten;
      coverage_.add_bound(
          "forgotten-ranges", lock.name, forgotten,
          fmt::format("{} ranges that nodes kept by the lock '{}' were given up at no cost: an object can have {} of "
                      "them here, so that there were fewer call-backs than on the real system.",
                      forgotten, lock.name, ExtentLock::most_ranges));
    }
  for (size_t which = 0; which < caches_.size(); ++which) {
    coverage_.add_bound(
        "sampled-cache", request_.platform.caches[which].name, caches_[which].guessed,
        fmt::format("{} look-ups in the cache '{}' hit as often as others of their kind did lately, which "
                    "lags behind changes of the load: with more than {} entries in all instances, only "
                    "a share of the keys, down to {:.3g}, is kept track of.",
                    caches_[which].guessed, request_.platform.caches[which].name, Caches::most_entries,
                    caches_[which].rate));
    coverage_.add_bound("interrupted-readers", request_.platform.caches[which].name, caches_[which].interrupted,
                        fmt::format("{} times the cache '{}' had forgotten a reader who read on, as there were more "
                                    "than it can tell apart: {} for each reader.",
                                    caches_[which].interrupted, request_.platform.caches[which].name,
                                    ReadAhead::streams_of_reader));
  }
}

nlohmann::ordered_json Simulation::end()
{
  if (!system_->finished())
    throw RunError(fmt::format(
        "The simulation of '{}' stopped at {:.6f} s with requests that can never end; its routes wait for each "
        "other.",
        request_.platform.file, system_->now()));
  note_bounds();
  if (trace_)
    write_trace(*trace_, *pattern_, request_.out + "/ops.h5",
                about_trace("simulated", request_.workload.to_json(), request_.placement, *pattern_, request_.seed));
  nlohmann::ordered_json found = nlohmann::ordered_json::object();
  if (const auto findings = coverage_.findings(); !findings.empty()) {
    const auto sentences = coverage_.sentences();
    found["warnings"]    = pattern_->warnings();
    for (const auto& sentence : sentences)
      found["warnings"].push_back(sentence);
    found["model_limits"] = {{"sentences", sentences}, {"findings", findings}};
  }
  directory_->end("complete", found);
  return std::move(*directory_).json();
}

} // namespace iocast
