// SPDX-License-Identifier: Apache-2.0
//
// iocast-sim for pages: the same simulation, driven step by step by a script of the page (page/worker.js) that gives
// it a request as JSON and takes the result as JSON.
#include "input/error.hpp"
#include "sim/simulation.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

namespace iocast {
namespace {

/// One simulation at a time; it refers to its request.
struct Run {
  explicit Run(SimulationRequest wanted) : request(std::move(wanted)), simulation(request)
  {
    for (const auto& [kind, count] : simulation.pattern().footprint().operations)
      operations += count;
    simulation.start();
  }
  SimulationRequest request;
  Simulation simulation;
  uint64_t operations = 0; ///< of the whole workload
};

std::unique_ptr<Run> run;
std::string answer;

/// The text stays until the next call. What went wrong is {"error": {"kind": ..., "message": ...}}.
template <class Action> const char* answered(Action action)
{
  nlohmann::ordered_json json;
  auto failed = [&json](const char* kind, const char* message) {
    json = {{"error", {{"kind", kind}, {"message", message}}}};
    run.reset();
  };
  try {
    json = action();
  } catch (const InputError& error) {
    failed("bad-input", error.what());
  } catch (const std::bad_alloc&) {
    failed("memory", "The simulation needs more memory than a page has; use iocast-sim for this scale.");
  } catch (const std::exception& error) {
    failed("failed", error.what());
  }
  answer = json.dump();
  return answer.c_str();
}

SimulationRequest request_of(const nlohmann::json& json)
{
  const auto seed  = json.value("seed", uint64_t{0});
  const auto until = json.value("until", std::string());
  auto workload =
      open_workload(json.at("workload").get<std::string>(), json.value("settings", std::vector<std::string>{}), seed);
  const bool cyclic = json.value("cyclic", false) || workload.is_cyclic();
  SimulationRequest request{
      .platform = open_platform(json.at("platform").get<std::string>()),
      .workload = std::move(workload),
      .placement =
          make_placement(json.at("nodes").get<long long>(), json.at("ranks_per_node").get<long long>(), cyclic),
      .seed  = seed,
      .brief = true,
  };
  request.until_phase = json.value("phase", std::string("benchmark"));
  if (!until.empty())
    request.until = parse_precision(until);
  return request;
}

} // namespace
} // namespace iocast

extern "C" {

/// Begins a simulation, in place of one that has begun before. `request`: JSON with the keys platform and workload
/// (files or names of the catalogue), nodes, ranks_per_node, settings, seed, cyclic, until and phase.
const char* iocast_begin(const char* request)
{
  return iocast::answered([request] {
    iocast::run.reset();
    iocast::run = std::make_unique<iocast::Run>(iocast::request_of(nlohmann::json::parse(request)));
    return nlohmann::ordered_json{{"operations", iocast::run->operations}};
  });
}

/// Works off at most `most_events` events.
/// @return JSON: {"share": of the operations, "rate": of all so far, "done": false} or what run.json has
const char* iocast_step(double most_events)
{
  return iocast::answered([most_events]() -> nlohmann::ordered_json {
    auto& run    = *iocast::run;
    auto& system = run.simulation.system();
    if (!system.run(std::numeric_limits<double>::infinity(), static_cast<uint64_t>(most_events)))
      return {{"done", false},
              {"share", std::min(1.0, static_cast<double>(system.requests()) /
                                          static_cast<double>(std::max<uint64_t>(run.operations, 1)))},
              {"rate", system.now() > 0 ? static_cast<double>(system.requests()) / system.now() : 0}};
    auto json        = run.simulation.end();
    json["requests"] = system.requests();
    json["events"]   = system.events();
    iocast::run.reset();
    return json;
  });
}

/// The platform as it was understood. @return JSON, as iocast-sim --print-platform has it
const char* iocast_platform(const char* name_or_file)
{
  return iocast::answered([name_or_file] { return iocast::open_platform(name_or_file).to_json(false); });
}
}
