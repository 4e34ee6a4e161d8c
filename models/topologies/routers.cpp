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
  bool has_one_way() const override { return inner_->has_one_way(); }
  uint32_t way(uint32_t from, uint32_t to, uint64_t number) const override
  {
    if (!is_routed(from, to))
      return inner_->way(from, to, number);
    const uint32_t router = router_of(from, to, 0);
    return count_ * (inner_->way(from, router, number) + inner_->ways(from, router) * inner_->way(router, to, number));
  }
  /// Over each router by the first ways to it and on from it, then by the others.
  uint32_t ways(uint32_t from, uint32_t to) const override
  {
    if (!is_routed(from, to))
      return inner_->ways(from, to);
    uint64_t most = 0;
    for (uint32_t router = first_; router < first_ + count_; ++router)
      most = std::max(most, uint64_t{inner_->ways(from, router)} * inner_->ways(router, to));
    return static_cast<uint32_t>(std::min<uint64_t>(most * count_, UINT32_MAX));
  }
  Route route(uint32_t from, uint32_t to, uint32_t way) const override
  {
    if (!is_routed(from, to))
      return inner_->route(from, to, way);
    const Hops hops = hops_of(from, to, way);
    Route route     = inner_->route(from, hops.router, hops.first);
    for (const auto& pass : inner_->route(hops.router, to, hops.second)) {
      const auto present =
          std::find_if(route.begin(), route.end(), [&](const auto& one) { return one.link == pass.link; });
      if (present != route.end())
        present->weight += pass.weight; // such as a backbone
      else if (route.size() < most_hops)
        route.push_back(pass);
      else
        throw InputError(fmt::format("A route over a router has more than {} links.", most_hops));
    }
    return route;
  }
  double latency(uint32_t from, uint32_t to, uint32_t way) const override
  {
    if (!is_routed(from, to))
      return inner_->latency(from, to, way);
    const Hops hops = hops_of(from, to, way);
    return inner_->latency(from, hops.router, hops.first) + inner_->latency(hops.router, to, hops.second);
  }
  nlohmann::ordered_json describe() const override { return inner_->describe(); }

private:
  /// A router, and the ways to it and on from it.
  struct Hops {
    uint32_t router;
    uint32_t first;
    uint32_t second;
  };

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
  /// Of any number.
  Hops hops_of(uint32_t from, uint32_t to, uint32_t way) const
  {
    const uint32_t router = router_of(from, to, way);
    const uint32_t firsts = inner_->ways(from, router);
    return {router, way / count_ % firsts, way / count_ / firsts % inner_->ways(router, to)};
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
