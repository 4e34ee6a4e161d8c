// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace iocast {

/// Which instances of a cache have what, so that it can be taken out of all of them without a look at those that
/// haven't.
class Holders {
public:
  explicit Holders(bool of_pages) : of_pages_(of_pages) {}

  /// The instance, which hadn't it, has it now; `object` is what the key is a page of.
  void add(uint64_t key, uint64_t object, uint32_t instance)
  {
    ++size_;
    auto& held = held_[key];
    held.instances.push_back(instance);
    if (held.instances.size() > 1 || !of_pages_)
      return;
    auto& keys  = keys_of_[object];
    held.object = object;
    held.place  = static_cast<uint32_t>(keys.size());
    keys.push_back(key);
  }

  void remove(uint64_t key, uint32_t instance)
  {
    const auto found = held_.find(key);
    if (found == held_.end())
      return;
    auto& instances = found->second.instances;
    const auto at   = std::find(instances.begin(), instances.end(), instance);
    if (at == instances.end())
      return;
    *at = instances.back();
    instances.pop_back();
    --size_;
    if (instances.empty())
      erase(found);
  }

  /// The instances that have it, but for `spared`; they have it no longer.
  std::vector<uint32_t> take(uint64_t key, uint32_t spared)
  {
    const auto found = held_.find(key);
    if (found == held_.end())
      return {};
    std::vector<uint32_t> taken = std::exchange(found->second.instances, {});
    size_ -= taken.size();
    if (const auto at = std::find(taken.begin(), taken.end(), spared); at != taken.end()) {
      taken.erase(at);
      found->second.instances.push_back(spared);
      ++size_;
    } else {
      erase(found);
    }
    return taken;
  }

  /// Of the object's pages, those that anybody has.
  std::vector<uint64_t> keys_of(uint64_t object) const
  {
    const auto found = keys_of_.find(object);
    return found == keys_of_.end() ? std::vector<uint64_t>{} : found->second;
  }

  /// What each instance has, all together.
  uint64_t size() const { return size_; }

private:
  struct Held {
    std::vector<uint32_t> instances;
    uint64_t object = 0;
    uint32_t place  = 0; ///< among the object's keys
  };

  void erase(std::unordered_map<uint64_t, Held>::iterator at)
  {
    if (of_pages_) {
      const auto keys                  = keys_of_.find(at->second.object);
      keys->second[at->second.place]   = keys->second.back();
      held_[keys->second.back()].place = at->second.place;
      keys->second.pop_back();
      if (keys->second.empty())
        keys_of_.erase(keys);
    }
    held_.erase(at);
  }

  bool of_pages_;
  uint64_t size_ = 0;
  std::unordered_map<uint64_t, Held> held_;                     ///< by key
  std::unordered_map<uint64_t, std::vector<uint64_t>> keys_of_; ///< by object
};

} // namespace iocast
