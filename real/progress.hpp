// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/recorder.hpp"
#include "workload/pattern.hpp"

#include <cstdint>
#include <string>

namespace iocast {

/// Tells on stderr how far the run is: one line that is written over on a terminal, else a line every 30 seconds. Rank
/// 0 speaks for all, from its own share of the operations.
class Progress {
public:
  Progress(const Footprint& footprint, uint32_t ranks, bool speaks);

  /// What was measured so far stands in `recorder`, which outlives the phase.
  void begin_phase(const std::string& title, int64_t start_ns, const PhaseRecorder& recorder);
  /// Now and then: this many operations of the whole run have been issued.
  void reached(uint64_t operations, int64_t now_ns)
  {
    operations_ = operations;
    if (now_ns >= next_ns_) [[unlikely]]
      show(now_ns);
  }
  void end_phase();

private:
  void show(int64_t now_ns);

  uint64_t total_;
  uint32_t ranks_;
  bool speaks_;
  bool terminal_;
  bool shown_ = false;
  std::string title_;
  const PhaseRecorder* recorder_ = nullptr;
  int64_t next_ns_               = 0;
  int64_t phase_ns_              = 0;
  uint64_t before_phase_         = 0;
  uint64_t operations_           = 0;
};

} // namespace iocast
