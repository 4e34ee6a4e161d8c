// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/flows.hpp"
#include "models/platform.hpp"

#include <boost/container/static_vector.hpp>
#include <memory>
#include <string>

namespace iocast {

/// Where the links of a network are, and which of them lie between two of its ends: client nodes, numbered from 0, and
/// behind them the servers. Routes are computed, not kept.
class Topology {
public:
  using Link = FlowNetwork::Link;

  /// Links from one end to another; those without a limit are left out.
  using Route = boost::container::static_vector<FlowNetwork::Pass, FlowNetwork::most_hops>;

  virtual ~Topology()        = default;
  virtual Link links() const = 0;
  /// Whether all transfers take the same links between those of their ends, of which there is at most one, the last.
  virtual bool is_star() const { return false; }
  /// Bytes a second; infinite where the platform states none.
  virtual double capacity(Link link) const = 0;
  /// Of a link that is no end's own.
  virtual std::string name(Link link) const             = 0;
  virtual Route route(uint32_t from, uint32_t to) const = 0;
  /// Seconds one way.
  virtual double latency(uint32_t from, uint32_t to) const = 0;

  // Every end has a link of its own in each direction, numbered before all others.
  static Link out_of(uint32_t end) { return 2 * end; }
  static Link into(uint32_t end) { return 2 * end + 1; }
};

std::unique_ptr<Topology> make_topology(const NetworkSpec& spec, uint32_t nodes, uint32_t servers);

} // namespace iocast
