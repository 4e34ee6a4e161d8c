// SPDX-License-Identifier: Apache-2.0
#include "real/options.hpp"

#include "input/error.hpp"
#include "input/options.hpp"
#include "real/backend_libraries.hpp"
#include "workload/ops_file.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace iocast {

namespace {
constexpr uint32_t most_threads = 4096;
/// Clients of a dry run: placements count in 32 bits.
constexpr uint32_t most_clients = 1u << 30;

constexpr auto examples = R"(Examples:
  See what a run would do, without touching anything:
    iocast-bench --workload md-workbench --dry-run --ranks 8 --ranks-per-node 4
  Run it in an empty directory, and keep the results in a run directory:
    mpirun -n 8 iocast-bench --set datasets=4 --set iterations=500 --posix.root /scratch/me --out run-8
  Make the working set once, use it several times, remove it:
    mpirun -n 8 iocast-bench --posix.root /scratch/me --set phases=precreate
    mpirun -n 8 iocast-bench --posix.root /scratch/me --set phases=benchmark --out run-a
    mpirun -n 8 iocast-bench --posix.root /scratch/me --set phases=benchmark --set waiting_factor=1 --out run-b
    mpirun -n 8 iocast-bench --posix.root /scratch/me --set phases=cleanup
  Learn what there is and what it takes:
    iocast-bench --list workloads
    iocast-bench --describe md-workbench

Exit codes: 0 done, 1 failed or interrupted or some operations failed, 2 the input can't be used as it is.)";

std::vector<std::string> hidden_secrets(int argc, char** argv)
{
  std::vector<std::string> command(argv, argv + argc);
  for (const auto& backend : backends())
    for (const auto& secret : backend.secrets) {
      const std::string option = fmt::format("--{}.{}", backend.name, secret);
      for (size_t i = 1; i < command.size(); ++i)
        if (command[i].starts_with(option + "="))
          command[i] = option + "=(hidden)";
        else if (command[i - 1] == option)
          command[i] = "(hidden)";
    }
  return command;
}
} // namespace

