// SPDX-License-Identifier: Apache-2.0
#include "models/topology.hpp"

#include <limits>

namespace iocast {

namespace {
using Link = Topology::Link;

/// Bandwidths of the platform, 0 where there is no limit.
double or_unlimited(double bandwidth)
{
  return bandwidth > 0 ? bandwidth : std::numeric_limits<double>::infinity();
}

class Ends : public Topology {
public:
  Ends(const NetworkSpec& spec, uint32_t nodes, uint32_t servers) : spec_(spec), nodes_(nodes), ends_(nodes + servers)
  {
  }

protected:
  double bandwidth_of(uint32_t end) const { return end < nodes_ ? spec_.node_bandwidth : spec_.server_bandwidth; }
  void leave(Route& route, uint32_t end) const
  {
    if (bandwidth_of(end) > 0)
      route.push_back({out_of(end)});
  }
  void arrive(Route& route, uint32_t end) const
  {
    if (bandwidth_of(end) > 0)
      route.push_back({into(end)});
  }

  NetworkSpec spec_;
  uint32_t nodes_;
  uint32_t ends_;
};

/// All ends around one switch; what crosses it shares a backbone, where the platform has one.
class Star final : public Ends {
public:
  using Ends::Ends;
  Link links() const override { return 2 * ends_ + (spec_.backbone_bandwidth > 0 ? 1 : 0); }
  bool is_star() const override { return true; }
  double capacity(Link link) const override
  {
    return or_unlimited(link < 2 * ends_ ? bandwidth_of(link / 2) : spec_.backbone_bandwidth);
  }
  std::string name(Link) const override { return "backbone"; }
  Route route(uint32_t from, uint32_t to) const override
  {
    Route route;
    leave(route, from);
    if (spec_.backbone_bandwidth > 0)
      route.push_back({2 * ends_});
    arrive(route, to);
    return route;
  }
  double latency(uint32_t, uint32_t) const override { return spec_.latency; }
};
} // namespace

std::unique_ptr<Topology> make_topology(const NetworkSpec& spec, uint32_t nodes, uint32_t servers)
{
  return std::make_unique<Star>(spec, nodes, servers);
}

} // namespace iocast
