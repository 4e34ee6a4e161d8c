// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>

namespace iocast {

/// The directories of a tree in which all have `branching` in them down to `depth`, numbered level by level as mdtest
/// does: those in directory n are b n + 1 to b n + b. Closed form; several roots without anything below are such a tree
/// too.
struct Levels {
  uint32_t roots     = 1;
  uint32_t depth     = 0;
  uint32_t branching = 1;

  struct Place {
    uint32_t number = 0;
    uint32_t level  = 0;
  };
  static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

  uint64_t on_level(uint32_t level) const
  {
    uint64_t count = roots;
    for (uint32_t i = 0; i < level && count < none; ++i)
      count *= branching;
    return count;
  }
  uint64_t all() const
  {
    uint64_t count = 0;
    for (uint32_t level = 0; level <= depth && count < none; ++level)
      count += on_level(level);
    return count;
  }
  uint32_t parent(uint32_t number) const { return (number - 1) / branching; }
  bool is_last(uint32_t number) const { return number % branching == 0; }

  Place lowest_first(Place place) const
  {
    for (; place.level < depth; ++place.level)
      place.number = place.number * branching + 1;
    return place;
  }
  /// Each directory before those in it.
  Place after_downwards(Place place) const
  {
    if (place.level < depth)
      return {place.number * branching + 1, place.level + 1};
    for (; place.level > 0 && is_last(place.number); --place.level)
      place.number = parent(place.number);
    return next_beside(place);
  }
  /// Each directory after those in it.
  Place after_upwards(Place place) const
  {
    if (place.level > 0 && is_last(place.number))
      return {parent(place.number), place.level - 1};
    const Place beside = next_beside(place);
    return beside.number == none ? beside : lowest_first(beside);
  }

private:
  Place next_beside(Place place) const
  {
    if (place.level == 0 && place.number + 1 >= roots)
      return {none, 0};
    return {place.number + 1, place.level};
  }
};

} // namespace iocast
