// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/huge.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace iocast {

/// What is known by key, one slot each. Open addressing with linear probing; deletion shifts back, so there are no
/// tombstones. A `Slot` has its `key` and says whether it is `used()`, which a fresh one is not.
template <class Slot> class FlatTable {
public:
  size_t size() const { return used_; }

  /// The slot with this key; a free one if there is none.
  Slot& find(uint64_t key)
  {
    size_t at = home(key);
    while (slots_[at].used() && slots_[at].key != key)
      at = (at + 1) & mask();
    return slots_[at];
  }
  /// Asks for the cache line where the key's slot is likely to be.
  void prefetch(uint64_t key) const { __builtin_prefetch(&slots_[home(key)]); }
  /// Of a key that has none yet. Other slots may move.
  void insert(const Slot& slot)
  {
    if (2 * (used_ + 1) > slots_.size())
      grow();
    find(slot.key) = slot;
    ++used_;
  }
  /// Other slots may move.
  void erase(Slot& slot)
  {
    auto hole = static_cast<size_t>(&slot - slots_.data());
    for (size_t at = (hole + 1) & mask(); slots_[at].used(); at = (at + 1) & mask())
      if (((at - home(slots_[at].key)) & mask()) >= ((at - hole) & mask())) {
        slots_[hole] = slots_[at];
        hole         = at;
      }
    slots_[hole] = {};
    --used_;
  }

private:
  size_t mask() const { return slots_.size() - 1; }
  size_t home(uint64_t key) const { return (key * 0x9e3779b97f4a7c15ULL >> 20) & mask(); }
  void grow()
  {
    HugeVector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const auto& slot : old)
      if (slot.used())
        find(slot.key) = slot;
  }

  HugeVector<Slot> slots_ = HugeVector<Slot>(64); ///< a power of two of them
  size_t used_            = 0;
};

} // namespace iocast
