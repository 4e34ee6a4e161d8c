// SPDX-License-Identifier: Apache-2.0
#include "sim/simulate.hpp"

#include "input/error.hpp"
#include "models/coverage.hpp"
#include "models/finished_phase.hpp"
#include "models/system.hpp"
#include "sim/calendar_model.hpp"
#include "sim/network.hpp"
#include "sim/progress.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <sys/resource.h>

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
                    {"waited", after[i].waited - before[i].waited},
                    {"unused", after[i].unused - before[i].unused}});
    if (platform.caches[i].forgotten_by_others)
      entry["taken"] = after[i].taken - before[i].taken;
    if (const uint64_t interrupted = after[i].interrupted - before[i].interrupted; interrupted > 0)
      entry["interrupted"] = interrupted;
  }
  return json;
}

/// Likewise; `lowest` is since the start.
nlohmann::ordered_json pools_json(const Platform& platform, const std::vector<PoolSums>& before,
                                  const std::vector<PoolSums>& after)
{
  auto json = nlohmann::ordered_json::object();
  for (size_t i = 0; i < after.size(); ++i)
    json[platform.pools[i].name] = {{"taken", after[i].taken - before[i].taken},
                                    {"made", after[i].made - before[i].made},
                                    {"left", after[i].left},
                                    {"lowest", std::min<uint64_t>(after[i].lowest, platform.pools[i].size)},
                                    {"waited", after[i].waited - before[i].waited},
                                    {"wait", after[i].wait - before[i].wait}};
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

/// Of the phase, the three busiest links; flows are counted since the start.
nlohmann::ordered_json network_json(const NetworkUse& use)
{
  auto links = nlohmann::ordered_json::array();
  for (const auto& link : use.busiest)
    links.push_back({{"name", link.name}, {"bytes", link.bytes}, {"busy", link.busy}});
  return {{"busiest", links}, {"flows", use.flows}, {"fallbacks", use.fallbacks}};
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

/// Bounds of the implementation that the run met, and that changed its answer.
void note_bounds(Coverage& coverage, const Platform& platform, const std::vector<CacheSums>& caches,
                 const std::vector<ExtentSums>& extents, uint64_t short_trains)
{
  coverage.add_bound("short-trains", platform.name, short_trains,
                     fmt::format("{} accesses are of more requests than one and of less than four windows: their rates "
                                 "and the lengths of phases hold, the time of a single one is within a window's share "
                                 "of its requests.",
                                 short_trains));
  size_t i = 0;
  for (const auto& lock : platform.locks)
    if (lock.extent > 0) {
      const uint64_t forgotten = extents[i++].forgotten;
      coverage.add_bound(
          "forgotten-ranges", lock.name, forgotten,
          fmt::format("{} ranges that nodes kept by the lock '{}' were given up at no cost: an object can have {} of "
                      "them here, so that there were fewer call-backs than on the real system.",
                      forgotten, lock.name, ExtentLock::most_ranges));
    }
  for (size_t which = 0; which < caches.size(); ++which) {
    coverage.add_bound(
        "sampled-cache", platform.caches[which].name, caches[which].guessed,
        fmt::format("{} look-ups in the cache '{}' hit as often as others of their kind did lately, which "
                    "lags behind changes of the load: with more than {} entries in all instances, only "
                    "a share of the keys, down to {:.3g}, is kept track of.",
                    caches[which].guessed, platform.caches[which].name, Caches::most_entries, caches[which].rate));
    coverage.add_bound("interrupted-readers", platform.caches[which].name, caches[which].interrupted,
                       fmt::format("{} times the cache '{}' had forgotten a reader who read on, as there were more "
                                   "than it can tell apart: {} for each reader.",
                                   caches[which].interrupted, platform.caches[which].name,
                                   ReadAhead::streams_of_reader));
  }
}

/// SimGrid's flows know links of a network and nothing else.
void refuse_devices(const Platform& platform)
{
  for (const auto& station : platform.stations)
    if (station.disk.exists() || station.rpc.size > 0)
      throw InputError(fmt::format("SimGrid's flows (--flows simgrid) pass no {}, and the station '{}' of the platform "
                                   "'{}' has one; compare on a platform without, such as 'network'.",
                                   station.disk.exists() ? "disk" : "window of requests", station.name, platform.name));
}

/// Links that share as ours do, for SimGrid's flows to be compared with them.
void configure_simgrid()
{
  using simgrid_compat::s4u::Engine;
  // The default network model stretches latencies 13-fold and takes 3 % off bandwidths, to resemble TCP on Ethernet of
  // 2008; an HPC fabric does neither. No TCP window either, and no cost of the reverse direction.
  Engine::set_config("network/model:CM02");
  Engine::set_config("network/TCP-gamma:0");
  Engine::set_config("network/crosstraffic:0");
  // The default updates only flows near those that changed and at times leaves some at old rates, in 3.32 other ones
  // than in 4.1: half a millisecond off max-min sharing in validation/theory/test_flows.py.
  Engine::set_config("network/optim:Full");
}
} // namespace

nlohmann::ordered_json simulate(const SimulationRequest& request, SimulationCost& cost)
{
  const auto started  = std::chrono::steady_clock::now();
  const auto pattern  = request.workload.make(request.placement);
  const bool compares = request.simgrid_flows && Fabric::limits(request.platform);
  if (compares)
    refuse_devices(request.platform);
  Coverage coverage(request.platform, *pattern, request.placement);

  std::optional<PrecisionWatch> precision;
  if (!request.until.empty()) {
    check_phase(*pattern, request.until_phase);
    double longest_period = 0;
    for (const auto& stall : request.platform.stalls)
      longest_period = std::max(longest_period, stall.every);
    for (const auto& failure : request.platform.failures) {
      if (failure.every == 0)
        throw InputError(fmt::format("The failure '{}' of '{}' happens once, so that nothing settles that --until "
                                     "could know well; give it an 'every', or simulate the whole workload.",
                                     failure.name, request.platform.file));
      longest_period = std::max(longest_period, failure.every);
    }
    precision.emplace(request.until, request.placement.ranks, longest_period);
  }

  // Checks the routes before anything is made on disk.
  RunDirectory* open = nullptr;
  std::vector<BufferSums> buffers(request.platform.buffers.size());
  std::vector<CacheSums> caches(request.platform.caches.size());
  std::vector<PoolSums> pools(request.platform.pools.size());
  std::vector<ExtentSums> extents(request.platform.locks.size());
  uint64_t short_trains = 0;
  SimulationProgress progress(*pattern);
  auto on_phase = [&](FinishedPhase phase) {
    PhaseResult result;
    result.name                 = pattern->phases()[phase.number].name;
    result.repeat               = pattern->phases()[phase.number].repeat;
    result.start_seconds        = phase.start;
    result.seconds              = phase.end - phase.start;
    result.rank_seconds         = std::move(phase.rank_seconds);
    result.think_asked_seconds  = phase.think_asked;
    result.think_actual_seconds = phase.think_actual;
    result.most_seconds         = request.time_limits ? pattern->phases()[phase.number].most_seconds : 0;
    result.cut_ranks            = phase.cut_ranks;
    result.ranks_per_node       = request.placement.ranks_per_node;
    result.cyclic               = request.placement.cyclic;
    result.accelerators         = pattern->accelerators(phase.number);
    result.first_step_seconds   = phase.first_step_seconds;
    nlohmann::ordered_json more{{"stations", stations_json(request.platform, request.placement, phase)}};
    coverage.add(phase, buffers);
    if (!buffers.empty())
      more["buffers"] = buffers_json(request.platform, buffers, phase);
    buffers = phase.buffers;
    if (!caches.empty())
      more["caches"] = caches_json(request.platform, caches, phase.caches);
    caches = phase.caches;
    if (!pools.empty())
      more["pools"] = pools_json(request.platform, pools, phase.pools);
    pools = phase.pools;
    if (!phase.extents.empty())
      more["locks"] = locks_json(request.platform, extents, phase.extents);
    extents      = phase.extents;
    short_trains = phase.network.short_trains;
    if (!phase.network.busiest.empty())
      more["network"] = network_json(phase.network);
    if (phase.watched)
      more["until"] = precision_json(precision->achieved());
    open->add_phase(std::move(result), phase.recorder, more);
  };
  if (!request.op_stream_directory.empty() && !std::filesystem::create_directories(request.op_stream_directory))
    throw InputError(
        fmt::format("The directory '{}' of --dump-ops exists already; name a new one, nothing is overwritten.",
                    request.op_stream_directory));
  System::Options options;
  options.seed                = request.seed;
  options.hands_out_flows     = compares;
  options.op_stream_directory = request.op_stream_directory;
  options.time_limits         = request.time_limits;
  options.precision           = precision ? &*precision : nullptr;
  options.precision_phase     = request.until_phase;
  std::optional<OpTrace> trace;
  if (request.trace)
    options.trace = &trace.emplace(request.placement.ranks);
  System system(request.platform, *pattern, request.placement, options, on_phase);

  const auto footprint = pattern->footprint();
  check_size(footprint);
  RunDirectory directory(request.out, request.brief ? Detail::brief : Detail::full);
  open = &directory;
  nlohmann::ordered_json header{{"schema_version", 1}, {"kind", "run"}, {"source", "simulated"}};
  header["tool"]     = {{"name", "iocast-sim"}, {"version", IOCAST_VERSION}};
  header["command"]  = request.command;
  header["label"]    = request.label;
  header["seed"]     = request.seed;
  header["workload"] = request.workload.to_json();
  if (!request.brief)
    header["platform"] = request.platform.to_json(false);
  header["placement"] = {{"ranks", request.placement.ranks},
                         {"nodes", request.placement.nodes()},
                         {"ranks_per_node", request.placement.ranks_per_node}};
  if (request.placement.cyclic)
    header["placement"]["order"] = "cyclic";
  header["warnings"]     = pattern->warnings();
  header["peak_objects"] = footprint.peak_objects;
  directory.begin(std::move(header));

  int argc          = 1;
  std::string name  = "iocast-sim";
  std::string log   = "--log=root.thresh:warning";
  char* arguments[] = {name.data(), log.data(), nullptr};
  argc              = 2;
  simgrid_compat::s4u::Engine engine(&argc, arguments);
  configure_simgrid();
  std::unique_ptr<Network> network;
  if (compares)
    network = std::make_unique<Network>(engine, request.platform, request.placement);
  else
    simgrid_compat::add_star_zone("cluster")->seal(); // SimGrid wants a platform, be it empty
  if (network)
    network->connect(system);
  system.start();
  engine.add_model(std::make_shared<CalendarModel>(system, network.get(), progress));
  engine.run();
  progress.end();
  if (!system.finished())
    throw RunError(fmt::format(
        "The simulation of '{}' stopped at {:.6f} s with requests that can never end; its routes wait for each "
        "other.",
        request.platform.file, system.now()));
  if (network && network->is_idle() && network->begun_bytes() != network->ended_bytes())
    throw RunError(fmt::format("Transfers of {} bytes began and of {} ended; this is an error of the simulator.",
                               network->begun_bytes(), network->ended_bytes()));
  note_bounds(coverage, request.platform, caches, extents, short_trains);
  if (trace)
    write_trace(*trace, *pattern, request.out + "/ops.h5",
                about_trace("simulated", request.workload.to_json(), request.placement, *pattern, request.seed));
  nlohmann::ordered_json found = nlohmann::ordered_json::object();
  if (!coverage.findings().empty()) {
    const auto sentences = coverage.sentences();
    found["warnings"]    = pattern->warnings();
    for (const auto& sentence : sentences)
      found["warnings"].push_back(sentence);
    found["model_limits"] = {{"sentences", sentences}, {"findings", coverage.findings()}};
  }
  directory.end("complete", found);

  cost.requests     = system.requests();
  cost.events       = system.events();
  cost.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  cost.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  return std::move(directory).json();
}

} // namespace iocast
