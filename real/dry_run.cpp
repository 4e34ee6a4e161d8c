// SPDX-License-Identifier: Apache-2.0
#include "real/dry_run.hpp"

#include "input/error.hpp"
#include "real/content.hpp"
#include "real/describe.hpp"

#include <fmt/format.h>
#include <optional>

namespace iocast {

using Json = nlohmann::ordered_json;

Json to_json(const Placement& clients, uint32_t nodes, uint32_t threads_per_rank)
{
  Json json{{"ranks", clients.ranks},
            {"nodes", nodes},
            {"ranks_per_node", clients.ranks_per_node},
            {"threads_per_rank", threads_per_rank}};
  if (clients.cyclic)
    json["order"] = "cyclic";
  return json;
}

void check_backend(const Options& options, const BackendEntry& entry, const Backend& backend, const Pattern& pattern)
{
  if (backend.keeps_data() != entry.keeps_data)
    throw RunError(
        fmt::format("The backend '{}' is registered with keeps_data = {}, and its objects say otherwise; make "
                    "both alike in real/backends/{}.cpp.",
                    entry.name, entry.keeps_data, entry.name));
  if (options.verify && !backend.keeps_data())
    throw InputError(
        fmt::format("The backend '{}' keeps no data that --verify could check; choose another one.", entry.name));
  for (const auto& [kind, count] : pattern.footprint().operations)
    if (count > 0 && !backend.serves(kind))
      throw InputError(
          fmt::format("The backend '{}' has no operation '{}', which the workload asks for; choose another one.",
                      entry.name, name_of(kind)));
}

void print_warnings(const std::vector<std::string>& warnings)
{
  for (const auto& warning : warnings)
    fmt::print(stderr, "iocast-bench: warning: {}\n", warning);
}

void print_dry_run(const Options& options, const Workload& workload, const Pattern& pattern, const Json& placement,
                   const std::vector<std::string>& warnings)
{
  auto phases = Json::array();
  for (const auto& phase : pattern.phases())
    phases.push_back({{"name", phase.name},
                      {"repeat", phase.repeat},
                      {"most_seconds", options.no_time_limits ? 0 : phase.most_seconds}});
  Json json{{"schema_version", 1},    {"kind", "dry-run"}, {"workload", workload.to_json()},
            {"placement", placement}, {"phases", phases},  {"footprint", to_json(pattern.footprint())},
            {"warnings", warnings}};
  if (const auto brake = options.brake.to_json(); !brake.is_null())
    json["brake"] = brake;
  fmt::print("{}", options.json ? json.dump(1) + "\n" : dry_run_text(json));
}

void dry_run(const Options& options)
{
  const uint32_t ranks    = std::max<uint32_t>(1, options.ranks);
  const uint32_t per_node = options.ranks_per_node > 0 ? options.ranks_per_node : ranks;
  const uint32_t nodes    = (ranks + per_node - 1) / per_node;
  const auto workload     = open_workload(options.workload, options.settings, options.seed);
  const Placement clients{ranks * options.threads_per_rank, per_node * options.threads_per_rank, workload.is_cyclic()};
  const auto pattern = workload.make(clients);
  check_size(pattern->footprint());
  options.brake.check(pattern->footprint());
  const auto& entry     = backend_named(options.backend);
  const auto parameters = backend_parameters(options, entry);
  std::optional<Content> content;
  if (options.verify)
    content.emplace(options.seed);
  check_backend(options, entry,
                *entry.make(parameters, {0, options.seed, MPI_COMM_SELF, content ? &*content : nullptr}), *pattern);
  const auto warnings = pattern->warnings();
  print_warnings(warnings);
  print_dry_run(options, workload, *pattern, to_json(clients, nodes, options.threads_per_rank), warnings);
}

} // namespace iocast
