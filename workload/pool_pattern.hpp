// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/pattern.hpp"
#include "workload/phase_list.hpp"
#include "workload/random.hpp"

#include <optional>
#include <string>
#include <vector>

namespace iocast {

/// The files that one rank has at the moment: what chance has made of them can't be computed back.
class FilePool {
public:
  struct [[gnu::packed]] File {
    uint32_t number; ///< of all files that the rank ever made, from 0
    uint64_t size;
  };

  uint64_t count() const { return files_.size(); }
  uint64_t bytes() const { return bytes_; }
  uint32_t made() const { return made_; }
  const File& operator[](uint64_t place) const { return files_[place]; }

  uint32_t add(uint64_t size)
  {
    files_.push_back({made_, size});
    bytes_ += size;
    return made_++;
  }
  void grow(uint64_t place, uint64_t by)
  {
    files_[place].size += by;
    bytes_ += by;
  }
  uint32_t remove(uint64_t place)
  {
    const File gone = files_[place];
    files_[place]   = files_.back();
    files_.pop_back();
    bytes_ -= gone.size;
    return gone.number;
  }

private:
  std::vector<File> files_;
  uint64_t bytes_ = 0;
  uint32_t made_  = 0;
};

/// What a pattern says of itself to PoolPattern.
struct PoolPlan {
  std::string pattern;
  uint64_t files       = 0; ///< of each rank at the start
  uint32_t directories = 1; ///< of each rank; with more than one they lie in a directory of the rank
  uint64_t steps       = 0; ///< of each rank in one benchmark phase
  uint64_t start       = 0; ///< steps that the files have behind them when the run begins
  uint32_t repeats     = 1;
  uint64_t read_block  = 0; ///< bytes an access; 0: a file in one operation
  uint64_t write_block = 0;
  uint64_t seed        = 0;
  uint64_t largest     = 0; ///< bytes that one operation may move
  std::string phases;       ///< of precreate, benchmark, cleanup
};

/// A pattern in which every rank does things at random to files of its own: makes them, runs `steps` steps, removes
/// what is left. All chance comes from random_words() keyed by rank and step, so that a later run finds out what an
/// earlier one left behind by going through its steps again. A rank has 12 bytes a file and 64 more while its stream is
/// under way.
class PoolPattern : public Pattern {
public:
  PoolPattern(PoolPlan plan, const Placement& placement);

  const std::vector<Phase>& phases() const final { return phases_; }
  bool next(Cursor& cursor, Op& op) const final;
  /// Exact as long as all ranks together make at most 4 million steps; beyond, only as many ranks are followed, and
  /// stand for the others.
  Footprint footprint() const final;
  char* name_dataset(uint64_t dataset, char* out) const final;
  char* name_object(uint64_t object, char* out) const final;
  nlohmann::ordered_json data_set() const final;
  nlohmann::ordered_json position_after(size_t phase) const final;

protected:
  /// One rank's stream while it is under way.
  struct Rank {
    FilePool pool;
    std::vector<uint32_t> entries; ///< of each directory
  };
  /// Where in a step the cursor is (Cursor::step): the pattern's own numbers from 1 on, 1 at the beginning.
  static constexpr uint16_t first_part = 1;

  /// The next operation of step `number`, counted over all benchmark phases; false when the step is over. It may begin
  /// one of the operations below and must then set the next part before.
  virtual bool next_in_step(Rank& rank, Cursor& cursor, Op& op, uint64_t number) const = 0;
  virtual uint64_t size_of_new(uint32_t rank, uint32_t number) const                   = 0;
  virtual nlohmann::ordered_json own_data_set() const                                  = 0;

  // Each begins something on a file of the pool and gives its first operation; next() gives the others before the next
  // part.
  void create(Rank& rank, Cursor& cursor, Op& op) const;
  void read(Rank& rank, Cursor& cursor, Op& op, uint64_t place) const;
  void append(Rank& rank, Cursor& cursor, Op& op, uint64_t place, uint64_t bytes) const;
  void unlink(Rank& rank, Cursor& cursor, Op& op, uint64_t place) const;

  uint64_t dataset_of(uint32_t rank, uint32_t number) const;
  uint64_t directory(uint32_t rank, uint32_t which) const;
  uint32_t& entries_of(Rank& rank, uint64_t dataset) const;
  /// Random words for `what`, below 16, of the step or file `number` of the rank.
  std::array<uint32_t, 4> words(uint32_t rank, uint64_t number, uint32_t what) const
  {
    return random_words(plan_.seed, Stream::pool, rank, number << 4 | what);
  }
  /// A number below `n`, each as likely.
  static uint64_t below(uint32_t word, uint64_t n) { return word * n >> 32; }

  const PoolPlan& plan() const { return plan_; }
  static constexpr uint32_t place_of_file = 15; ///< `what` of the words that choose a file's directory

private:
  enum class Kind : uint8_t { precreate, benchmark, cleanup };
  /// Bits of Cursor::step above the part: the blocks of a file are being read or written.
  static constexpr uint16_t reading = 1 << 8;
  static constexpr uint16_t writing = 1 << 9;
  static constexpr uint16_t parts   = reading - 1;

  bool next_of(Rank& rank, Cursor& cursor, Op& op) const;
  bool next_block(Cursor& cursor, Op& op) const;
  bool next_precreate(Rank& rank, Cursor& cursor, Op& op) const;
  bool next_benchmark(Rank& rank, Cursor& cursor, Op& op, uint64_t first, uint64_t steps) const;
  bool next_cleanup(Rank& rank, Cursor& cursor, Op& op) const;
  void transfer(Cursor& cursor, Op& op, OpKind whole, uint64_t block, uint32_t number, uint64_t from,
                uint64_t to) const;
  void begin(Rank& rank, uint32_t number) const;
  Footprint count() const;
  uint32_t datasets() const { return plan_.directories > 1 ? plan_.directories + 1 : 1; }

  PoolPlan plan_;
  Placement placement_;
  std::vector<Phase> phases_;
  std::vector<Kind> kinds_;
  std::vector<uint64_t> start_of_; ///< steps that lie behind the files at the beginning of each phase
  mutable std::vector<std::unique_ptr<Rank>> ranks_;
  mutable std::optional<Footprint> footprint_;
};

} // namespace iocast
