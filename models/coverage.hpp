// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/finished_phase.hpp"
#include "models/platform.hpp"
#include "workload/pattern.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace iocast {

/// What an operation's route reaches beyond the client that asks.
struct Reach {
  bool timed  = false; ///< some step takes time
  bool server = false; ///< something that client nodes share: a station, slots or a buffer of the system, the other end
                       ///< of a transfer
  bool buffered = false;               ///< bytes go into a buffer of the node's
  bool by_bytes = false;               ///< some step takes longer for more bytes
  std::vector<uint32_t> data_stations; ///< ascending; where its bytes go: ends of transfers, and visits with a
                                       ///< bandwidth at stations of the system
};
Reach reach_of(const Platform& platform, OpKind kind);
/// Whether an operation takes time and visits nothing that nodes share; nobody waits for the close of one.
bool is_alone(const Reach& reach, OpKind kind);

/// What of a run's results the platform doesn't model, or goes beyond what it declares: docs/run-directory.md,
/// `model_limits`.
class Coverage {
public:
  /// @throws InputError when no operation of the workload takes any time on the platform, and when one that the
  /// platform doesn't declare as node-local visits nothing that several nodes share
  Coverage(const Platform& platform, const Pattern& pattern, const Placement& placement);

  /// @throws InputError for a rate beyond a bound that the platform declares
  void add(const FinishedPhase& phase, const std::vector<BufferSums>& buffers_before);
  /// A bound of the implementation that was met; `count` times.
  void add_bound(const std::string& kind, const std::string& of, uint64_t count, const std::string& sentence);

  /// One object for each finding, with the position of its sentence in sentences(); empty when there is none.
  nlohmann::ordered_json findings() const;
  /// Finished sentences: one for all operations that visit no server, one for each other kind of finding and operation.
  std::vector<std::string> sentences() const;

private:
  void refuse_alone() const;
  bool visits_no_server(OpKind kind) const;
  void refuse_unbounded(const FinishedPhase& phase, OpKind kind, double rate, double bytes) const;
  void note(const std::string& kind, const FinishedPhase& phase, OpKind operation, const nlohmann::ordered_json& more,
            const std::string& sentence);

  const Platform& platform_;
  const Pattern& pattern_;
  Placement placement_;
  std::array<Reach, op_count> reach_;
  nlohmann::ordered_json findings_ = nlohmann::ordered_json::array();
  std::vector<std::string> about_; ///< of each finding: kind, and operation or part
  struct Sentence {
    std::string about; ///< kind and operation
    std::string text;
    size_t phases = 0;
  };
  std::vector<Sentence> sentences_;
};

} // namespace iocast
