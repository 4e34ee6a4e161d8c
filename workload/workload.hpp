// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/pattern.hpp"

#include <string>
#include <vector>

namespace iocast {

/// A workload: a pattern with its parameters, under a name of the catalogue.
struct Workload {
  std::string name;
  const PatternEntry* pattern;
  std::string source; ///< of the catalogue entry if it says its own, else of the pattern
  Parameters parameters;
  std::vector<std::string> small; ///< as of PatternEntry; those of the catalogue entry if it has its own

  std::unique_ptr<Pattern> make(const Placement& placement) const;
  /// Whether its parameter `placement` says so.
  bool is_cyclic() const;
  nlohmann::ordered_json to_json() const;
};

/// Opens a workload by catalogue name (workload/catalogue/NAME.yaml), by YAML file, or by pattern name, then applies
/// "key=value" settings. `seed` is that of the run: a pattern with a parameter `seed` draws with it, unless that
/// parameter is set.
/// @throws InputError: nothing of that name (with the nearest match), bad keys, units or values (with file and line)
Workload open_workload(const std::string& name_or_file, const std::vector<std::string>& settings, uint64_t seed = 0);

struct CatalogueEntry {
  std::string name;
  std::string description;
  std::string file;
};
std::vector<CatalogueEntry> catalogue();

/// A checked number of nodes and ranks per node.
/// @throws InputError when either is zero or the product can't be numbered
Placement make_placement(long long nodes, long long ranks_per_node, bool cyclic = false);

/// Where the files that belong to iocast lie (workload/catalogue, platforms): $IOCAST_HOME, else beside the installed
/// programs, else the source tree they were built from.
std::string data_directory(const std::string& name);

} // namespace iocast
