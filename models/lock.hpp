// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/flat_table.hpp"
#include "models/job.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <unordered_set>
#include <vector>

namespace iocast {

/// Locks by key, first come, first served: some have one together that all have it shared (readers), or one has it
/// alone (a writer). Nobody passes one who waits, so no writer waits for readers that came after it. Only locks that
/// are held take memory, so a lock a directory costs nothing for a million directories at rest.
class LockTable {
public:
  /// True when the lock was free; otherwise the job waits and will be returned by a release().
  bool acquire(Links& links, uint64_t key, JobId job) { return acquire(links, key, job, alone); }
  /// True when nobody has it alone and nobody waits.
  bool acquire_shared(Links& links, uint64_t key, JobId job)
  {
    Slot& slot = slots_.find(key);
    if (slot.holders == 0 || slot.holders == alone || !slot.waiting.empty())
      return acquire(links, key, job, 1);
    ++slot.holders;
    return true;
  }

  /// The job does not wait any longer; false when it does not wait for this lock.
  bool leave(Links& links, uint64_t key, JobId job)
  {
    Slot& slot = slots_.find(key);
    return slot.holders != 0 && slot.waiting.remove(links, job);
  }

  /// Of a lock that nobody takes shared: the job that gets it now, or nobody.
  JobId release(Links& links, uint64_t key)
  {
    Slot& slot       = slots_.find(key);
    const JobId next = slot.waiting.pop_front(links);
    if (next == nobody)
      slots_.erase(slot);
    return next;
  }
  /// Of any lock: one of its holders gives it up. To be followed by admit().
  void give_up(uint64_t key)
  {
    Slot& slot   = slots_.find(key);
    slot.holders = slot.holders == alone ? 0 : slot.holders - 1;
    if (slot.holders == 0 && slot.waiting.empty())
      slots_.erase(slot);
    else if (slot.holders == 0)
      slot.holders = unowned;
  }
  /// The next job that gets the lock now, or nobody: to be called until then. `shares(job)` says how a job that waits
  /// wants it.
  template <class Shares> JobId admit(Links& links, uint64_t key, Shares shares)
  {
    Slot& slot = slots_.find(key);
    if (slot.holders == 0 || slot.holders == alone || slot.waiting.empty())
      return nobody;
    const bool shared = shares(slot.waiting.front());
    if (!shared && slot.holders != unowned)
      return nobody;
    slot.holders = !shared ? alone : slot.holders == unowned ? 1 : slot.holders + 1;
    return slot.waiting.pop_front(links);
  }

  size_t held() const { return slots_.size(); }
  bool is_held(uint64_t key) { return slots_.find(key).used(); }

private:
  static constexpr uint32_t alone   = UINT32_MAX;
  static constexpr uint32_t unowned = UINT32_MAX - 1; ///< given up, and not yet had by those who wait
  struct Slot {
    uint64_t key     = 0;
    uint32_t holders = 0; ///< that have it shared; or one of the above
    JobQueue waiting;

    bool used() const { return holders != 0; }
  };

  bool acquire(Links& links, uint64_t key, JobId job, uint32_t holders)
  {
    Slot& slot = slots_.find(key);
    if (slot.used()) {
      slot.waiting.push_back(links, job);
      return false;
    }
    slots_.insert({key, holders, {}});
    return true;
  }

  FlatTable<Slot> slots_;
};

/// Who keeps a lock that stays with a node after use: one node, or all those that had it shared since.
class LockKeepers {
public:
  static constexpr double never = -std::numeric_limits<double>::infinity();

  double there_at   = 0; ///< when it is there that was called back for reading; those who read as well wait for that
  double used_at    = never; ///< last, where it may be hot
  double held_until = never; ///< by a visit that went on without an event for its end

  /// The node takes the lock. True when others have to give it up first.
  bool take(uint32_t node, bool shared)
  {
    const bool mine  = has(node);
    const bool alone = count_ == 0 || (mine && count_ == 1);
    if (shared && (alone || !exclusive_)) {
      if (!mine)
        add(node);
      return false;
    }
    exclusive_ = !shared;
    if (!alone)
      clear();
    if (!alone || !mine)
      add(node);
    return !alone;
  }
  bool has(uint32_t node) const { return count_ == 1 ? first_ == node : count_ > 1 && several_->contains(node); }

private:
  void add(uint32_t node)
  {
    if (count_ == 0) {
      first_ = node;
    } else {
      if (count_ == 1) {
        if (!several_)
          several_ = std::make_unique<std::unordered_set<uint32_t>>();
        several_->insert(first_);
      }
      several_->insert(node);
    }
    ++count_;
  }
  void clear()
  {
    count_ = 0;
    if (several_)
      several_->clear();
  }

  bool exclusive_ = false;
  uint32_t count_ = 0;
  uint32_t first_ = 0;                                    ///< when there is but one
  std::unique_ptr<std::unordered_set<uint32_t>> several_; ///< most locks have one
};

} // namespace iocast
