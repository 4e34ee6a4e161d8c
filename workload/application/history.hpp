// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/application/plan.hpp"

namespace iocast {

/// Follows a plan phase by phase and knows which files exist, how large they are and which of their bytes have surely
/// been written. From this it decides what is made before the benchmark begins, which accesses make their files, and
/// what a timed phase has to remember; and refuses what can't work.
class History {
public:
  /// Decides and writes the decisions into the plan. `done` phases were carried out before, by earlier runs on the same
  /// files.
  /// @throws InputError
  History(Plan& plan, uint64_t done);

  /// Whether files of the class exist: before the benchmark, and after it.
  bool exists_before(size_t file) const { return before_[file].exists; }
  bool exists_after(size_t file) const { return states_[file].exists; }
  /// Objects and bytes, at most: before the benchmark, and up to its end.
  std::pair<uint64_t, uint64_t> peak_before() const { return peak_before_; }
  std::pair<uint64_t, uint64_t> peak() const { return {peak_objects_, peak_bytes_}; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  static constexpr int slots = 2; ///< timed phases of which a rank remembers how far it came

private:
  /// Ranges of bytes, sorted, apart from each other.
  class Ranges {
  public:
    void add(uint64_t begin, uint64_t end);
    bool cover(uint64_t begin, uint64_t end) const;
    void clear() { ranges_.clear(); }

  private:
    std::vector<std::pair<uint64_t, uint64_t>> ranges_;
  };
  struct State {
    bool exists  = false;
    bool removed = false; ///< at some time
    bool touched = false; ///< written to, perhaps
    std::array<Ranges, 2> written;
    std::array<uint64_t, 2> bytes{};
  };
  /// What is done about a need: noted on the first round, an error of ours on the second.
  enum class Round : uint8_t { wanting, final };

  void follow(Round round);
  void follow(PlannedPhase& phase, Round round);
  void check_existence(const PlannedPhase& phase, size_t number);
  void check_written(PlannedPhase& phase, size_t number, Round round);
  bool did_it_itself(const PlannedPhase& phase, size_t number) const;
  bool continues_timed_phase(const PlannedPhase& phase, Access& access, Round round);
  void prepare(const PlannedPhase& phase, const Access& access, bool fill);
  void check_overlaps(const PlannedPhase& phase) const;
  void check_overlap(const PlannedPhase& phase, const Access& a, const Access& b) const;
  void remember(const PlannedPhase& phase);
  void remove(size_t file);
  std::vector<State> prepared() const;
  void note_peak();

  Plan& plan_;
  std::vector<State> states_;
  std::vector<State> before_;
  int used_slots_        = 0;
  uint64_t peak_objects_ = 0;
  uint64_t peak_bytes_   = 0;
  std::pair<uint64_t, uint64_t> peak_before_;
  std::vector<std::string> warnings_;
};

} // namespace iocast
