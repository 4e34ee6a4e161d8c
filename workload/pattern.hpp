// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/arrivals.hpp"
#include "workload/op.hpp"
#include "workload/parameters.hpp"

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace iocast {

/// Where the ranks live: block mapping, rank r on node r / ranks_per_node.
struct Placement {
  uint32_t ranks          = 1;
  uint32_t ranks_per_node = 1;
  bool cyclic             = false; ///< rank r lies on node r mod nodes, as with Slurm's --distribution=cyclic

  uint32_t nodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
  uint32_t node_of(uint32_t rank) const { return cyclic ? rank % nodes() : rank / ranks_per_node; }
  /// Ranks between a rank and the one in its place this many nodes further.
  uint64_t ranks_between(uint64_t nodes_further) const { return nodes_further * (cyclic ? 1 : ranks_per_node); }
};

struct Phase {
  std::string name;
  uint32_t repeat     = 0; ///< 1, 2, ... for repeated phases; 0 for a phase that happens once
  double most_seconds = 0; ///< the executor ends the phase after so long, see Pattern::cut; 0: when all is done
};

/// All that one rank's stream remembers between two operations. A million of them fit in memory; what the numbers mean
/// is the pattern's business. A fresh cursor with only the rank set stands before the first operation.
struct Cursor {
  uint32_t rank  = 0;
  uint16_t phase = 0;
  uint16_t step  = 0;
  uint64_t i     = 0;
  uint32_t j     = 0;
  uint32_t a     = 0;
  uint32_t b     = 0;
  uint32_t c     = 0;
};
static_assert(sizeof(Cursor) == 32);

/// Accesses that are alike, see Pattern::stretch.
struct Stretch {
  uint32_t count = 0;
  uint64_t step  = 0; ///< bytes
};

/// What a whole run of a pattern will do, for dry runs and for refusing a run that can't fit.
struct Footprint {
  std::vector<std::pair<OpKind, uint64_t>> operations; ///< over all ranks
  uint64_t bytes_written = 0;
  uint64_t bytes_read    = 0;
  uint64_t peak_objects  = 0;
  uint64_t peak_bytes    = 0;
  uint64_t largest_size  = 0;     ///< largest number of bytes of an operation, all its blocks together
  bool collective        = false; ///< whether ranks make accesses together
  bool steps             = false; ///< whether ranks wait for steps of common work, see StepTimes
};

/// What the accelerators of a phase compute while ranks read and write for them.
struct Accelerators {
  uint64_t count         = 0;
  double compute_seconds = 0; ///< of all of them together
  uint64_t steps         = 0;
  uint64_t samples       = 0;     ///< that all of them take
  bool checkpoints       = false; ///< what isn't computed is a stall by checkpoints
};

/// A sum or product of whole numbers that stays at its largest value instead of beginning again at 0.
class Amount {
public:
  constexpr Amount(uint64_t value = 0) : value_(value) {}
  constexpr operator uint64_t() const { return value_; }
  template <std::integral T> friend constexpr Amount operator*(Amount a, T b)
  {
    return a * Amount(static_cast<uint64_t>(b));
  }
  template <std::integral T> friend constexpr Amount operator*(T a, Amount b)
  {
    return Amount(static_cast<uint64_t>(a)) * b;
  }
  template <std::integral T> friend constexpr Amount operator+(Amount a, T b)
  {
    return a + Amount(static_cast<uint64_t>(b));
  }
  template <std::integral T> friend constexpr Amount operator+(T a, Amount b)
  {
    return Amount(static_cast<uint64_t>(a)) + b;
  }
  friend constexpr Amount operator*(Amount a, Amount b)
  {
    uint64_t result = 0;
    return __builtin_mul_overflow(a.value_, b.value_, &result) ? UINT64_MAX : result;
  }
  friend constexpr Amount operator+(Amount a, Amount b)
  {
    uint64_t result = 0;
    return __builtin_add_overflow(a.value_, b.value_, &result) ? UINT64_MAX : result;
  }

private:
  uint64_t value_;
};

/// Refuses a workload that moves or keeps 2^63 bytes or more, or as many objects: numbers of files and bytes end there.
/// @throws InputError
void check_size(const Footprint& footprint);

/// A workload as a pure generator: the operations of every rank, pulled one by one. It knows no MPI, no simulator, no
/// clock, is immutable and so shared by all ranks; executors hold one Cursor a rank. A pattern whose state doesn't fit
/// in a cursor keeps the rest itself, rank by rank, and starts it anew when it sees a fresh cursor.
class Pattern {
public:
  virtual ~Pattern() = default;

  virtual const std::vector<Phase>& phases() const = 0;
  /// The next operation of the cursor's rank; false at the end. Every phase begins with an OpKind::phase.
  virtual bool next(Cursor& cursor, Op& op) const = 0;
  /// After next() has given an access: how many of those that follow differ from it in their offsets alone, each `step`
  /// bytes behind the one before. The cursor goes past them, but past no more than `most`. It saves executors from
  /// asking for each; a pattern may always say none.
  virtual Stretch stretch(Cursor& /*cursor*/, uint32_t /*most*/) const { return {}; }
  /// The time of a phase with `most_seconds` is over, at least one of its operations was carried out: moves the cursor
  /// to the phase's end, so that next() gives the following OpKind::phase (or the end). The pattern remembers in the
  /// cursor how far it came, when later phases need to know it. What is open is closed by the executor. All operations
  /// given so far were carried out, except perhaps a last one that is shared or collective and came right after one
  /// that isn't: then the cursor is as it was before it.
  virtual void cut(Cursor& /*cursor*/) const {}
  /// How far the rank came in the phase with `most_seconds` that it has just left, in a measure of the pattern's own.
  /// After such a phase every rank learns the furthest that any of them came, before it asks for the first operation
  /// of the next phase: so a rank knows what it finds when it goes on with what others made.
  virtual uint64_t reached(const Cursor& /*cursor*/) const { return 0; }
  virtual void agree(Cursor& /*cursor*/, uint64_t /*furthest*/) const {}
  /// When this rank asks for its operations: what the workload's parameters say of it.
  virtual const Arrivals& arrivals_of(uint32_t /*rank*/) const { return arrivals_; }
  void set_arrivals(const Arrivals& arrivals) { arrivals_ = arrivals; }
  /// Ranks of one group do what is `shared` or `collective` together, each the same sequence of such operations. Group
  /// numbers are 0, 1, ...; by default all ranks are in one group.
  virtual uint32_t group_of(uint32_t /*rank*/) const { return 0; }
  virtual Footprint footprint() const = 0;
  /// Whether any object may see this kind of operation twice while it exists: what was seen once is then worth keeping.
  virtual bool repeats(OpKind /*kind*/) const { return true; }
  /// Those that phase `phase` works for; none where it is no work for accelerators.
  virtual std::optional<Accelerators> accelerators(size_t /*phase*/) const { return {}; }
  /// Finished sentences on what is legal but probably not meant.
  virtual std::vector<std::string> warnings() const { return {}; }

  /// Writes the dataset's name at `out` and returns the end; no terminating zero, at most 200 bytes, components apart
  /// by '/'.
  virtual char* name_dataset(uint64_t dataset, char* out) const = 0;
  /// Writes the object's name within its dataset likewise, one component: "file-<object>", unless the benchmark that
  /// the pattern is of names its files otherwise.
  virtual char* name_object(uint64_t object, char* out) const;
  /// For patterns whose objects are named differently in different datasets; executors ask this one.
  virtual char* name_object_in(uint64_t /*dataset*/, uint64_t object, char* out) const
  {
    return name_object(object, out);
  }

  /// What a data set must agree on to be used again by a later run: stored in the manifest and compared.
  virtual nlohmann::ordered_json data_set() const = 0;
  /// Where the data set stands after `phase`: the parameter overrides that make a later run go on from there.
  virtual nlohmann::ordered_json position_after(size_t phase) const = 0;
  /// What a parameter `phases` is set to by a run that only makes the data set, or only removes it; for messages.
  virtual std::string making_phases() const { return "precreate"; }
  virtual std::string removing_phases() const { return "cleanup"; }
  /// Whether after `phase` the data set is one that later runs can use, even if an earlier phase was cut.
  virtual bool mends(size_t /*phase*/) const { return false; }

private:
  Arrivals arrivals_;
};

/// One entry of the registry; a pattern registers itself from its own file in workload/patterns/.
struct PatternEntry {
  std::string name;
  std::string summary;
  std::string source;                ///< paper or page
  std::vector<Parameter> parameters; ///< registration adds those of arrivals.hpp
  /// Settings that together reach every kind of operation and end in a moment on 1 to 16 ranks, each "key=value ...":
  /// what the tests of all patterns run.
  std::vector<std::string> small;
  std::function<std::unique_ptr<Pattern>(const Parameters&, const Placement&)> make;
  /// A pattern that needs more than numbers and words reads a key of the workload file itself, of this name, through
  /// Parameters::section(); such files may declare parameters of their own. `example` is the text of the workload file
  /// that stands for the pattern when it is named.
  std::string section = {};
  std::string example = {};
};

/// A parameter that says how many ranks or nodes (`what`) lie between who makes something and who uses it: at most the
/// `most` that there are. @throws InputError
uint64_t within(const char* pattern, const char* parameter, const Parameters& given, uint64_t most, const char* what);

bool register_pattern(PatternEntry entry);
const std::vector<PatternEntry>& patterns();
/// @throws InputError with the nearest match
const PatternEntry& pattern_named(const std::string& name);

} // namespace iocast
