// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/contract/storage_model.hpp"

#include <functional>
#include <string>
#include <vector>

namespace iocast {

/// The operations of one rank, all of them.
std::vector<Op> stream_of(const Pattern& pattern, uint32_t rank);

std::string dataset_name(const Pattern& pattern, uint64_t dataset);
std::string object_name(const Pattern& pattern, uint64_t dataset, uint64_t object);
/// "create mdtest_tree.0-0.0/file.mdtest.3 5", with whatever is not zero; "phase file-create".
std::string line(const Pattern& pattern, const Op& op);
std::vector<std::string> lines(const Pattern& pattern, uint32_t rank);
/// "a=1 b=2" as settings.
std::vector<std::string> words(const std::string& text);

/// An operation with what its constructor doesn't take.
Op flagged(Op op, int flags);
Op strided(Op op, uint32_t count, uint64_t stride);

/// Pulls the streams of all ranks as the executors do, and can cut them. Ranks that act `together` (MPI-IO, the
/// simulator) agree where they stop, see Executor::may_begin; others stop alone.
class Streams {
public:
  static constexpr uint64_t unlimited = UINT64_MAX;

  Streams(const Pattern& pattern, uint32_t ranks, bool together);

  /// The number of the phase that all ranks stand before; nothing at the end.
  std::optional<uint64_t> phase() const;
  /// Operations of the phase by rank, each rank's cut after its number in `budget`.
  std::vector<std::vector<Op>> take(const std::vector<uint64_t>& budget);

private:
  enum class State { runs, at_joint, cut, ended };
  struct Rank {
    Cursor cursor, before;
    std::optional<uint64_t> phase;
    State state     = State::runs;
    uint64_t budget = 0;
    Op joint;
    bool was_joint = false; ///< its last operation
    std::vector<Op> done;
    std::vector<Op> open; ///< in the order of opening
  };

  void run_group(uint32_t number, const std::vector<uint32_t>& members);
  void step(Rank& rank);
  static void perform(Rank& rank, const Op& op);
  void cut(Rank& rank);

  const Pattern& pattern_;
  bool together_;
  std::vector<Rank> ranks_;
};

/// The operations by phase and rank.
using Phases = std::vector<std::vector<std::vector<Op>>>;

/// How many operations of a phase with a time limit a rank carries out before it is cut.
using CutAfter = std::function<uint64_t(size_t phase, uint32_t rank)>;

/// Without limits, or with phases cut. @throws Violation
Phases whole_run(const Pattern& pattern, uint32_t ranks, bool together, const CutAfter& cut_after = {});
/// The same by rank, with an OpKind::phase before each phase.
std::vector<std::vector<Op>> by_rank(const Phases& run);

/// A run from an empty place to an empty place keeps the rules; otherwise the test fails.
StorageModel expect_rules_kept(const Pattern& pattern, const Phases& run);

/// A whole run does, and the pattern's footprint says what there was.
StorageModel expect_rules_kept(const Pattern& pattern, uint32_t ranks);

/// The footprint says how many operations and bytes there are in the streams, and the most that exists at a time when
/// what is made is there before anything goes; also for runs on what earlier ones have left.
void expect_footprint_of_streams(const Pattern& pattern, uint32_t ranks, const std::string& about);

} // namespace iocast
