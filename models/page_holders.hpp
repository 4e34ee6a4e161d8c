// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/flat_table.hpp"
#include "models/page_cache.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace iocast {

/// Which instances of a cache have which pages, so that these can be taken out of all of them without a look at those
/// that haven't. It knows blocks, and of each the instances with their pages.
class PageHolders {
public:
  struct Share {
    uint32_t instance = 0;
    uint64_t pages    = 0;
  };

  /// The instance, which hadn't these pages, has them now.
  void add(const Pages& pages, uint32_t instance);
  /// The instance has none of these pages any more.
  void remove(uint64_t block, uint64_t pages, uint32_t instance);
  /// The instances that have some of these pages, but for `spared`; they have them no longer.
  std::vector<Share> take(uint64_t block, uint64_t pages, uint32_t spared);
  /// Keys of the object's blocks of which anybody has pages.
  std::vector<uint64_t> blocks_of(uint64_t object);
  /// Pages of each instance, all together.
  uint64_t size() const { return size_; }

private:
  static constexpr uint32_t several = UINT32_MAX; ///< in place of an instance: see several_

  struct Held {
    uint64_t key      = 0;
    uint64_t object   = 0;
    uint64_t pages    = 0; ///< of one instance; of several, not 0
    uint32_t place    = 0; ///< among the object's blocks, but for the first block
    uint32_t instance = 0;

    bool used() const { return pages != 0; }
  };

  void settle(Held& held);
  void erase(Held& held);

  uint64_t size_ = 0;
  FlatTable<Held> held_;
  std::unordered_map<uint64_t, std::vector<Share>> several_;      ///< by block; more than one, none without pages
  std::unordered_map<uint64_t, std::vector<uint64_t>> blocks_of_; ///< by object; without the first block
};

} // namespace iocast
