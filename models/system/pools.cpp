// SPDX-License-Identifier: Apache-2.0
//
// The part of System that takes from pools and fills them. The making of a batch is a job as the drain of a buffer's
// piece is.
#include "input/error.hpp"
#include "models/system.hpp"

#include <fmt/format.h>

namespace iocast {

void System::make_pools()
{
  pool_sums_.resize(platform_.pools.size());
  for (const auto& spec : platform_.pools) {
    const uint32_t count = spec.of_nodes()    ? placement_.nodes()
                           : spec.station < 0 ? 1
                                              : platform_.stations[static_cast<size_t>(spec.station)].count;
    pools_.emplace_back(spec, count);
    add_beside_steps(spec.refill, size_t{spec.at_once} * count);
  }
}

/// False when the job waits until there is one.
bool System::take_from_pool(JobId id, const Step& step)
{
  Pools& pools            = pools_[step.target];
  const uint32_t instance = pools.spec->of_nodes() ? jobs_[id].owner
                            : pools.spec->station < 0
                                ? 0
                                : instance_for(id, platform_.stations[static_cast<size_t>(pools.spec->station)]);
  const bool taken        = pools.instances[instance].take(id, now_);
  refill(pools, instance);
  return taken;
}

/// All batches begin that can.
void System::refill(Pools& pools, uint32_t instance)
{
  const auto number =
      static_cast<uint32_t>(pools.spec - platform_.pools.data() + static_cast<ptrdiff_t>(platform_.buffers.size()));
  while (pools.instances[instance].next_batch()) {
    Op nothing; // each batch is made elsewhere, where stations are spread by object
    nothing.dataset = instance;
    nothing.object  = pools.batches;
    begin_piece({nothing, 0, 0, number, instance, pools.batches++}, pools.spec->of_nodes() ? instance : nobody);
  }
}

void System::batch_made(const Piece& piece)
{
  Pools& pools = pools_[piece.buffer - platform_.buffers.size()];
  pools.instances[piece.instance].made(now_, freed_);
  resume_freed();
  refill(pools, piece.instance);
}

void System::check_pools()
{
  for (size_t i = 0; i < pools_.size(); ++i) {
    auto& sums = pools_[i].sums;
    sums.left  = 0;
    for (const auto& pool : pools_[i].instances) {
      if (!pool.adds_up())
        throw RunError(fmt::format("What is left in the pool '{}' is not what was made less what was taken; this is an "
                                   "error of the simulator.",
                                   pools_[i].spec->name));
      sums.left += pool.left();
    }
    pool_sums_[i] = sums;
  }
}

} // namespace iocast
