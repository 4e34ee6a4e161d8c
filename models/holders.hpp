// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/flat_table.hpp"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace iocast {

/// Which instances of a cache have which objects, so that it can be taken out of all of them without a look at those
/// that haven't.
class Holders {
public:
  /// The instance, which hadn't it, has it now.
  void add(uint64_t key, uint32_t instance)
  {
    ++size_;
    if (Held& held = held_.find(key); held.used()) {
      auto& instances = several_[key];
      if (held.instance != several)
        instances.push_back(held.instance);
      held.instance = several;
      instances.push_back(instance);
      return;
    }
    held_.insert({key, instance});
  }

  void remove(uint64_t key, uint32_t instance)
  {
    Held& held = held_.find(key);
    if (!held.used())
      return;
    if (held.instance != several) {
      if (held.instance == instance)
        erase(held);
      return;
    }
    auto& instances = several_[key];
    const auto at   = std::find(instances.begin(), instances.end(), instance);
    if (at == instances.end())
      return;
    *at = instances.back();
    instances.pop_back();
    --size_;
    if (instances.size() == 1)
      leave_to(held, instances.front());
  }

  /// The instances that have it, but for `spared`; they have it no longer.
  std::vector<uint32_t> take(uint64_t key, uint32_t spared)
  {
    Held& held = held_.find(key);
    if (!held.used() || held.instance == spared)
      return {};
    if (held.instance != several) {
      const uint32_t instance = held.instance;
      erase(held);
      return {instance};
    }
    std::vector<uint32_t> taken = several_[key];
    const auto at               = std::find(taken.begin(), taken.end(), spared);
    const bool stays            = at != taken.end();
    if (stays)
      taken.erase(at);
    size_ -= taken.size();
    if (stays) {
      leave_to(held, spared);
    } else {
      ++size_; // erase() counts one
      several_.erase(key);
      erase(held);
    }
    return taken;
  }

  /// What each instance has, all together.
  uint64_t size() const { return size_; }

private:
  static constexpr uint32_t nobody_yet = UINT32_MAX;
  static constexpr uint32_t several    = UINT32_MAX - 1; ///< in place of an instance: see several_

  struct Held {
    uint64_t key      = 0;
    uint32_t instance = nobody_yet;

    bool used() const { return instance != nobody_yet; }
  };

  void leave_to(Held& held, uint32_t instance)
  {
    several_.erase(held.key);
    held.instance = instance;
  }

  /// One instance had it.
  void erase(Held& held)
  {
    --size_;
    held_.erase(held);
  }

  uint64_t size_ = 0;
  FlatTable<Held> held_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> several_; ///< by key, where more than one instance has it
};

} // namespace iocast
