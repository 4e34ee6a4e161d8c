// SPDX-License-Identifier: Apache-2.0
//
// Which instance of a station serves an operation.
#include "models/system.hpp"

#include <algorithm>

namespace iocast {

namespace {
/// Powers of two need no division, which takes as long as all else here.
uint32_t remainder(uint64_t number, uint32_t count)
{
  return static_cast<uint32_t>((count & (count - 1)) == 0 ? number & (count - 1) : number % count);
}
/// Each instance by its share of the free space.
uint32_t weighted(uint64_t hash, const StationSpec& spec)
{
  const double at = static_cast<double>(hash >> 11) * 0x1p-53;
  return static_cast<uint32_t>(std::upper_bound(spec.free.begin(), spec.free.end() - 1, at) - spec.free.begin());
}
} // namespace

/// Of a station of the system that has several.
uint32_t System::instance_among(JobId id, const StationSpec& spec) const
{
  if (jobs_[id].piece && is_own_station(id, spec))
    return pieces_[id - placement_.ranks].instance;
  const Op& op = op_of(id);
  return instance_of(op, spec, op.offset);
}

/// Where that byte of the operation's object lies, at a station of the system.
uint32_t System::instance_of(const Op& op, const StationSpec& spec, uint64_t offset)
{
  if (spec.spread == Spread::round_robin)
    return (remainder(mix(op.dataset), spec.count) + remainder(op.object, spec.count)) % spec.count;
  if (spec.spread == Spread::stripe && spec.allocated_in_turn)
    return (remainder((op.dataset + op.object) * spec.stripe_count, spec.count) +
            remainder(offset / spec.stripe_size, spec.stripe_count)) %
           spec.count;
  if (spec.by_stripe)
    return chance_of(op, offset / spec.stripe_size, spec);
  const uint64_t hash  = mix(spec.spread == Spread::dataset ? op.dataset : mix(op.dataset) ^ op.object);
  const uint32_t first = spec.free.empty() ? remainder(hash, spec.count) : weighted(hash, spec);
  if (spec.spread != Spread::stripe || spec.stripe_count == 1)
    return first;
  return (first + remainder(offset / spec.stripe_size, spec.stripe_count)) % spec.count;
}

Station& System::station_of_instance(uint32_t instance_number)
{
  const auto after = std::upper_bound(first_instances_.begin(), first_instances_.end(), instance_number);
  return stations_[static_cast<size_t>(after - first_instances_.begin()) - 1];
}

} // namespace iocast
