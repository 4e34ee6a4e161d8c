// SPDX-License-Identifier: Apache-2.0
//
// iocast-sim: a workload on a platform, simulated.
#include "input/error_code.hpp"
#include "input/options.hpp"
#include "models/law.hpp"
#include "models/mechanism.hpp"
#include "models/topology.hpp"
#include "profile/summary.hpp"
#include "sim/serve.hpp"
#include "sim/simgrid_library.hpp"
#include "sim/simulate.hpp"
#include "workload/count.hpp"
#include "workload/describe.hpp"
#include "workload/ops_file.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <fmt/format.h>

namespace iocast {
namespace {

constexpr const char* examples = R"(
Examples:
  iocast-sim --platform mistral --workload md-workbench --set iterations=100 --nodes 10 --ppn 10
  iocast-sim --platform fitted.yaml --set waiting_factor=4 --nodes 1000 --ppn 24 --seed 7 --out runs/t4
  iocast-sim --platform lustre --nodes 500 --set phases=benchmark --set objects=100000 --set iterations=100000 \
             --until 'q99:5%'
  iocast-sim --platform lustre --print-platform          the platform as it was understood, as JSON
  iocast-sim --list platforms;  iocast-sim --describe station

Exit status: 0 done, 1 failed, 2 bad input.)";

struct Arguments {
  std::string platform;
  std::string workload = "md-workbench";
  std::vector<std::string> settings;
  long long nodes       = 1;
  bool nodes_given      = false;
  long long ppn         = 1;
  std::string placement = "block";
  bool placement_given  = false;
  std::optional<uint32_t> stripe_count;
  std::string seed = "0";
  std::string out;
  std::string label;
  std::string dump_ops;
  bool trace = false;
  std::string until;
  std::string phase = "benchmark";
  std::string list;
  std::string describe;
  bool no_time_limits       = false;
  std::string flows         = "own";
  bool print_platform       = false;
  bool print_workload       = false;
  uint64_t count_operations = 0;
  bool json                 = false;
  bool brief                = false;
  bool serve                = false;
  bool beyond               = false;
};

std::vector<Listed> listed(const std::string& what)
{
  if (what == "workloads")
    return list_workloads();
  if (what == "patterns")
    return list_patterns();
  std::vector<Listed> entries;
  if (what == "platforms")
    for (const auto& entry : platforms())
      entries.push_back({entry.name, entry.description});
  else if (what == "primitives")
    for (const auto& entry : primitives())
      entries.push_back({entry.name, entry.summary});
  else
    throw InputError(fmt::format(
        "There is no list of '{}'. {}", what,
        allowed_sentence(what, std::vector<std::string>{"workloads", "patterns", "platforms", "primitives"})));
  return entries;
}

/// @param nodes client nodes of a platform's network; 0: see describe_network()
nlohmann::ordered_json description_of(const std::string& name, uint32_t nodes)
{
  if (auto workload = describe_workload(name))
    return *workload;
  for (const auto& primitive : primitives())
    if (primitive.name == name || (primitive.mechanism != nullptr && primitive.mechanism->section == name)) {
      nlohmann::ordered_json json{{"name", primitive.name}, {"kind", "primitive"}, {"summary", primitive.summary}};
      for (const auto& [key, meaning] : primitive.keys) {
        json["keys"].push_back({{"name", key}, {"meaning", meaning}});
        if (primitive.mechanism != nullptr)
          json["keys"].back().update(primitive.mechanism->declared(key));
      }
      if (primitive.mechanism != nullptr && !primitive.mechanism->step.empty())
        json["mechanism"] = primitive.mechanism->drawn();
      return json;
    }
  std::vector<std::string> names;
  for (const auto& what : {"workloads", "patterns", "platforms", "primitives"})
    for (const auto& entry : listed(what))
      names.push_back(entry.name);
  if (!name.ends_with(".yaml") && std::find(names.begin(), names.end(), name) == names.end())
    throw InputError(fmt::format("Nothing is called '{}'. {}", name, allowed_sentence(name, names)));
  const auto platform = open_platform(name);
  auto json           = platform.to_json(false);
  json["kind"]        = "platform";
  for (const auto& mechanism : platform.mechanisms)
    json["mechanisms"][mechanism->kind->section] = mechanism->kind->drawn();
  if (auto network = describe_network(platform, nodes); !network.is_null())
    json["topology"] = std::move(network);
  return json;
}

/// The platform that a server's last request was about: a search asks many things of one, and to read it takes as long
/// as a small simulation.
class LastPlatform {
public:
  /// Opens it, if it is another than before. What is wrong with it is left to the run to say.
  void prepare(const std::vector<std::string>& arguments)
  {
    load_libraries(arguments);
    const auto at = std::find(arguments.begin(), arguments.end(), "--platform");
    if (at == arguments.end() || at + 1 == arguments.end() || !(at + 1)->starts_with('/'))
      return; // a run may be in another directory
    if (*(at + 1) == file_ && is_as_read())
      return;
    file_.clear();
    try {
      platform_ = open_platform(*(at + 1));
      file_     = *(at + 1);
    } catch (const std::exception&) {
    }
  }
  /// The one that was prepared, or a fresh one. Once: a run has a process of its own. @throws InputError
  Platform take(const std::string& platform, std::optional<uint32_t> stripe_count)
  {
    return platform == file_ && !stripe_count ? std::move(platform_) : open_platform(platform, stripe_count);
  }

private:
  /// Those that the run will need, once for all runs.
  static void load_libraries(const std::vector<std::string>& arguments)
  {
    const auto any = [&](const char* text) {
      return std::any_of(arguments.begin(), arguments.end(),
                         [&](const auto& word) { return word.find(text) != std::string::npos; });
    };
    try {
      if (any("simgrid"))
        simgrid_library();
      if (any("replay") || any(".h5"))
        ops_file::require();
    } catch (const InputError&) { // the run says so, if it does need them
    }
  }
  /// Nothing has changed in its file nor in those that it extends; texts are compared much faster than they are
  /// understood.
  bool is_as_read() const
  {
    try {
      return std::all_of(platform_.read.begin(), platform_.read.end(),
                         [](const auto& one) { return text_of(one.first) == one.second; });
    } catch (const InputError&) {
      return false;
    }
  }

