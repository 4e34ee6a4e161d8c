// SPDX-License-Identifier: Apache-2.0
//
// Systems whose ranks do what a test writes down, and when each operation began and how long it took.
#pragma once
#include "models/system.hpp"
#include "profile/op_trace.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace iocast::scripted {

using Script = std::vector<Op>; ///< of a rank

class Pattern final : public iocast::Pattern {
public:
  explicit Pattern(std::vector<Script> scripts) : scripts_(std::move(scripts)) {}

  const std::vector<Phase>& phases() const override { return phases_; }
  bool next(Cursor& cursor, Op& op) const override
  {
    const auto& script = scripts_[cursor.rank];
    if (cursor.i > script.size())
      return false;
    op = cursor.i == 0 ? Op{OpKind::phase, 0, 0} : script[cursor.i - 1];
    ++cursor.i;
    return true;
  }
  Footprint footprint() const override
  {
    Footprint footprint;
    for (const auto& script : scripts_)
      for (const auto& op : script)
        footprint.operations.emplace_back(op.kind, 1);
    return footprint;
  }
  char* name_dataset(uint64_t dataset, char* out) const override { return std::to_chars(out, out + 20, dataset).ptr; }
  char* name_object(uint64_t object, char* out) const override { return std::to_chars(out, out + 20, object).ptr; }
  nlohmann::ordered_json data_set() const override { return nlohmann::ordered_json::object(); }
  nlohmann::ordered_json position_after(size_t) const override { return nlohmann::ordered_json::object(); }

private:
  std::vector<Script> scripts_;
  std::vector<Phase> phases_{{"all"}};
};

struct Outcome {
  double seconds = 0;
  std::vector<CacheSums> caches;
  std::vector<BufferSums> buffers;
  std::vector<std::vector<double>> took; ///< milliseconds of each rank's operations, think times left out
};

/// `body` follows schema_version.
inline Outcome run(const std::string& body, const std::vector<Script>& scripts, uint32_t ranks_per_node = 1)
{
  const auto file = std::filesystem::temp_directory_path() / ("iocast-scripted-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file) << "schema_version: 1\n" << body;
  const auto platform = open_platform(file.string());
  std::filesystem::remove(file);
  const Pattern pattern(scripts);
  const Placement placement{static_cast<uint32_t>(scripts.size()), ranks_per_node};
  Outcome outcome;
  OpTrace trace(placement.ranks);
  System::Options options;
  options.trace = &trace;
  System system(platform, pattern, placement, options, [&](const FinishedPhase& phase) {
    outcome.seconds = phase.end - phase.start;
    outcome.caches  = phase.caches;
    outcome.buffers = phase.buffers;
  });
  system.start();
  system.run();
  EXPECT_TRUE(system.finished());
  for (uint32_t rank = 0; rank < placement.ranks; ++rank) {
    outcome.took.emplace_back();
    trace.visit(rank, [&](const TracedOp& traced) {
      if (traced.op.kind != OpKind::phase && traced.op.kind != OpKind::think)
        outcome.took.back().push_back(static_cast<double>(traced.ns) * 1e-6);
    });
  }
  return outcome;
}

inline Op think(double milliseconds)
{
  return {OpKind::think, 0, 0, static_cast<uint64_t>(milliseconds * 1e6)};
}

} // namespace iocast::scripted
