// SPDX-License-Identifier: Apache-2.0
//
// Which instance of a station serves an operation.
#include "models/system.hpp"

#include <algorithm>

namespace iocast {

uint32_t System::instance_for(JobId id, const StationSpec& spec) const
{
  if (spec.per == Per::node)
    return jobs_[id].owner;
  if (spec.count == 1)
    return 0;
  if (jobs_[id].piece && is_own_station(id, spec))
    return pieces_[id - placement_.ranks].instance;
  const Op& op = op_of(id);
  return instance_of(op, spec, op.offset);
}

/// Where that byte of the operation's object lies, at a station of the system.
uint32_t System::instance_of(const Op& op, const StationSpec& spec, uint64_t offset)
{
  if (spec.spread == Spread::round_robin)
    return static_cast<uint32_t>((mix(op.dataset) % spec.count + op.object % spec.count) % spec.count);
  const uint64_t first = mix(spec.spread == Spread::dataset ? op.dataset : mix(op.dataset) ^ op.object);
  const uint64_t next  = spec.spread == Spread::stripe ? offset / spec.stripe_size % spec.stripe_count : 0;
  return static_cast<uint32_t>((first % spec.count + next) % spec.count);
}

Station& System::station_of_instance(uint32_t instance_number)
{
  const auto after = std::upper_bound(first_instances_.begin(), first_instances_.end(), instance_number);
  return stations_[static_cast<size_t>(after - first_instances_.begin()) - 1];
}

} // namespace iocast
