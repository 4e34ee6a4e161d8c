// SPDX-License-Identifier: Apache-2.0
//
// Routers, such as Lustre's LNet routers, and gateways: between client nodes and servers all bytes pass one of them, in
// over its link and out again.
#include "models/switches.hpp"
#include "models/topologies/kinds.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace iocast {

namespace {
class BehindRouters final : public Topology {
public:
  BehindRouters(std::unique_ptr<Topology> inner, uint32_t nodes, const NetworkEnds::Servers& routers)
      : inner_(std::move(inner)), nodes_(nodes), first_(routers.first), count_(routers.count)
  {
  }
  Link links() const override { return inner_->links(); }
  double capacity(Link link) const override { return inner_->capacity(link); }
  bool is_rate(Link link) const override { return inner_->is_rate(link); }
  std::string name(Link link) const override { return inner_->name(link); }
  Wire wire(Link link) const override { return inner_->wire(link); }
  /// One over each router.
  uint32_t ways(uint32_t from, uint32_t to) const override
  {
    return is_routed(from, to) ? count_ : inner_->ways(from, to);
  }
  Route route(uint32_t from, uint32_t to, uint32_t way) const override
  {
    if (!is_routed(from, to))
      return inner_->route(from, to, way);
    const uint32_t router = router_of(from, to, way);
    Route route           = inner_->route(from, router, 0);
    const Route behind    = inner_->route(router, to, 0);
    if (route.size() + behind.size() > most_hops)
      throw InputError(fmt::format("The longest route over a router has {} links; it may have {}.",
                                   route.size() + behind.size(), most_hops));
    route.insert(route.end(), behind.begin(), behind.end());
    return route;
  }
  double latency(uint32_t from, uint32_t to, uint32_t way) const override
  {
    if (!is_routed(from, to))
      return inner_->latency(from, to, way);
    const uint32_t router = router_of(from, to, way);
    return inner_->latency(from, router, 0) + inner_->latency(router, to, 0);
  }
  nlohmann::ordered_json describe() const override { return inner_->describe(); }

private:
  bool is_router(uint32_t end) const { return end >= first_ && end < first_ + count_; }
  bool is_routed(uint32_t from, uint32_t to) const
  {
    return (from < nodes_) != (to < nodes_) && !is_router(from) && !is_router(to);
  }
  /// The same both ways.
  uint32_t router_of(uint32_t from, uint32_t to, uint32_t way) const
  {
    return first_ + static_cast<uint32_t>((hash_of(std::min(from, to), std::max(from, to)) + way) % count_);
  }

  std::unique_ptr<Topology> inner_;
  uint32_t nodes_;
  uint32_t first_;
  uint32_t count_;
};
} // namespace

std::unique_ptr<Topology> behind_routers(std::unique_ptr<Topology> topology, const NetworkSpec& spec,
                                         const NetworkEnds& ends)
{
  const auto routers = std::find_if(ends.servers.begin(), ends.servers.end(), [&](const auto& one) {
    return one.station == static_cast<uint32_t>(spec.routers);
  });
  return std::make_unique<BehindRouters>(std::move(topology), ends.nodes, *routers);
}

} // namespace iocast
