// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace iocast {

/// What one rank may be asked to do. Names are POSIX's; on an object store a dataset is a bucket or collection, an object an
/// object or document.
enum class OpKind : uint8_t {
  phase,  ///< all ranks meet at a barrier, then phase number `Op::object` of the pattern begins
  mkdir,  ///< make a dataset
  create, ///< make an object with its whole content: open, write, close
  stat,
  read, ///< fetch an object whole: open, read, close
  unlink,
  rmdir
};

constexpr std::array<std::string_view, 7> op_names{"phase", "mkdir", "create", "stat", "read", "unlink", "rmdir"};
constexpr size_t op_count = op_names.size();

constexpr std::string_view name_of(OpKind kind)
{
  return op_names[static_cast<size_t>(kind)];
}

std::optional<OpKind> op_named(std::string_view name);

/// The timed parts of a compound operation, in order; empty for an operation that is one call.
std::span<const std::string_view> parts_of(OpKind kind);
constexpr size_t max_parts = 3;

struct Op {
  OpKind kind      = OpKind::phase;
  uint64_t dataset = 0; ///< number of the dataset; the pattern gives it its name
  uint64_t object  = 0; ///< number of the object in its dataset, or of the phase
  uint64_t size    = 0; ///< bytes written or read

  bool operator==(const Op&) const = default;
};

} // namespace iocast
