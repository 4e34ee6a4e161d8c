// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/job.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace iocast {

/// Exclusive locks by key, first come, first served. Only locks that are held take memory, so a lock a directory costs nothing
/// for a million directories at rest. Open addressing with linear probing; deletion shifts back, so there are no tombstones.
class LockTable {
public:
  LockTable() : slots_(64) {}

  /// True when the lock was free; otherwise the job waits and will be returned by a release().
  bool acquire(Links& links, uint64_t key, JobId job)
  {
    size_t at = find(key);
    if (slots_[at].held) {
      slots_[at].waiting.push_back(links, job);
      return false;
    }
    if (2 * (held_ + 1) > slots_.size()) {
      grow();
      at = find(key);
    }
    slots_[at] = {key, true, {}};
    ++held_;
    return true;
  }

  /// The job does not wait any longer; false when it does not wait for this lock.
  bool leave(Links& links, uint64_t key, JobId job)
  {
    Slot& slot = slots_[find(key)];
    return slot.held && slot.waiting.remove(links, job);
  }

  /// The job that gets the lock now, or nobody.
  JobId release(Links& links, uint64_t key)
  {
    const size_t at  = find(key);
    const JobId next = slots_[at].waiting.pop_front(links);
    if (next == nobody)
      erase(at);
    return next;
  }

  size_t held() const { return held_; }

private:
  struct Slot {
    uint64_t key = 0;
    bool held    = false;
    JobQueue waiting;
  };

  size_t home(uint64_t key) const { return (key * 0x9e3779b97f4a7c15ULL >> 20) & (slots_.size() - 1); }
  size_t find(uint64_t key) const
  {
    size_t at = home(key);
    while (slots_[at].held && slots_[at].key != key)
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void erase(size_t hole)
  {
    const size_t mask = slots_.size() - 1;
    for (size_t at = (hole + 1) & mask; slots_[at].held; at = (at + 1) & mask)
      if (((at - home(slots_[at].key)) & mask) >= ((at - hole) & mask)) {
        slots_[hole] = slots_[at];
        hole         = at;
      }
    slots_[hole] = {};
    --held_;
  }
  void grow()
  {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const auto& slot : old)
      if (slot.held)
        slots_[find(slot.key)] = slot;
  }

  std::vector<Slot> slots_;
  size_t held_ = 0;
};

/// Who keeps locks that stay with a node after use: one node, or all those that had it shared since.
class LockKeepers {
public:
  /// The node takes the lock. True when others have to give it up first.
  bool take(uint64_t key, uint32_t node, bool shared)
  {
    Keepers& keepers = keepers_[key];
    auto& nodes      = keepers.nodes;
    const bool mine  = std::find(nodes.begin(), nodes.end(), node) != nodes.end();
    const bool alone = nodes.empty() || (mine && nodes.size() == 1);
    if (shared && (alone || !keepers.exclusive)) {
      if (!mine)
        nodes.push_back(node);
      return false;
    }
    keepers.exclusive = !shared;
    if (!alone)
      nodes = {node};
    else if (!mine)
      nodes.push_back(node);
    return !alone;
  }

private:
  struct Keepers {
    bool exclusive = false;
    std::vector<uint32_t> nodes;
  };
  std::unordered_map<uint64_t, Keepers> keepers_;
};

} // namespace iocast
