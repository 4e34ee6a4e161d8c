// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/op.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace iocast {

/// Failed operations of one phase by operation and error: how many, and the first of them. A fixed size, so that it
/// travels in one reduction; kinds of failure beyond it are counted by the recorder only.
struct ErrorTable {
  struct Entry {
    int32_t error;
    OpKind kind;
    uint32_t rank;
    uint64_t count;
    int64_t first_ns; ///< since the start of the phase
    uint64_t dataset;
    uint64_t object;
    uint64_t offset;   ///< of an access, or of the first wrong byte
    uint8_t flags = 0; ///< of the operation
  };
  static constexpr size_t limit = 32;

  void add(const Entry& entry)
  {
    for (size_t i = 0; i < used; ++i) {
      Entry& known = entries[i];
      if (known.error != entry.error || known.kind != entry.kind)
        continue;
      const uint64_t count = known.count + entry.count;
      if (entry.first_ns < known.first_ns || (entry.first_ns == known.first_ns && entry.rank < known.rank))
        known = entry;
      known.count = count;
      return;
    }
    if (used < limit)
      entries[used++] = entry;
  }

  std::array<Entry, limit> entries{};
  uint64_t used = 0;
};

} // namespace iocast
