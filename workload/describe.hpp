// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace iocast {

/// One line of `--list`: what it is called and what it is.
struct Listed {
  std::string name;
  std::string summary;
};

std::vector<Listed> list_patterns();
std::vector<Listed> list_workloads();

/// A pattern or a workload of the catalogue in full; nothing when there is none of that name.
std::optional<nlohmann::ordered_json> describe_workload(const std::string& name);

/// Prints a list or a description for people, or as JSON.
void print_list(const std::string& what, const std::vector<Listed>& entries, bool json);
void print_description(const nlohmann::ordered_json& description, bool json);

} // namespace iocast
