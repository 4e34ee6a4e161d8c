// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace iocast {

/// The phases of a run.json as tables for people.
std::string summary_text(const nlohmann::ordered_json& run);

/// Three digits with the unit that needs no exponent: "3.04us", "412ms".
std::string duration_text(double seconds);

/// Three digits in decimal units: "446 GB/s".
std::string bandwidth_text(double bytes_per_second);

/// "85.5 ops/s", "85523 ops/s": four digits, and all of those before the point.
std::string rate_text(double per_second);

/// "benchmark 2", "cleanup"
std::string phase_title(const std::string& name, uint64_t repeat);

} // namespace iocast
