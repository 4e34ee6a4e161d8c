// SPDX-License-Identifier: Apache-2.0
//
// What caches know things by.
#pragma once
#include "models/buffer.hpp"
#include "workload/op.hpp"

#include <algorithm>

namespace iocast {

/// What a cache of objects knows an operation's object by: that of a dataset itself differs from those of the objects
/// in it.
inline uint64_t entry_key(const Op& op)
{
  const bool of_dataset =
      op.kind == OpKind::mkdir || op.kind == OpKind::rmdir || op.kind == OpKind::readdir || (op.flags & whole) != 0;
  return of_dataset ? mix(~op.dataset) : object_key(op);
}

inline uint64_t page_key(const Op& op, uint64_t page)
{
  return mix(object_key(op) + page);
}

/// Calls do_it(page, bytes of it) for each page of an access. What reads or writes a whole object has only its bytes;
/// of other accesses whole pages are fetched.
template <class DoIt> void for_each_page(const Op& op, uint64_t page_size, DoIt do_it)
{
  const bool whole_object = op.kind == OpKind::create || op.kind == OpKind::read;
  const auto piece        = [&](uint64_t begin, uint64_t size) {
    if (size == 0)
      return;
    for (uint64_t page = begin / page_size; page <= (begin + size - 1) / page_size; ++page)
      do_it(page, whole_object ? static_cast<uint32_t>(std::min(page_size, begin + size - page * page_size))
                                      : static_cast<uint32_t>(page_size));
  };
  if (op.count <= 1 || op.stride == op.size)
    piece(op.offset, op.bytes());
  else
    for (uint32_t block = 0; block < op.count; ++block)
      piece(op.offset + block * op.stride, op.size);
}

} // namespace iocast
