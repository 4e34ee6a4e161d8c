// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/backend.hpp"
#include "real/buffer.hpp"
#include "real/content.hpp"

namespace iocast {

/// What a rank writes from and reads into. Unless the run verifies, content doesn't matter, and transfers may all use
/// the same bytes.
class TransferMemory {
public:
  explicit TransferMemory(const Client& client) : client_(client) {}

  void reserve(uint64_t bytes)
  {
    if (sent_.reserve(bytes))
      sent_.fill_random(client_.seed, client_.rank);
    received_.reserve(bytes);
  }

  /// For an operation that needs this many bytes at a time.
  void prepare(const Op& op, uint64_t bytes)
  {
    if (!client_.content) {
      reserve(bytes);
      return;
    }
    reserve(op.bytes());
    if (op.kind != OpKind::pread && op.kind != OpKind::read)
      client_.content->fill(sent_.data(), op);
  }

  /// For what begins `done` bytes into the operation.
  char* sent(uint64_t done = 0) const { return sent_.data() + (client_.content ? done : 0); }
  char* received(uint64_t done = 0) const { return received_.data() + (client_.content ? done : 0); }

private:
  Client client_;
  Buffer sent_;
  Buffer received_;
};

} // namespace iocast
