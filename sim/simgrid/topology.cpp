// SPDX-License-Identifier: Apache-2.0
//
// A platform of SimGrid as a network: its hosts are client nodes and servers, its zones have the routes. These are
// looked up once a pair of ends; the links are shared as those of any other network.
#include "sim/simgrid/topology.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <simgrid/Exception.hpp>
#include <unordered_map>

namespace iocast {

namespace s4u = simgrid_compat::s4u;

s4u::Engine& simgrid_engine()
{
  // It lives as long as the process: SimGrid ends with itself.
  static s4u::Engine* const engine = [] {
    static int argc          = 2;
    static std::string name  = "iocast-sim";
    static std::string log   = "--log=root.thresh:critical";
    static char* arguments[] = {name.data(), log.data(), nullptr};
    auto* made               = new s4u::Engine(&argc, arguments);
    // The default network model stretches latencies 13-fold and takes 3 % off bandwidths, to resemble TCP on Ethernet
    // of 2008; an HPC fabric does neither. No TCP window either, and no cost of the reverse direction.
    s4u::Engine::set_config("network/model:CM02");
    s4u::Engine::set_config("network/TCP-gamma:0");
    s4u::Engine::set_config("network/crosstraffic:0");
    // The default updates only flows near those that changed and at times leaves some at old rates, in 3.32 other ones
    // than in 4.1: half a millisecond off max-min sharing in validation/theory/test_flows.py.
    s4u::Engine::set_config("network/optim:Full");
    return made;
  }();
  return *engine;
}

namespace {
std::string first_line(const std::string& text)
{
  return text.substr(0, text.find('\n'));
}

bool is_numbered(const std::string& pattern)
{
  return pattern.find("{}") != std::string::npos;
}

/// "node-{}" with this number in the place of {}.
std::string numbered(std::string pattern, uint32_t number)
{
  return is_numbered(pattern) ? pattern.replace(pattern.find("{}"), 2, std::to_string(number)) : pattern;
}

/// Of the file: "cluster.xml:7" where the text stands, or the file alone.
std::string place_of(const std::string& file, const std::string& text, const std::string& what)
{
  const auto at = text.find(what);
  return at == std::string::npos
             ? file
             : fmt::format("{}:{}", file, 1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
}

/// Refuses documents of other kinds, which SimGrid's parser takes for its own.
void check_document(const std::string& file, const std::string& text)
{
  const auto type = text.find("<!DOCTYPE");
  const auto end  = type == std::string::npos ? type : text.find('>', type);
  if (end == std::string::npos || text.find("simgrid.dtd", type) > end)
    throw InputError(fmt::format("{}: this is no platform of SimGrid; its second line would be <!DOCTYPE platform "
                                 "SYSTEM \"https://simgrid.org/simgrid.dtd\">.",
                                 place_of(file, text, "<!DOCTYPE")));
}

/// Reads the file into SimGrid's engine, once. @throws InputError with file and line
void load(const std::string& file, const std::string& text)
{
  static std::string loaded; // of which a process has one
  if (loaded == file)
    return;
  check_document(file, text);
  loaded       = file;
  auto& engine = simgrid_engine();
  try {
    engine.load_platform(file);
    engine.seal_platform();
  } catch (const std::exception& error) {
    // "Parse error at FILE:LINE: sentence", or a sentence alone
    const std::string message = first_line(error.what());
    const auto at             = message.find(file + ":");
    throw InputError(at == std::string::npos ? fmt::format("{}: SimGrid refuses it: {}", file, message)
                                             : fmt::format("{}", message.substr(at)));
  }
  for (const auto* link : engine.get_all_links()) {
    const auto& name = link->get_name();
    if (link->get_bandwidth() > 0 || name == "__loopback__")
      continue;
    const std::string id = name.ends_with("_UP")     ? name.substr(0, name.size() - 3)
                           : name.ends_with("_DOWN") ? name.substr(0, name.size() - 5)
                                                     : name; // of a link in both directions
    throw InputError(fmt::format("{}: the link '{}' has a bandwidth of {:g}; it must be more than 0.",
                                 place_of(file, text, fmt::format("id=\"{}\"", id)), id, link->get_bandwidth()));
  }
}

class SimGridTopology final : public Topology, public SimGridHosts {
public:
  SimGridTopology(std::string file, const YamlNode& network, const NetworkEnds& ends)
      : ends_(ends), file_(std::move(file))
  {
    load(file_, text_of(file_));
    for (auto* link : simgrid_engine().get_all_links()) {
      number_of_[link] = static_cast<Link>(2 * ends_.count() + links_.size());
      links_.push_back(link);
    }
    const auto hosts = network["hosts"];
    add_hosts(hosts["nodes"], ends_.nodes, "client nodes");
    for (const auto& group : ends_.servers)
      add_hosts(hosts[group.name], group.count, group.name);
    // All others are found as bytes move between them.
    for (uint32_t server = ends_.nodes; server < ends_.count(); ++server)
      way_between(0, server);
    for (uint32_t node = 0; node < (ends_.servers.empty() ? 0 : ends_.nodes); ++node)
      way_between(ends_.nodes, node);
  }

  s4u::Host* host_of(uint32_t end) const override { return hosts_[end]; }
  Link links() const override { return static_cast<Link>(2 * ends_.count() + links_.size()); }
  double capacity(Link link) const override
  {
    return link < 2 * ends_.count() ? std::numeric_limits<double>::infinity()
                                    : links_[link - 2 * ends_.count()]->get_bandwidth();
  }
  bool is_rate(Link link) const override
  {
    return link >= 2 * ends_.count() &&
           links_[link - 2 * ends_.count()]->get_sharing_policy() == s4u::Link::SharingPolicy::FATPIPE;
  }
  std::string name(Link link) const override
  {
    return link < 2 * ends_.count() ? fmt::format("{} {}", ends_.name(link / 2), link % 2 == 0 ? "out" : "in")
                                    : links_[link - 2 * ends_.count()]->get_name();
  }
  /// Where the links of a zone lie SimGrid doesn't say.
  Wire wire(Link link) const override { return {link / 2, ends_.count()}; }
  Route route(uint32_t from, uint32_t to, uint32_t) const override { return way_between(from, to).route; }
  double latency(uint32_t from, uint32_t to, uint32_t) const override { return way_between(from, to).latency; }
  nlohmann::ordered_json describe() const override
  {
    nlohmann::ordered_json json{{"topology", "simgrid"},
                                {"file", file_},
                                {"nodes", ends_.nodes},
                                {"links", links_.size()},
                                {"levels", nlohmann::ordered_json::array()},
                                {"servers", nlohmann::ordered_json::object()}};
    return json;
  }

private:
  struct Way {
    Route route;
    double latency = 0;
  };

  /// @param pattern name of each, with {} in place of its number
  void add_hosts(const YamlNode& pattern, uint32_t count, const std::string& what)
  {
    if (!is_numbered(pattern.text()) && count > 1)
      pattern.fail(
          fmt::format("the names of {} {} have their number in the place of {{}}, such as 'node-{{}}'", count, what));
    for (uint32_t number = 0; number < count; ++number) {
      const auto name = numbered(pattern.text(), number);
      auto* host      = s4u::Host::by_name_or_null(name);
      if (host == nullptr) {
        std::vector<std::string> names;
        for (const auto* one : simgrid_engine().get_all_hosts())
          names.push_back(one->get_name());
        const auto near = nearest_match(name, names);
        pattern.fail(fmt::format("{} has no host '{}', and {} {} are needed; it has {} hosts{}", file_, name, count,
                                 what, names.size(), near.empty() ? "" : fmt::format(", such as '{}'", near)));
      }
      hosts_.push_back(host);
    }
  }

  const Way& way_between(uint32_t from, uint32_t to) const
  {
    const auto [found, fresh] = ways_.try_emplace(uint64_t{from} << 32 | to);
    if (fresh)
      found->second = find_way(from, to);
    return found->second;
  }

  Way find_way(uint32_t from, uint32_t to) const
  {
    Way way;
    std::vector<s4u::Link*> links;
    const auto ends = [&] {
      return fmt::format("from '{}' to '{}'", hosts_[from]->get_name(), hosts_[to]->get_name());
    };
    try {
      hosts_[from]->route_to(hosts_[to], links, &way.latency);
    } catch (const simgrid::Exception&) {
      links.clear();
    }
    if (links.empty())
      throw InputError(
          fmt::format("{}: there is no route {}; all client nodes and servers must reach each other.", file_, ends()));
    if (links.size() > most_hops)
      throw InputError(
          fmt::format("{}: the route {} has {} links; it may have {}.", file_, ends(), links.size(), most_hops));
    for (auto* link : links) {
      const Link number  = number_of_.at(link);
      const auto present = std::find_if(way.route.begin(), way.route.end(),
                                        [&](const FlowNetwork::Pass& pass) { return pass.link == number; });
      if (present != way.route.end())
        present->weight += 1; // the same link twice, as SimGrid shares it
      else
        way.route.push_back({number});
    }
    return way;
  }

  NetworkEnds ends_;
  std::string file_;
  std::vector<s4u::Link*> links_;
  std::unordered_map<const s4u::Link*, Link> number_of_;
  std::vector<s4u::Host*> hosts_; ///< by end
  mutable std::unordered_map<uint64_t, Way> ways_;
};

class SimGridPlan final : public TopologyPlan {
public:
  explicit SimGridPlan(const YamlNode& network) : TopologyPlan(network) {}
  std::unique_ptr<Topology> make(const NetworkSpec&, const NetworkEnds& ends) const override
  {
    return std::make_unique<SimGridTopology>(file(), yaml_, ends);
  }
  /// As many as it has hosts of that name.
  uint32_t nodes(const NetworkSpec&, const NetworkEnds&) const override
  {
    load(file(), text_of(file()));
    const std::string pattern = yaml_["hosts"]["nodes"].text();
    uint32_t count            = 0;
    while (s4u::Host::by_name_or_null(numbered(pattern, count)) != nullptr && (count == 0 || is_numbered(pattern)))
      ++count;
    return std::max(count, 1U);
  }
  nlohmann::ordered_json to_json() const override
  {
    return {{"topology", "simgrid"}, {"simgrid", file()}, {"hosts", yaml_["hosts"].to_json()}};
  }

private:
  /// Beside the file that names it.
  std::string file() const
  {
    const auto named = yaml_["simgrid"];
    return (std::filesystem::path(named.file()).parent_path() / named.text()).string();
  }
};

} // namespace

std::shared_ptr<const TopologyPlan> read_simgrid(const YamlNode& network)
{
  const auto plan = std::make_shared<SimGridPlan>(network);
  static_cast<void>(plan->to_json()); // all keys are there
  return plan;
}

} // namespace iocast
