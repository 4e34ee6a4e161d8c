// SPDX-License-Identifier: Apache-2.0
//
// What caches know things by.
#pragma once
#include "models/buffer.hpp"
#include "models/page_cache.hpp"
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

/// Pages from the first on, without those from `end` on, by block: calls do_it(pages).
template <class DoIt> void for_each_block(uint64_t object, uint64_t page, uint64_t end, uint32_t weight, DoIt do_it)
{
  while (page < end) {
    const uint64_t block = page / Pages::most;
    const auto first     = static_cast<uint32_t>(page % Pages::most);
    const uint64_t most  = std::min<uint64_t>(end - block * Pages::most, Pages::most);
    do_it(Pages{object, block, bits(first, static_cast<uint32_t>(most)), weight});
    page = (block + 1) * Pages::most;
  }
}

/// Calls do_it(pages) for all pages of an access, by block and in order. What reads or writes a whole object has only
/// its bytes, so that its last page is lighter; of other accesses whole pages are fetched.
template <class DoIt> void for_each_block(const Op& op, uint64_t page_size, DoIt do_it)
{
  const bool whole_object = op.kind == OpKind::create || op.kind == OpKind::read;
  const uint64_t object   = object_key(op);
  const auto full         = static_cast<uint32_t>(page_size);
  const auto piece        = [&](uint64_t begin, uint64_t size) {
    if (size == 0)
      return;
    const uint64_t last = (begin + size - 1) / page_size;
    const auto rest     = static_cast<uint32_t>(std::min(page_size, begin + size - last * page_size));
    const bool is_short = whole_object && rest < full;
    for_each_block(object, begin / page_size, is_short ? last : last + 1, full, do_it);
    if (is_short)
      for_each_block(object, last, last + 1, rest, do_it);
  };
  if (op.count <= 1 || op.stride == op.size)
    piece(op.offset, op.bytes());
  else
    for (uint32_t block = 0; block < op.count; ++block)
      piece(op.offset + block * op.stride, op.size);
}

} // namespace iocast
