// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace iocast {

/// One line of `--list`: what it is called, what it is, and why it can't be used here (empty: it can).
struct Listed {
  std::string name;
  std::string summary;
  std::string needs              = {};
  std::optional<bool> keeps_data = {}; ///< of a backend: whether data outlives the process
};

std::vector<Listed> list_patterns();
std::vector<Listed> list_workloads();

/// A workload of the catalogue, a workload file or a pattern, in full; nothing when there is none of that name. The
/// parameters of a workload have its values as defaults.
std::optional<nlohmann::ordered_json> describe_workload(const std::string& name);

/// `{what: [{name, summary, available, needs}]}`, of backends also keeps_data; or lines for people.
std::string list_text(const std::string& what, const std::vector<Listed>& entries, bool json);
/// A description, as JSON or for people. `option_prefix` stands before the names of the parameters.
std::string description_text(const nlohmann::ordered_json& description, bool json,
                             const std::string& option_prefix = "");

} // namespace iocast
