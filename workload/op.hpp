// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace iocast {

/// Operations of a rank. Names are POSIX's; on an object store a dataset is a bucket or collection, an object an
/// object or document. A dataset is a directory; its name may have several components, and the pattern makes parents
/// first.
enum class OpKind : uint8_t {
  phase,  ///< all ranks meet at a barrier, then phase number `Op::object` of the pattern begins
  mkdir,  ///< make a dataset
  create, ///< make an object with its whole content: open, write, close
  stat,   ///< of an object, or of a dataset itself, see OpFlag; `size` bytes are to be found; 0: whatever
  read,   ///< fetch an object whole: open, read, close
  unlink,
  rmdir,
  append,  ///< add `size` bytes to an object's end: open, write, close
  readdir, ///< list a dataset whole; `size` is the number of entries to be found
  open,    ///< open an object for the accesses below; see OpFlag
  pwrite,  ///< write to an open object: `count` blocks of `size` bytes, the first at `offset`, their starts `stride`
           ///< apart
  pread,   ///< read from an open object likewise
  fsync,   ///< of an open object
  close,
  think ///< do nothing for `size` nanoseconds; it has no latency of its own
};

constexpr std::array<std::string_view, 15> op_names{"phase",  "mkdir", "create", "stat",    "read",
                                                    "unlink", "rmdir", "append", "readdir", "open",
                                                    "pwrite", "pread", "fsync",  "close",   "think"};
constexpr size_t op_count = op_names.size();

/// Whether it reads or writes in an open object.
constexpr bool is_access(OpKind kind)
{
  return kind == OpKind::pwrite || kind == OpKind::pread;
}

constexpr std::string_view name_of(OpKind kind)
{
  return op_names[static_cast<size_t>(kind)];
}

std::optional<OpKind> op_named(std::string_view name);

constexpr size_t max_parts = 3;
constexpr std::array<std::string_view, max_parts> parts_of_writing{"open", "write", "close"};
constexpr std::array<std::string_view, max_parts> parts_of_reading{"open", "read", "close"};

/// The timed parts of a compound operation, in order; empty for an operation that is one call.
constexpr std::span<const std::string_view> parts_of(OpKind kind)
{
  if (kind == OpKind::create || kind == OpKind::append)
    return parts_of_writing;
  if (kind == OpKind::read)
    return parts_of_reading;
  return {};
}

/// Bits of Op::flags.
enum OpFlag : uint8_t {
  for_writing = 1, ///< open: for reading and writing; without it for reading only
  make_it     = 2, ///< open: make the object if it isn't there; whoever comes first makes it
  shared      = 4, ///< open, fsync, close: all ranks of the rank's group (see Pattern::group_of) do this together
  collective =
      8,      ///< pread, pwrite: all ranks of the group take part in one access, which ends for all of them together
  whole = 16, ///< stat: of the dataset, not of an object in it
  until = 32, ///< think: not for `size` nanoseconds but until so long after the start of the phase, when the next
              ///< operation is meant to start
  paced = 64  ///< think: until a step of the ranks' common work begins, see StepTimes
};

struct Op {
  OpKind kind      = OpKind::phase;
  uint8_t flags    = 0; ///< of OpFlag
  uint32_t count   = 1; ///< blocks of an access
  uint64_t dataset = 0; ///< number of the dataset; the pattern gives it its name
  uint64_t object  = 0; ///< number of the object in its dataset, or of the phase
  uint64_t size    = 0; ///< bytes written or read, in each block; nanoseconds of a think
  uint64_t offset  = 0; ///< of an access: bytes from the object's start
  uint64_t stride  = 0; ///< bytes between the starts of two blocks of an access; may be 0 when there is one. Of ranks
                        ///< that take part in one collective access, all have one or none has

  constexpr Op() = default;
  constexpr Op(OpKind op, uint64_t of_dataset, uint64_t of_object, uint64_t bytes = 0, uint64_t at = 0)
      : kind(op), dataset(of_dataset), object(of_object), size(bytes), offset(at)
  {
  }
  /// Bytes of content that are moved.
  constexpr uint64_t bytes() const
  {
    switch (kind) {
      case OpKind::create:
      case OpKind::read:
      case OpKind::append:
      case OpKind::pwrite:
      case OpKind::pread:
        return size * count;
      default:
        return 0;
    }
  }
  /// Done by all ranks of the group together.
  constexpr bool is_joint() const { return (flags & (shared | collective)) != 0; }

  bool operator==(const Op&) const = default;
};
static_assert(sizeof(Op) == 48); // there may be millions

} // namespace iocast
