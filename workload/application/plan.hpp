// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/application/layout.hpp"
#include "workload/application/processes.hpp"

#include <array>
#include <optional>

namespace iocast {

/// Files of one kind: `count` for each group of `per` processes of a set. Groups are full, but for the last.
struct FileClass {
  enum class Prepare : uint8_t { automatic, always, never };

  std::string name;
  YamlNode where;
  uint32_t set         = Processes::everyone;
  uint32_t per         = 0; ///< processes that share one; 0: all of the set
  uint32_t count       = 1;
  bool own_directories = false; ///< each group has one
  bool may_overlap     = false; ///< processes may write what others read or write at the same time
  Prepare prepare      = Prepare::automatic;

  uint32_t groups        = 0;
  uint32_t per_group     = 0; ///< processes of a full group
  uint32_t last_group    = 0; ///< processes of the last one
  uint64_t first_dataset = 0;

  bool made = false;                      ///< before the benchmark begins
  std::array<uint64_t, 2> filled_bytes{}; ///< before the benchmark begins: of a file of a full group, of the last group

  uint64_t datasets() const { return own_directories ? groups : groups > 0; }
  uint64_t files() const { return uint64_t{groups} * count; }
  uint64_t dataset_of(uint32_t group) const { return first_dataset + (own_directories ? group : 0); }
  uint64_t object_of(uint32_t group, uint64_t file) const { return uint64_t{group} * count + file; }
  /// Of something that has one size in full groups and one in the last: the sum over all files.
  uint64_t total(const std::array<uint64_t, 2>& each) const
  {
    return groups == 0 ? 0 : (uint64_t{groups - 1} * each[0] + each[1]) * count;
  }
};

enum class Operation : uint8_t { write, read, read_then_write, write_then_read, mixed, remove, stat };

/// What some processes do with the files of one class in a phase: the paper's triplet.
struct Access {
  enum class Order : uint8_t { forward, backward, every, random };
  enum class Together : uint8_t { nothing, opening, all };

  YamlNode where;
  uint32_t file       = 0;
  uint32_t by         = Processes::everyone;
  uint32_t shift      = 0; ///< process i does what is i + shift's
  Operation operation = Operation::write;
  uint64_t read_share = 0;               ///< of a mixed access: reads in 2^32 requests
  std::optional<Layout> layout{};        ///< none of remove and stat
  std::array<Layout::Shape, 2> shapes{}; ///< in a full group, in the last group
  Order order          = Order::forward;
  uint64_t every       = 1;
  uint64_t passes      = 1;
  uint64_t session     = 0; ///< requests between open and close; 0: all
  uint64_t fsync_every = 0;
  bool fsync_at_end    = false;
  uint64_t think_ns    = 0;     ///< after each request
  bool new_files       = false; ///< what is there is removed before the phase
  bool in_turn         = false; ///< one request to each of the files in turn; else file after file
  Together together    = Together::nothing;
  Permutation shuffle{};

  uint32_t by_size   = 0; ///< processes of `by`
  uint32_t per_group = 0; ///< of those that share a file, in a full group
  uint32_t groups    = 0;
  bool makes         = false; ///< opens may find no file
  int follows        = -1;    ///< only what was done in the timed phase that has this slot can be done

  bool moves_data() const { return layout.has_value(); }
  bool writes() const { return moves_data() && operation != Operation::read; }
  bool reads_first() const
  {
    return operation == Operation::read || operation == Operation::read_then_write || operation == Operation::mixed;
  }
  /// Every byte between begin and end is written.
  bool fills(size_t group) const { return writes() && operation != Operation::mixed && shapes[group].whole; }
  /// One request after the other, with nothing between them.
  bool streams() const
  {
    const bool one_way = operation == Operation::read || operation == Operation::write;
    return one_way && order == Order::forward && passes == 1 && session == 0 && fsync_every == 0 && think_ns == 0 &&
           !in_turn;
  }
  bool same_processes(const Access& other) const { return by == other.by && shift == other.shift; }
  /// Each process asks for the same blocks in the same order.
  bool same_requests(const Access& other) const;
};

struct PlannedPhase {
  std::string name;
  YamlNode where;
  double most_seconds = 0;
  uint32_t at_once    = 0; ///< processes that work at the same time; 0: all
  std::vector<Access> accesses{};
  std::vector<uint32_t> removes{}; ///< files that go before the phase begins, because new ones are wanted
  int slot           = -1;         ///< where a cut rank keeps how far it came ...
  size_t slot_access = 0;          ///< ... in this access
};

/// The definition of an application, read for a given number of processes.
struct Plan {
  Processes processes;
  std::vector<FileClass> files;
  std::vector<PlannedPhase> phases;

  /// Reads the section `application` of a workload file. @throws InputError
  static Plan read(Scope scope, const YamlNode& section, const Placement& placement);
};

} // namespace iocast
