// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/contract/streams.hpp"

#include <map>
#include <vector>

namespace iocast {

/// How often each byte is written by accesses at offsets, byte by byte: slow and obvious.
class AccessTally {
public:
  AccessTally(const Pattern& pattern, uint32_t ranks)
  {
    for (const auto& phase : whole_run(pattern, ranks, true)) {
      std::map<Name, std::vector<std::array<uint32_t, 2>>>
          users; // the last writer and reader of each byte in this phase
      for (uint32_t rank = 0; rank < ranks; ++rank)
        for (const auto& op : phase[rank])
          if (op.kind == OpKind::pwrite || op.kind == OpKind::pread)
            for (uint64_t block = 0; block < op.count; ++block)
              for (uint64_t at = op.offset + block * op.stride; at < op.offset + block * op.stride + op.size; ++at)
                use(users[{op.dataset, op.object}], at, rank, op);
    }
  }

  using Name = std::pair<uint64_t, uint64_t>; ///< dataset, object
  std::map<Name, std::vector<uint32_t>> written;
  uint64_t conflicts = 0; ///< bytes that one rank wrote while another used them in the same phase

private:
  void use(std::vector<std::array<uint32_t, 2>>& users, uint64_t at, uint32_t rank, const Op& op)
  {
    constexpr uint32_t unused = UINT32_MAX;
    if (users.size() <= at)
      users.resize(at + 1, {unused, unused});
    auto& [writer, reader] = users[at];
    conflicts += writer != unused && writer != rank;
    if (op.kind == OpKind::pread) {
      reader = rank;
      return;
    }
    conflicts += reader != unused && reader != rank;
    writer      = rank;
    auto& tally = written[{op.dataset, op.object}];
    tally.resize(std::max<size_t>(tally.size(), at + 1));
    ++tally[at];
  }
};

} // namespace iocast
