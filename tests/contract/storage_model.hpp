// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/pattern.hpp"
#include "workload/steps.hpp"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

namespace iocast {

/// A pattern breaks its contract; the message says where.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Bytes of an object that were written: disjoint, not adjacent intervals [start, end).
class Extents {
public:
  void add(uint64_t start, uint64_t end);
  void add(const Extents& other);
  bool holds(uint64_t start, uint64_t end) const;
  uint64_t end() const { return intervals_.empty() ? 0 : intervals_.rbegin()->second; }
  uint64_t bytes() const;

private:
  std::map<uint64_t, uint64_t> intervals_;
};

/// What lies on the storage, and the rules by which ranks may use it (workload/op.hpp, workload/pattern.hpp). Ranks are
/// concurrent within a phase: each sees what was there at its start, and what it has done itself since.
class StorageModel {
public:
  explicit StorageModel(const Pattern& pattern) : pattern_(pattern) {}

  /// A phase with the operations of each rank. @throws Violation
  void phase(const std::string& name, const std::vector<std::vector<Op>>& ranks);
  /// Nothing may be left. @throws Violation
  void end() const;

  uint64_t objects() const { return objects_.size(); }
  uint64_t bytes() const;
  std::array<uint64_t, op_count> counts{};
  uint64_t bytes_written = 0;
  uint64_t bytes_read    = 0;
  uint64_t largest       = 0; ///< bytes of one operation
  uint64_t peak_objects  = 0; ///< seen between phases
  uint64_t peak_bytes    = 0;
  uint64_t most_objects  = 0; ///< had all been made before any were removed in a phase
  uint64_t most_bytes    = 0;
  uint64_t thought_ns    = 0;

private:
  using Id = std::pair<uint64_t, uint64_t>; ///< dataset, object
  struct Open {
    uint8_t flags;
  };
  /// What one rank has done in this phase, and what it therefore sees.
  struct View {
    std::map<Id, Extents> written;
    std::set<Id> made, created, removed, used;
    std::set<Id> gone; ///< made and removed in this phase
    uint64_t gone_bytes = 0;
    uint64_t steps      = 0; ///< handed over
    std::set<uint64_t> datasets_made, datasets_removed, datasets_used, datasets_listed, datasets_changed;
  };

  void apply(uint32_t rank, const Op& op, View& view);
  void access(uint32_t rank, const Op& op, View& view);
  void merge(const std::vector<View>& views);
  [[noreturn]] void fail(const std::string& sentence) const;
  std::string dataset_name(uint64_t dataset) const;
  bool sees_dataset(const View& view, uint64_t dataset) const;
  bool sees(const View& view, Id id) const;
  Extents content(const View& view, Id id) const;
  uint64_t entries(const View& view, uint64_t dataset) const;
  std::optional<uint64_t> parent(uint64_t dataset) const;

  const Pattern& pattern_;
  std::map<Id, Extents> objects_;
  std::map<uint64_t, std::string> datasets_;
  std::map<std::string, uint64_t> numbers_;      ///< of datasets that are there or were, by name
  std::map<std::pair<uint32_t, Id>, Open> open_; ///< by rank
  std::string where_;
};

} // namespace iocast
