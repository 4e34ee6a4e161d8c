// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/cluster.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace iocast {

/// Facts about the machine for run.json; complete on rank 0.
nlohmann::ordered_json environment_of(const Cluster& cluster);

/// What the wall clock showed at a moment of now_ns() that was lately: "2026-01-31T12:00:00.250Z".
std::string utc_of(int64_t ns);

/// The largest amount of memory that this process ever had in use.
uint64_t peak_rss_bytes();

} // namespace iocast
