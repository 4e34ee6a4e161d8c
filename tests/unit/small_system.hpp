// SPDX-License-Identifier: Apache-2.0
//
// Small closed systems for tests that compute their course by hand.
#pragma once
#include "input/error.hpp"
#include "models/system.hpp"
#include "workload/workload.hpp"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace iocast::small {

struct Outcome {
  double seconds  = 0;
  uint64_t events = 0;
  std::array<Histogram, op_count> latency;
  std::array<Histogram, max_parts> parts_of_reads;
  StationSums stations;
};

/// Runs read-only md-workbench (stat, read, stat, read, ...) at a placement; `body` follows schema_version.
inline Outcome run(const std::string& body, const Placement& placement, uint64_t iterations,
                   const std::string& setting = "waiting_factor=0")
{
  const auto file = std::filesystem::temp_directory_path() / ("iocast-unit-" + std::to_string(getpid()) + ".yaml");
  std::ofstream(file) << "schema_version: 1\n" << body;
  const auto platform = open_platform(file.string());
  std::filesystem::remove(file);
  const auto count    = std::to_string(iterations);
  const auto workload = open_workload("md-workbench", {"datasets=1", "objects=" + count, "iterations=" + count,
                                                       "read_only=true", "phases=benchmark", setting});
  const auto pattern  = workload.make(placement);
  Outcome outcome;
  System system(platform, *pattern, placement, {}, [&](const FinishedPhase& phase) {
    outcome.seconds        = phase.end - phase.start;
    outcome.stations       = phase.stations;
    outcome.parts_of_reads = phase.recorder.of_kind(OpKind::read).parts;
    for (const auto kind : {OpKind::stat, OpKind::read})
      outcome.latency[static_cast<size_t>(kind)] = phase.recorder.of_kind(kind).whole;
  });
  system.start();
  system.run();
  EXPECT_TRUE(system.finished());
  outcome.events = system.events();
  return outcome;
}

/// All ranks on one node.
inline Outcome run(const std::string& body, uint32_t ranks, uint64_t iterations,
                   const std::string& setting = "waiting_factor=0")
{
  return run(body, Placement{ranks, ranks}, iterations, setting);
}

using Sums = std::pair<double, double>;
/// Milliseconds of all stats and of all reads together.
inline Sums all_ms(const Outcome& outcome)
{
  const auto of = [&](OpKind kind) {
    return static_cast<double>(outcome.latency[static_cast<size_t>(kind)].sum_ns()) * 1e-6;
  };
  return {of(OpKind::stat), of(OpKind::read)};
}

/// `body` is refused with a sentence that says `why`.
inline void expect_refused(const std::string& body, const std::string& why)
{
  try {
    run(body, 1, 1);
    ADD_FAILURE() << "Not refused: " << body;
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

inline constexpr const char* stat_then_read = "operations:\n"
                                              "  stat: [{station: s, demand: 1ms}]\n"
                                              "  read: {open: [{station: s, demand: 1ms}], read: [], close: []}\n";

} // namespace iocast::small
