// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/op.hpp"
#include "workload/pattern.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace iocast {

/// Which questions a platform's file says that it answers: its section `serves`, docs/platforms.md.
struct ServesSpec {
  static constexpr double far     = 4;  ///< times the largest scale of a fact, beyond which an answer says so
  static constexpr double refused = 10; ///< and beyond which there is none but on request

  bool measured  = false; ///< the platform was calibrated: its measurements say more than published numbers
  uint32_t nodes = 0;     ///< most client nodes of a published number of the system; 0: there is none
  uint32_t ranks = 0;     ///< likewise
  std::string of;         ///< platform whose file states them: another than the one that extends it
  std::array<bool, op_count> node_local{};   ///< operations whose rates may grow with the nodes without bound
  std::array<double, op_count> most{};       ///< operations a second of all nodes, which no answer exceeds; 0: any
  std::array<double, op_count> most_bytes{}; ///< bytes a second, likewise
  std::array<std::string, op_count> where{}; ///< file and line of these two, for messages

  bool is_template() const { return !measured && nodes == 0; }
  /// Times the largest nodes or ranks of a published number; 0 without any.
  double beyond(const Placement& placement) const;
  /// @throws InputError where a placement is too far beyond all published numbers
  void refuse_beyond(const Placement& placement) const;
  /// Finished sentences on what answers for this placement rest on.
  std::vector<std::string> basis(const Placement& placement, const std::string& platform) const;
  nlohmann::ordered_json to_json() const;
};

} // namespace iocast
