// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/pattern.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace iocast {

/// What lies at the backend's place, written down beside the data: a later run knows whether it can use the data and
/// from where it goes on.
struct Manifest {
  std::string pattern;
  nlohmann::ordered_json data_set; ///< Pattern::data_set()
  nlohmann::ordered_json position; ///< Pattern::position_after() of the last finished phase
  uint64_t seed = 0;
  bool ready =
      false; ///< false while a run is there: after a kill nobody knows what lies there, and another run has to wait
  std::string phase;       ///< that runs or ran last
  bool verifiable = false; ///< all content is as Content(seed) has it
  bool made_place =
      false; ///< iocast made what it lies in (a schema, a bucket), which then goes with the last of the data

  /// @throws InputError when the text isn't a manifest of this version
  static Manifest parse(const std::string& text, const std::string& place);
  std::string text() const;
};

/// What a workload does to a data set, from its operations.
bool makes_data_set(const Footprint& footprint);
bool removes_data_set(const Footprint& footprint);
/// Removes, and does nothing else.
bool only_removes(const Footprint& footprint);

/// Refuses a workload that can't run on what lies at the place, or (`sweeps`) can't remove it.
/// @throws InputError
void check_manifest(const std::optional<Manifest>& found, bool place_is_empty, const std::string& place,
                    const PatternEntry& entry, const Pattern& pattern, bool sweeps);

/// The settings that give a pattern the seeds with which its data set was made, where these decide what lies there
/// (sizes, names). A seed that is `set` by the user stays, and check_manifest() compares it.
std::vector<std::string> seeds_to_go_on(const Manifest& found, const PatternEntry& entry,
                                        const std::vector<std::string>& set);

/// The settings that let a run go on where the data set stands. A parameter that is `set` by the user must agree.
/// @throws InputError when it doesn't
std::vector<std::string> settings_to_go_on(const Manifest& found, const std::string& place,
                                           const Parameters& parameters, const std::vector<std::string>& set);

} // namespace iocast