  std::string file_;
  Platform platform_;
};

LastPlatform& last_platform()
{
  static LastPlatform one;
  return one;
}

/// The workload with all its parameters, and its phases: nothing is simulated. Unless `most` is 0 with what its ranks
/// ask for, see count_operations().
nlohmann::ordered_json workload_json(const Workload& workload, const Placement& placement, uint64_t most)
{
  const auto pattern = workload.make(placement);
  auto phases        = nlohmann::ordered_json::array();
  for (const auto& phase : pattern->phases())
    phases.push_back({{"name", phase.name}, {"repeat", phase.repeat}, {"most_seconds", phase.most_seconds}});
  nlohmann::ordered_json json{{"workload", workload.to_json()}, {"phases", phases}};
  if (most > 0)
    json["counted"] = count_operations(*pattern, placement, most);
  return json;
}

/// The workload, with the placement of the option or of its settings.
/// \throws InputError where both have one, and they differ
Workload workload_of(const Arguments& given)
{
  auto settings = given.settings;
  for (const auto& setting : settings)
    if (given.placement_given && setting.starts_with("placement=") && setting != "placement=" + given.placement)
      throw InputError(fmt::format("--placement {} and --set {} differ; leave one out.", given.placement, setting));
  if (given.placement == "cyclic")
    settings.push_back("placement=cyclic");
  return open_workload(given.workload, settings, parse_seed("--seed", given.seed));
}

Placement placement_of(const Arguments& given, const Workload& workload)
{
  return make_placement(given.nodes, given.ppn, workload.is_cyclic());
}

/// A line for each sentence on what the run's answers rest on.
std::string basis_text(const nlohmann::ordered_json& json)
{
  std::string text;
  for (const auto& sentence : json["basis"])
    text += sentence.get<std::string>() + "\n";
  return text;
}

int run(const Arguments& given, const std::vector<std::string>& command)
{
  if (!given.list.empty()) {
    fmt::print("{}", list_text(given.list, listed(given.list), given.json));
    return 0;
  }
  if (!given.describe.empty()) {
    auto description = description_of(given.describe, given.nodes_given ? make_placement(given.nodes, 1).nodes() : 0);
    if (!given.json) // these are for programs
      for (const char* key : {"mechanism", "mechanisms"})
        description.erase(key);
    fmt::print("{}", description_text(description, given.json));
    return 0;
  }
  if (given.brief && (!given.json || !given.out.empty()))
    throw InputError("--brief shortens what --json prints; it needs --json, and does not go with --out, for a run "
                     "directory has all.");
  if (given.print_workload) {
    const auto workload = workload_of(given);
    fmt::print("{}\n", workload_json(workload, placement_of(given, workload), given.count_operations).dump());
    return 0;
  }
  if (given.platform.empty())
    throw InputError("Which platform? Name one with --platform (see --list platforms, or give a YAML file).");
  if (given.trace && given.out.empty())
    throw InputError("--trace keeps the operations in the run directory; name one with --out.");
  auto workload        = workload_of(given);
  const auto placement = placement_of(given, workload);
  if (given.trace && placement.cyclic)
    throw InputError("A trace is of ranks that lie in blocks; leave out --trace or the cyclic placement.");
  if (given.trace)
    ops_file::require();
  const uint64_t seed = parse_seed("--seed", given.seed);
  SimulationRequest request{last_platform().take(given.platform, given.stripe_count),
                            std::move(workload),
                            placement,
                            seed,
                            given.label,
                            given.out,
                            given.dump_ops,
                            command,
                            !given.no_time_limits,
                            given.trace,
                            given.brief,
                            {},
                            given.phase,
                            given.flows == "simgrid"};
  if (!given.until.empty())
    request.until = parse_precision(given.until);
  if (given.print_platform) {
    fmt::print("{}\n", request.platform.to_json(true).dump());
    return 0;
  }
  if (!given.beyond)
    request.platform.serves.refuse_beyond(request.placement);
  SimulationCost cost;
  auto json = simulate(request, cost);
  for (const auto& warning : json["warnings"])
    fmt::print(stderr, "iocast-sim: {}\n", warning.get<std::string>());
  json["simgrid"]             = simgrid_version();
  json["requests_per_second"] = static_cast<double>(cost.requests) / cost.wall_seconds;
  json["requests"]            = cost.requests;
  json["events"]              = cost.events;
  json["wall_seconds"]        = cost.wall_seconds;
  json["peak_rss_bytes"]      = cost.peak_rss_bytes;
  if (given.json)
    fmt::print("{}\n", json.dump());
  else
    fmt::print("{}{}{} requests simulated in {:.2f} s: {:.2f} million a second, {:.0f} MiB\n", summary_text(json),
               basis_text(json), cost.requests, cost.wall_seconds,
               static_cast<double>(cost.requests) / cost.wall_seconds * 1e-6,
               static_cast<double>(cost.peak_rss_bytes) / 1048576);
  return 0;
}

/// Whether programs read what this command line prints.
bool prints_json(const std::vector<std::string>& command)
{
  return std::any_of(command.begin(), command.end(), [](const std::string& word) {
    return word == "--json" || word == "--print-platform" || word == "--print-workload";
  });
}

/// Says what went wrong: to people on standard error, with --json to programs on standard output.
/// @returns the exit status
int failed(bool json, int status, const char* code, const char* message, bool for_people = true)
{
  if (for_people)
    fmt::print(stderr, "iocast-sim: {}\n", message);
  if (json)
    fmt::print("{}\n", nlohmann::ordered_json{{"error", {{"code", code}, {"message", message}}}}.dump());
  return status;
}

/// One command line, a process's own or one of those that --serve runs.
int run_command(const std::vector<std::string>& command, bool served)
{
  CLI::App app{
      "iocast-sim simulates a workload on a platform and reports throughput and the whole latency distribution."};
  app.name(command.front());
  app.allow_extras();
  app.footer(examples);
  app.set_version_flag("--version", std::string("iocast-sim ") + IOCAST_VERSION + ", SimGrid " + simgrid_version());
  Arguments given;
  app.add_option("--platform", given.platform, "platform of platforms/ by name, or a YAML file");
  app.add_option("--workload", given.workload, "workload of the catalogue, pattern, or a YAML file")
      ->capture_default_str();
  app.add_option("--set", given.settings, "a parameter of the workload, name=value; may be repeated")->take_all();
  const auto* nodes = app.add_option("--nodes", given.nodes, "client nodes")->capture_default_str();
  app.add_option("--ppn", given.ppn, "ranks a node")->capture_default_str();
  const auto* placement =
      app.add_option("--placement", given.placement,
                     "block: the first --ppn ranks on the first node; cyclic: rank r on node r mod --nodes")
          ->capture_default_str();
  app.add_option("--stripe-count", given.stripe_count,
                 "instances that each object is striped over, in place of the platform's stripe_count")
      ->check(CLI::PositiveNumber);
  app.add_flag("--beyond", given.beyond,
               "simulate also more than ten times the nodes or ranks of any published number of the platform");
  app.add_option("--seed", given.seed, "seed of all random draws")->capture_default_str();
  app.add_option("--out", given.out, "run directory to write; it must not exist");
  app.add_option("--label", given.label, "a name for the run, kept in run.json");
  app.add_flag("--no-time-limits", given.no_time_limits, "run phases to their end, whatever their time limits");
  app.add_option("--flows", given.flows,
                 "who shares the links among large transfers: own, or simgrid, a much slower reference for comparisons")
      ->capture_default_str();
  auto* until = app.add_option(
      "--until", given.until,
      "end the simulation when its results are so exact, such as q99:5%,rate:1% (half of the 95 % confidence interval, "
      "after the warm-up); without, the whole workload is simulated");
  app.add_option("--phase", given.phase, "the phase that --until watches")->capture_default_str()->needs(until);
  app.add_flag("--trace", given.trace, "keep every operation in ops.h5 of the run directory");
  app.add_option("--dump-ops", given.dump_ops, "directory for each rank's operations, one file a rank");
  app.add_option("--list", given.list, "workloads, patterns, platforms or primitives");
  app.add_option("--describe", given.describe, "a workload, pattern, platform or primitive in full");
  app.add_flag("--print-platform", given.print_platform, "print the resolved platform as JSON and stop");
  auto* print_workload = app.add_flag("--print-workload", given.print_workload,
                                      "print the workload's parameters and phases as JSON and stop");
  app.add_option(
         "--count-operations", given.count_operations,
         "also counts the phases' operations: of all ranks where these have no more than this, else of some ranks")
      ->needs(print_workload);
  app.add_flag("--json", given.json, "one JSON object on standard output, all else on standard error");
  app.add_flag("--brief", given.brief,
               "without the platform, timelines, slowest operations and times of ranks and nodes, for programs that "
               "simulate much; with --json");
  app.add_flag("--serve", given.serve, "run command lines from standard input, as iocast does; see sim/serve.hpp");
  try {
    std::vector<std::string> arguments(command.rbegin(), command.rend() - 1); // CLI11 wants them last first
    app.parse(arguments);
    refuse_extra_arguments(app);
    check_choice("--placement", given.placement, {"block", "cyclic"});
    check_choice("--flows", given.flows, {"own", "simgrid"});
    given.nodes_given     = nodes->count() > 0;
    given.placement_given = placement->count() > 0;
  } catch (const InputError& error) {
    return failed(prints_json(command), 2, error_code::bad_input, error.what());
  } catch (const CLI::ParseError& error) {
    if (app.exit(error) == 0)
      return 0;
    return failed(prints_json(command), 2, error_code::bad_input, error.what(), false);
  }
  const bool json = prints_json(command);
  try {
    if (given.serve && !served)
      return serve([](const std::vector<std::string>& arguments) { last_platform().prepare(arguments); },
                   [&command](const std::vector<std::string>& arguments) {
                     std::vector<std::string> whole{command.front()};
                     whole.insert(whole.end(), arguments.begin(), arguments.end());
                     return run_command(whole, true);
                   });
    return run(given, command);
  } catch (const InputError& error) {
    return failed(json, 2, code_of(error, error_code::bad_input), error.what());
  } catch (const RunError& error) {
    return failed(json, 1, code_of(error, error_code::failed), error.what());
  } catch (const std::bad_alloc&) {
    return failed(json, 1, error_code::failed,
                  "There is not enough memory for this simulation; it takes less with fewer ranks or operations.");
  } catch (const std::exception& error) {
    return failed(json, 1, error_code::failed, error.what());
  }
}

} // namespace
} // namespace iocast

int main(int argc, char** argv)
{
  iocast::topology_kinds().push_back(iocast::simgrid_kind());
  return iocast::run_command({argv, argv + argc}, false);
}
