// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/files.hpp"
#include "profile/recorder.hpp"
#include "workload/pattern.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace iocast {

/// What is known of a finished phase beside its recorder.
struct PhaseResult {
  std::string name;
  uint32_t repeat      = 0;
  double start_seconds = 0;         ///< since the start of the run
  double seconds       = 0;         ///< from the barrier to the last rank's last answer
  std::vector<double> rank_seconds; ///< from the start of the phase to the rank's last answer; 0: it had no operation
  double think_asked_seconds  = 0;  ///< requested by the workload, summed over ranks
  double think_actual_seconds = 0;  ///< measured, summed over ranks
  double most_seconds         = 0;  ///< Phase::most_seconds
  uint64_t cut_ranks          = 0;  ///< that had not done all when that time was over
  uint32_t ranks_per_node     = 0;  ///< rank r is on node r / ranks_per_node; 0: who is where isn't known
  bool cyclic                 = false; ///< it is on node r mod nodes instead
  std::optional<Accelerators> accelerators{};
  double first_step_seconds = 0; ///< from the start to the end of the first step, see StepTimes
};

/// How much of a phase is written: everything, or all but its timeline, slowest operations and times of ranks and
/// nodes, which are most of its text.
enum class Detail { full, brief };

/// The phase as `phases[]` of run.json has it; docs/run-directory.md says what each key means.
nlohmann::ordered_json phase_to_json(PhaseResult result, const PhaseRecorder& recorder, Detail detail = Detail::full);

/// A run directory while it is being written: run.json says "running" from the first moment on and "complete" or
/// "interrupted" at the end; latency.hlog grows by one line for each phase, operation and part. All is written by the
/// directory's descriptor: into the directory that was made, whatever its path leads to later.
class RunDirectory {
public:
  /// Makes the directory. @throws InputError when it exists, RunError when it can't be made
  explicit RunDirectory(std::string path, Detail detail = Detail::full);

  /// Sets the part of run.json that is known from the start, and writes it.
  void begin(nlohmann::ordered_json header);
  /// Keeps this many bytes free for what is added later, where the file system can: a disk that is full is noticed
  /// before anything is measured. @throws RunError
  void reserve(uint64_t bytes);
  /// Adds a finished phase, with further keys if there are any: to latency.hlog at once; to run.json at once while
  /// there are few phases, later at most once a second.
  void add_phase(PhaseResult result, const PhaseRecorder& recorder,
                 const nlohmann::ordered_json& more = nlohmann::ordered_json::object());
  /// Adds top-level keys and closes with this status: "complete" or "interrupted".
  void end(const std::string& status, const nlohmann::ordered_json& more = nlohmann::ordered_json::object());

  const nlohmann::ordered_json& json() const& { return json_; }
  nlohmann::ordered_json json() && { return std::move(json_); }
  const std::string& path() const { return path_; }

private:
  void write();
  int take_room();

  std::string path_; ///< empty: nothing is written, json() still works
  Detail detail_;
  nlohmann::ordered_json json_;
  FileDescriptor directory_;
  FileDescriptor log_;
  uint64_t reserved_ = 0;
  FileDescriptor room_;                           ///< a file without a name that holds them
  std::chrono::steady_clock::time_point written_; ///< run.json
};

} // namespace iocast
