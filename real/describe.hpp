// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/options.hpp"

#include <string>

namespace iocast {

/// The answer to --help, --version, --list and --describe. @throws InputError
std::string information(const Options& options);

/// The answer to --dry-run.
std::string dry_run_text(const nlohmann::ordered_json& dry_run);

/// Footprint for people and programs.
nlohmann::ordered_json to_json(const Footprint& footprint);

} // namespace iocast
