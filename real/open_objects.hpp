// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/backend.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace iocast {

/// Which objects a rank has open, and the slots that they are in.
class OpenObjects {
public:
  std::optional<Slot> find(uint64_t dataset, uint64_t object)
  {
    if (is(last_, dataset, object)) [[likely]]
      return last_;
    for (Slot slot = 0; slot < most_open; ++slot)
      if (is(slot, dataset, object))
        return last_ = slot;
    return std::nullopt;
  }
  /// A slot that is empty.
  std::optional<Slot> free_slot() const
  {
    for (Slot slot = 0; slot < most_open; ++slot)
      if (!entries_[slot].used)
        return slot;
    return std::nullopt;
  }
  void opened(Slot slot, const Op& open)
  {
    entries_[slot] = {open.dataset, open.object, ++count_, open.flags, true};
    last_          = slot;
  }
  void closed(Slot slot) { entries_[slot].used = false; }

  /// An OpKind::close for everything that is open, in the order of opening: the same on all ranks for what they share.
  std::vector<Op> closes() const
  {
    std::vector<Entry> open;
    std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(open),
                 [](const Entry& entry) { return entry.used; });
    std::sort(open.begin(), open.end(), [](const Entry& a, const Entry& b) { return a.number < b.number; });
    std::vector<Op> result;
    for (const auto& entry : open) {
      result.emplace_back(OpKind::close, entry.dataset, entry.object);
      result.back().flags = entry.flags & shared;
    }
    return result;
  }

private:
  struct Entry {
    uint64_t dataset = 0;
    uint64_t object  = 0;
    uint64_t number  = 0; ///< of the opening
    uint8_t flags    = 0;
    bool used        = false;
  };
  bool is(Slot slot, uint64_t dataset, uint64_t object) const
  {
    const Entry& entry = entries_[slot];
    return entry.object == object && entry.dataset == dataset && entry.used;
  }

  std::array<Entry, most_open> entries_;
  Slot last_      = 0;
  uint64_t count_ = 0;
};

} // namespace iocast
