// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/yaml.hpp"
#include "models/flows.hpp"
#include "models/platform.hpp"

#include <boost/container/static_vector.hpp>
#include <memory>
#include <span>
#include <string>

namespace iocast {

/// Ends of a network: client nodes, numbered from 0, and behind them the instances of stations that bytes go to.
struct NetworkEnds {
  struct Servers {
    uint32_t station;
    std::string name;
    uint32_t first; ///< end of the first instance
    uint32_t count;
  };
  uint32_t nodes = 0;
  std::vector<Servers> servers;

  uint32_t count() const { return servers.empty() ? nodes : servers.back().first + servers.back().count; }
  /// "node 5" or "oss 3".
  std::string name(uint32_t end) const;
};

/// @throws InputError when there are more than 2^24
NetworkEnds ends_of(const Platform& platform, uint32_t nodes);

/// Where the links of a network are, and which of them lie between two of its ends. Routes are computed, not kept.
class Topology {
public:
  using Link = FlowNetwork::Link;
  /// Links of the longest route; a disk, its servers and a window may follow.
  static constexpr uint32_t most_hops = FlowNetwork::most_hops - 4;
  /// Links from one end to another; those without a limit may be left out.
  using Route = boost::container::static_vector<FlowNetwork::Pass, FlowNetwork::most_hops>;
  /// A link leads from one of these to another: ends by their number, switches behind them.
  struct Wire {
    uint32_t from;
    uint32_t to;
  };

  virtual ~Topology()        = default;
  virtual Link links() const = 0;
  /// Whether all transfers take the same links between those of their ends, of which there is at most one, the last.
  virtual bool is_star() const { return false; }
  /// Bytes a second; infinite where the platform states none.
  virtual double capacity(Link link) const = 0;
  /// Whether `capacity` is what each flow gets at most, not all together.
  virtual bool is_rate(Link) const { return false; }
  /// A cable and the direction on it, such as "leaf 7 uplink 3 up"; empty for a number that no link has.
  virtual std::string name(Link link) const = 0;
  virtual Wire wire(Link link) const        = 0;
  /// The way that a flow takes, of several: 0 is the shortest. @param number of the flow
  virtual uint32_t way(uint32_t /*from*/, uint32_t /*to*/, uint64_t /*number*/) const { return 0; }
  /// Ways that there are, as far as they are known, from 0 on: one of them may go around a link that is gone.
  virtual uint32_t ways(uint32_t /*from*/, uint32_t /*to*/) const { return 1; }
  /// Whether way() is always 0.
  virtual bool has_one_way() const { return true; }
  virtual Route route(uint32_t from, uint32_t to, uint32_t way) const = 0;
  /// Seconds one way.
  virtual double latency(uint32_t from, uint32_t to, uint32_t way) const = 0;
  /// Levels from the ends up, each with how many there are, what is below each, its links up and its tapering; where
  /// servers are; and `bisection`, the bandwidth of the links between two halves of the nodes in bytes a second, one
  /// way.
  virtual nlohmann::ordered_json describe() const = 0;

  // Every end has a link of its own in each direction, numbered before all others.
  static Link out_of(uint32_t end) { return 2 * end; }
  static Link into(uint32_t end) { return 2 * end + 1; }
};

/// The links of a platform other than a star, before the number of its nodes is known.
class TopologyPlan {
public:
  explicit TopologyPlan(YamlNode network) : yaml_(std::move(network)) {}
  virtual ~TopologyPlan() = default;
  /// @throws InputError: not all ends find a place, or some can't reach each other
  virtual std::unique_ptr<Topology> make(const NetworkSpec& spec, const NetworkEnds& ends) const = 0;
  /// Its keys as read.
  virtual nlohmann::ordered_json to_json() const = 0;
  /// Number of client nodes of the whole machine; 0: as many as a run has.
  virtual uint32_t nodes(const NetworkSpec&, const NetworkEnds&) const { return 0; }

protected:
  YamlNode yaml_; ///< section `network`, for messages
};

/// A kind of topology, which models/topologies/ has one file for.
struct TopologyKind {
  std::string name;
  std::string summary;
  std::vector<std::pair<std::string, std::string>> keys; ///< key of `network`, meaning
  std::string place; ///< key that says how many servers are at one switch: leaf or router; empty: it has no places
  std::shared_ptr<const TopologyPlan> (*read)(const YamlNode& network, const NetworkSpec& spec);
  bool has_cards = false; ///< it has latencies, and the links of ends, so that `network` states none of them
};
/// All but the star. Programs may add theirs.
std::vector<TopologyKind>& topology_kinds();

std::unique_ptr<Topology> make_topology(const NetworkSpec& spec, const NetworkEnds& ends);

/// What describe() says of a platform's network with this number of client nodes; 0: all of its machine, or where it
/// doesn't say, as many as are shown. Null of a star. @throws InputError as TopologyPlan::make()
nlohmann::ordered_json describe_network(const Platform& platform, uint32_t nodes);

} // namespace iocast
