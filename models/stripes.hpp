// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/platform.hpp"
#include "workload/op.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace iocast {

/// What of an access lies at one instance of a station that objects are striped over.
struct StripePart {
  uint32_t turn   = 0; ///< the instance, counted from the object's first one; of stripes by chance, its number
  uint32_t blocks = 0; ///< of the access that have bytes there
  uint64_t bytes  = 0;
  uint64_t whole  = 0; ///< bytes of the stripes of redundancy that it touches
  uint64_t partly = 0; ///< of these, of stripes that it covers in part
};

/// Of stripes that lie by chance: the instance of one, always the same.
inline uint32_t chance_of(const Op& op, uint64_t stripe, const StationSpec& spec)
{
  return static_cast<uint32_t>(mix(mix(mix(mix(op.dataset) ^ op.object) ^ 0x5354524950455321ULL) + stripe) %
                               spec.count);
}

/// Cuts accesses at the boundaries of stripes.
class StripeCutter {
public:
  /// One part for each instance that the access has bytes at, in the order in which it comes to them; one where it has
  /// none. Stripes of one instance lie together there, so that they are one part.
  const std::vector<StripePart>& cut(const Op& op, const StationSpec& spec)
  {
    parts_.clear();
    const uint64_t size = op.bytes() > 0 ? op.size : 0;
    if (spec.stripe_count == 1 && !spec.redundancy.exists()) { // all of it
      parts_.push_back({0, size > 0 ? std::max(op.count, 1U) : 0, op.bytes()});
      return parts_;
    }
    place_.assign(spec.stripe_count, nowhere);
    counted_.assign(spec.stripe_count, 0);
    pieces_              = 0;
    const bool one_piece = op.count <= 1 || op.stride == op.size;
    if (size == 0)
      part(turn_of(op, op.offset, spec));
    else if (one_piece)
      cut_piece(op, op.offset, size * op.count, spec);
    else
      for (uint32_t block = 0; block < op.count; ++block)
        cut_piece(op, op.offset + block * op.stride, size, spec);
    if (size > 0 && one_piece && op.count > 1)
      for (auto& each : parts_)
        each.blocks = static_cast<uint32_t>(std::clamp<uint64_t>((each.bytes + size - 1) / size, 1, op.count));
    return parts_;
  }

  /// All of the access as one part.
  static StripePart in_one(const Op& op, const StationSpec& spec)
  {
    StripePart part{0, std::max(op.count, 1U), op.bytes()};
    const uint64_t size = op.bytes() > 0 ? op.size : 0;
    if (size == 0)
      return part;
    const bool one_piece = op.count <= 1 || op.stride == op.size;
    for (uint32_t block = 0; block < (one_piece ? 1 : op.count); ++block)
      add_stripes(part, op.offset + block * op.stride, one_piece ? op.bytes() : size, spec);
    return part;
  }

  /// Of the first byte, at `offset` or behind it, that lies at the instance of this turn: the object's bytes there
  /// before it.
  static uint64_t offset_there(uint64_t offset, uint32_t turn, const StationSpec& spec)
  {
    const uint64_t stripe = offset / spec.stripe_size;
    const uint64_t ahead  = (turn + spec.stripe_count - stripe % spec.stripe_count) % spec.stripe_count;
    return (stripe + ahead) / spec.stripe_count * spec.stripe_size + (ahead > 0 ? 0 : offset % spec.stripe_size);
  }

private:
  static constexpr uint32_t nowhere = UINT32_MAX;

  static uint32_t turn_of(const Op& op, uint64_t offset, const StationSpec& spec)
  {
    const uint64_t stripe = offset / spec.stripe_size;
    return spec.by_stripe ? chance_of(op, stripe, spec) : static_cast<uint32_t>(stripe % spec.stripe_count);
  }

  StripePart& part(uint32_t turn)
  {
    if (place_[turn] == nowhere) {
      place_[turn] = static_cast<uint32_t>(parts_.size());
      parts_.push_back({turn});
    }
    return parts_[place_[turn]];
  }

  /// Bytes that lie together, as stripes of the station's redundancy.
  static void add_stripes(StripePart& part, uint64_t begin, uint64_t size, const StationSpec& spec)
  {
    const uint64_t stripe = spec.redundancy.stripe();
    const uint64_t first  = begin / stripe;
    const uint64_t last   = (begin + size - 1) / stripe;
    const bool head       = begin % stripe > 0;
    const bool tail       = (begin + size) % stripe > 0;
    part.whole += (last - first + 1) * stripe;
    part.partly += (first == last ? (head || tail ? 1 : 0) : (head ? 1 : 0) + (tail ? 1 : 0)) * stripe;
  }

  /// Bytes that lie together.
  void cut_piece(const Op& op, uint64_t begin, uint64_t size, const StationSpec& spec)
  {
    const uint64_t stripe = spec.stripe_size;
    const uint64_t end    = begin + size;
    if (spec.by_stripe) {
      ++pieces_;
      for (uint64_t at = begin; at < end; at = (at / stripe + 1) * stripe) {
        const uint32_t turn = turn_of(op, at, spec);
        StripePart& here    = part(turn);
        add_piece(here, at % stripe, std::min((at / stripe + 1) * stripe, end) - at, spec);
        here.blocks += std::exchange(counted_[turn], pieces_) == pieces_ ? 0 : 1;
      }
      return;
    }
    const uint64_t first = begin / stripe;
    const uint64_t last  = (end - 1) / stripe;
    // Each instance has one stripe in every round; the first and the last stripe may be short. Each is a whole number
    // of the redundancy's.
    for (uint64_t number = first; number <= std::min(last, first + spec.stripe_count - 1); ++number) {
      StripePart& here      = part(static_cast<uint32_t>(number % spec.stripe_count));
      const uint64_t rounds = (last - number) / spec.stripe_count + 1;
      uint64_t bytes        = rounds * stripe;
      if (number == first)
        bytes -= begin - first * stripe;
      if (number + (rounds - 1) * spec.stripe_count == last)
        bytes -= (last + 1) * stripe - end;
      add_piece(here, number == first ? begin : 0, bytes, spec);
      ++here.blocks;
    }
  }

  static void add_piece(StripePart& part, uint64_t begin, uint64_t bytes, const StationSpec& spec)
  {
    part.bytes += bytes;
    if (spec.redundancy.exists())
      add_stripes(part, begin, bytes, spec);
  }

  std::vector<StripePart> parts_;
  std::vector<uint32_t> place_;   ///< by turn: of its part
  std::vector<uint32_t> counted_; ///< by turn: the last of the access's pieces that its part has bytes of
  uint32_t pieces_ = 0;
};

} // namespace iocast
