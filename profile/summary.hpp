// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace iocast {

/// The phases of a run as aligned tables for people: a line for each operation and part with count, mean, quantiles, maximum.
std::string summary_text(const nlohmann::ordered_json& run);

} // namespace iocast
