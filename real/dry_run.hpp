// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/options.hpp"
#include "workload/workload.hpp"

#include <string>
#include <vector>

namespace iocast {

/// Placement of the clients for run.json and --dry-run.
nlohmann::ordered_json to_json(const Placement& clients, uint32_t nodes, uint32_t threads_per_rank);

/// Refuses a backend that lacks what the options or the pattern need of it. @throws InputError
void check_backend(const Options& options, const BackendEntry& entry, const Backend& backend, const Pattern& pattern);

/// Prints what a run would do: phases, operations, bytes; text or JSON.
void print_dry_run(const Options& options, const Workload& workload, const Pattern& pattern,
                   const nlohmann::ordered_json& placement, const std::vector<std::string>& warnings);

/// Prints the warnings of a run on standard error.
void print_warnings(const std::vector<std::string>& warnings);

/// --dry-run without MPI, for the ranks of --ranks and --ranks-per-node. @throws InputError
void dry_run(const Options& options);

} // namespace iocast
