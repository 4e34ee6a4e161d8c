// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/op.hpp"

#include <cstdint>
#include <optional>

namespace iocast {

/// What the bytes of objects are when a run verifies: a function of seed, dataset, object and offset alone, so that
/// whoever reads a byte knows what it has to be, whoever wrote it.
class Content {
public:
  explicit Content(uint64_t seed) : seed_(seed) {}

  void fill(char* to, uint64_t dataset, uint64_t object, uint64_t offset, uint64_t bytes) const;
  /// The blocks of an operation, one after the other.
  void fill(char* to, const Op& op) const;
  /// The offset in the object of the first byte that isn't what it has to be.
  std::optional<uint64_t> first_wrong(const char* found, const Op& op) const;

private:
  uint64_t seed_;
};

} // namespace iocast