Options parse_options(int argc, char** argv)
{
  load_backends({argv, argv + argc});
  Options options;
  std::string seed    = "0";
  std::string threads = "1";
  std::string ranks, ranks_per_node;
  std::string watchdog = "60s";
  std::string give_up  = "0s";
  std::string max_rate, max_objects, min_free, stop_latency;
  CLI::App app("iocast-bench runs a workload on a storage system from many MPI ranks and measures every operation.",
               "iocast-bench");
  app.set_help_flag();
  app.footer(examples);
  app.allow_extras();

  app.add_option("--workload", options.workload, "what to run: a name of --list workloads, or a YAML file")
      ->group("What to run");
  app.add_option("--set", options.settings, "sets a parameter of the workload: --set name=value, as often as needed")
      ->allow_extra_args(false)
      ->group("What to run");
  app.add_option("--seed", seed, "seed of all random numbers, default 0, as of the simulator")->group("What to run");
  app.add_flag("--no-time-limits", options.no_time_limits, "run phases to their end, whatever their time limits")
      ->group("What to run");
  app.add_flag("--verify", options.verify,
               "write what can be checked, and check what is read; not within the latencies, but in the phases' time")
      ->group("What to run");
  app.add_flag("--drop-caches{phase}", options.drop_caches,
               "before each phase, or with --drop-caches=run once before the first, have the kernel of each node write "
               "back and forget what it caches of files; needs root")
      ->group("What to run");
  app.add_flag("--sweep", options.sweep, "run nothing, but remove what an unfinished run of this workload has left")
      ->group("What to run");
  app.add_flag("--take-over", options.claim.take_over,
               "take the place over from a run on another host that has given no sign of life for five minutes; of a "
               "dead one on this host this is done anyway")
      ->group("Where to run it");
  app.add_flag("--sole-user", options.claim.sole_user,
               "there is no other run at the place: for services where that can't be made sure of")
      ->group("Where to run it");
  app.add_option(
         "--threads-per-rank", threads,
         "clients of each rank, every one with operations and a thread of its own: more load from few nodes; default 1")
      ->group("What to run");
  app.add_option("--watchdog", watchdog, "say which operation has had no answer for so long; 0s: never, default 60s")
      ->group("What to run");
  app.add_option("--give-up", give_up,
                 "end the run when an operation has had no answer for so long; 0s: never, which is the default")
      ->group("What to run");
  app.add_flag("--dry-run", options.dry_run, "print what the run would do, and touch nothing; needs no MPI")
      ->group("What to run");
  app.add_option("--ranks", ranks, "with --dry-run: number of ranks; default those that mpirun or srun started, else 1")
      ->group("What to run");
  app.add_option("--ranks-per-node", ranks_per_node, "with --dry-run: ranks on each node, default all")
      ->group("What to run");
  app.add_option("--max-rate", max_rate,
                 "maximum operations begun a second, all clients together, as 200/s; delays by it are in no latency")
      ->group("Brakes");
  app.add_option("--max-objects", max_objects, "refuse a workload with more objects than this at a time")
      ->group("Brakes");
  app.add_option("--stop-latency", stop_latency,
                 "end the run when an operation took longer: create:5s,stat:500ms, or any:10s")
      ->group("Brakes");
  app.add_option(
         "--min-free", min_free,
         "end the run when the file system has less than this free, as 50GiB; looked at every second (posix, mpiio)")
      ->group("Brakes");

  app.add_option("--backend", options.backend, "where to run it: a name of --list backends, default posix")
      ->group("Where to run it");
  for (const auto& backend : backends())
    for (const auto& parameter : backend.parameters)
      app.add_option_function<std::string>(
             fmt::format("--{}.{}", backend.name, parameter.name),
             [&options, &backend, &parameter](const std::string& value) {
               options.backend_options[backend.name][parameter.name] = value;
             },
             parameter.meaning + (parameter.fallback.empty() ? "" : ", default " + parameter.fallback))
          ->group("Where to run it");

  app.add_option("--out", options.out, "a new directory for the results (run.json, latency.hlog)")
      ->group("What to keep");
  app.add_option("--label", options.label, "a word of yours that is written into run.json")->group("What to keep");
  app.add_flag("--json", options.json, "print run.json instead of the table")->group("What to keep");
  app.add_flag("--quiet", options.quiet, "do not tell on standard error how far the run is")->group("What to keep");
  app.add_flag("--trace", options.trace, "keep every operation in ops.h5 of the directory named with --out")
      ->group("What to keep");
  app.add_option("--dump-ops", options.dump_ops, "write the operations of each rank to DIR/ops.RANK")
      ->group("What to keep");

  app.add_option("--list", options.list, "list the patterns, workloads or backends")->group("What there is");
  app.add_option("--describe", options.describe, "describe one of them: parameters, units, defaults, source")
      ->group("What there is");
  app.add_flag("--help,-h", options.help, "this text")->group("What there is");
  app.add_flag("--version", options.version, "the version")->group("What there is");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    throw InputError(fmt::format("The command line can't be read: {}. Ask --help for the options.", error.what()));
  }
  if (!app.remaining().empty() && load_all_backends())
    return parse_options(argc, argv); // an option of any of them may be the nearest
  const auto extra = app.remaining();
  if (const auto missing = where_backends_are_missing();
      !missing.empty() && !extra.empty() && extra.front().starts_with("--")) {
    const auto option = extra.front().substr(0, extra.front().find('='));
    if (option.find('.') != std::string::npos)
      throw InputError(fmt::format("There is no option '{}'.{}", option, missing));
  }
  refuse_extra_arguments(app);
  const std::vector<std::string> moments = {"phase", "run"};
  if (!options.drop_caches.empty() && std::find(moments.begin(), moments.end(), options.drop_caches) == moments.end())
    throw InputError(fmt::format("--drop-caches stands alone, for each phase, or with a moment, not with '{}'. {}",
                                 options.drop_caches, allowed_sentence(options.drop_caches, moments)));
  const auto quantity = [](const char* option, const std::string& value, Unit unit) {
    try {
      return parse_quantity(value, unit);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{} can't be used: {}.", option, error.what()));
    }
  };
  options.seed = parse_seed("--seed", seed);
  for (const auto& [option, value] : {std::pair{"--watchdog", &watchdog}, std::pair{"--give-up", &give_up}})
    if (quantity(option, *value, Unit::seconds) < 0)
      throw InputError(fmt::format("{} is a time of zero or more, not {}.", option, *value));
  options.patience = {quantity("--watchdog", watchdog, Unit::seconds), quantity("--give-up", give_up, Unit::seconds)};
  if (!max_rate.empty() && (options.brake.max_rate = quantity("--max-rate", max_rate, Unit::rate)) <= 0)
    throw InputError(fmt::format("--max-rate is above 0, not {}.", max_rate));
  for (const auto& [option, value, unit, to] :
       {std::tuple{"--max-objects", &max_objects, Unit::count, &options.brake.max_objects},
        {"--min-free", &min_free, Unit::bytes, &options.brake.min_free}})
    if (!value->empty()) {
      const double amount = quantity(option, *value, unit);
      if (!(amount >= 1 && amount < 9e18))
        throw InputError(fmt::format("{} is at least 1, not {}.", option, *value));
      *to = static_cast<uint64_t>(amount);
    }
  if (!stop_latency.empty())
    options.brake.set_latencies("--stop-latency", stop_latency);
  const double clients = quantity("--threads-per-rank", threads, Unit::count);
  if (clients < 1 || clients > most_threads)
    throw InputError(fmt::format("--threads-per-rank is between 1 and {}, not {}.", most_threads, threads));
  options.threads_per_rank = static_cast<uint32_t>(clients);
  for (const auto& [option, text, number] : {std::tuple{"--ranks", &ranks, &options.ranks},
                                             {"--ranks-per-node", &ranks_per_node, &options.ranks_per_node}}) {
    if (text->empty())
      continue;
    if (!options.dry_run)
      throw InputError(
          fmt::format("{} belongs to --dry-run; the ranks of a run are those that mpirun -n or srun starts.", option));
    const double value = quantity(option, *text, Unit::count);
    if (value < 1 || value * clients > most_clients)
      throw InputError(
          fmt::format("{} is between 1 and {}, not {}.", option, most_clients / options.threads_per_rank, *text));
    *number = static_cast<uint32_t>(value);
  }
  if (options.ranks_per_node > options.ranks)
    throw InputError(fmt::format("--ranks-per-node is {}, but --ranks is {}; it must be as many or more.",
                                 options.ranks_per_node, ranks.empty() ? "missing" : ranks));
  if (options.trace && options.out.empty())
    throw InputError("--trace keeps the operations in the directory of the results; name one with --out.");
  if (options.trace)
    ops_file::require();
  options.help_text = app.help();
  options.command   = hidden_secrets(argc, argv);
  return options;
}

Parameters backend_parameters(const Options& options, const BackendEntry& entry)
{
  for (const auto& [name, given] : options.backend_options)
    if (name != entry.name)
      throw InputError(
          fmt::format("--{}.{} is an option of the backend '{}', but '{}' is used; say --backend {} to use the "
                      "other.",
                      name, given.begin()->first, name, entry.name, name));
  if (!entry.unavailable.empty())
    throw InputError(fmt::format("The backend '{}' can't be used: {}", entry.name, entry.unavailable));
  Parameters parameters(entry.parameters);
  if (const auto given = options.backend_options.find(entry.name); given != options.backend_options.end())
    for (const auto& [name, value] : given->second) {
      try {
        parameters.set(name, value);
      } catch (const InputError& error) {
        throw InputError(fmt::format("--{}.{}: {}", entry.name, name, error.what()));
      }
    }
  return parameters;
}

} // namespace iocast
