// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/topology.hpp"

#include <span>

namespace iocast {

/// Which switch each end is at: nodes fill the first ones, servers the ones behind them or places among the nodes'.
class Places {
public:
  /// @param each nodes of a switch
  /// @param node_switches switches that have nodes; 0: as many as the nodes need
  /// @param block switches that belong together, as in a pod or group: those of servers begin at a multiple of it
  /// @param section of `network` that has the number of places
  Places(const NetworkSpec& spec, const NetworkEnds& ends, uint32_t each, uint32_t node_switches, uint32_t block,
         const YamlNode& network, const char* section);

  uint32_t switch_of(uint32_t end) const
  {
    if (end < nodes_)
      return end / each_;
    const Group* group = groups_.data();
    while (end >= group->first + group->count)
      ++group;
    const uint32_t number = end - group->first;
    return group->among > 0 ? static_cast<uint32_t>(uint64_t{number} * group->among / group->count)
                            : group->first_switch + number / group->each;
  }
  uint32_t node_switches() const { return node_switches_; }
  /// A multiple of the block.
  uint32_t switches() const { return switches_; }
  /// For describe: where each station's servers are.
  nlohmann::ordered_json describe(const NetworkEnds& ends) const;

  /// Switches that servers alone need.
  static uint32_t of_servers(const NetworkSpec& spec, const NetworkEnds& ends, uint32_t each);

private:
  struct Group {
    uint32_t first;
    uint32_t count;
    uint32_t each;
    uint32_t first_switch;
    uint32_t among; ///< switches of nodes that they are spread over; 0: they have their own
  };
  uint32_t nodes_;
  uint32_t each_;
  uint32_t node_switches_;
  uint32_t switches_;
  std::vector<Group> groups_;
};

/// Ends that hang on switches, one link in each direction. What lies between the switches is up to the topology.
class Switches : public Topology {
public:
  Link links() const override { return 2 * ends_.count() + links_between_; }
  double capacity(Link link) const override;
  std::string name(Link link) const override;
  Wire wire(Link link) const override;
  Route route(uint32_t from, uint32_t to, uint32_t way) const override
  {
    Route route;
    route.push_back({out_of(from)});
    go(route, from, to, way);
    route.push_back({into(to)});
    return route;
  }
  double latency(uint32_t from, uint32_t to, uint32_t way) const override
  {
    Route route;
    go(route, from, to, way);
    return latency_ + hop_latency_ * static_cast<double>(route.size());
  }

protected:
  Switches(const NetworkSpec& spec, const NetworkEnds& ends, Places places);

  /// Appends the links between the switches of two ends.
  virtual void go(Route& route, uint32_t from, uint32_t to, uint32_t way) const = 0;
  // Of links between switches, numbered from 0; switches likewise.
  virtual double capacity_between(Link link) const  = 0;
  virtual std::string name_between(Link link) const = 0;
  virtual Wire wire_between(Link link) const        = 0;
  void add(Route& route, Link between) const { route.push_back({2 * ends_.count() + between}); }
  /// Bytes a second that `nodes` may send; infinite without a limit of their links.
  double of_nodes(double nodes) const;
  /// Begins what describe() says of any topology. @param bisection bytes a second of the links between two halves
  nlohmann::ordered_json described(const char* kind, double bisection) const;
  struct Below {
    uint32_t count;
    const char* what;
  };
  struct Up {
    uint32_t links   = 0;
    double bandwidth = 0;
  };
  /// @param nodes below each of `count`; its tapering is how often more they may send than its links up can carry
  void add_level(nlohmann::ordered_json& json, const char* level, uint32_t count, const Below& below, const Up& up,
                 double nodes) const;

  NetworkEnds ends_;
  Places places_;
  Link links_between_ = 0;

private:
  double latency_;
  double hop_latency_;
  double node_bandwidth_;
  std::vector<double> bandwidths_; ///< of the links of servers, by end
};

/// Evenly distributed bits of two ends and a number.
inline uint64_t hash_of(uint64_t from, uint64_t to, uint64_t number = 0)
{
  uint64_t bits = (from << 32 | to) + number * 0x9e3779b97f4a7c15ULL + 0x632be59bd9b4e019ULL;
  bits          = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ULL; // splitmix64, Steele et al., OOPSLA 2014
  bits          = (bits ^ bits >> 27) * 0x94d049bb133111ebULL;
  return bits ^ bits >> 31;
}

// Numbers of a topology's section. @throws InputError with file and line
uint32_t count_of(const YamlNode& yaml, const char* key, double least = 1);
/// Fails at that place where numbers would be beyond what links are counted with.
void refuse_many(const YamlNode& yaml, double number, const char* what);
double bandwidth_of(const YamlNode& yaml, const char* key);

} // namespace iocast
