// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/finished_phase.hpp"
#include "models/job.hpp"
#include "models/topology.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

namespace iocast {

/// Bytes of one job that begin to move between a client node and a server, or two servers.
struct Transfer {
  JobId job;
  uint32_t node;     ///< client node, unless it comes from a server
  uint32_t station;  ///< other end
  uint32_t instance; ///< of that station
  double bytes;
  bool to_server;
  uint32_t from_station  = UINT32_MAX; ///< where it comes from when it is no node
  uint32_t from_instance = 0;
};

/// Times the transfers of a system on the platform's network. Transfers of any size compete for the links on their way:
/// they are flows that share these max-min fairly, their latency before. A small one is spared that where its links
/// have had no more to carry than half of their bandwidth; it takes as long as it would alone. As long as there are no
/// flows and all small ones together come to no more than half of the narrowest link, no link is looked at.
class Fabric {
public:
  Fabric(const Platform& platform, uint32_t nodes);
  /// Whether some transfer of the platform passes a link that it could wait for.
  static bool limits(const Platform& platform);

  /// Whether the transfer may pass as if it were alone, at this time; only then its bytes are counted.
  bool passes(const Transfer& transfer, double time)
  {
    if (transfer.bytes >= platform_.network.never_limited)
      return false;
    const double idle = std::max(all_idle_, time) + transfer.bytes * all_pace_;
    if (looks_at_links_ || idle - time > slack_ * all_pace_)
      return passes_links(transfer, time);
    all_idle_             = idle;
    const auto [from, to] = ends_of(transfer);
    small_bytes_[Topology::out_of(from)] += transfer.bytes;
    small_bytes_[Topology::into(to)] += transfer.bytes;
    all_bytes_ += transfer.bytes;
    return true;
  }
  /// Seconds that the transfer takes when no other is on its way.
  double alone(const Transfer& transfer) const;
  /// Asks for the cache line where small transfers of the node are counted.
  void prefetch(uint32_t node) const { __builtin_prefetch(&small_bytes_[Topology::out_of(node)], 1); }
  /// Begins as a flow.
  void begin(const Transfer& transfer, double now);
  bool is_idle() const { return waiting_.empty() && (!flows_ || flows_->empty()); }
  /// When a flow begins after its latency, or one ends; infinity when there is none.
  double next_time();
  /// Appends the jobs whose transfers end up to then.
  void go_on(double now, std::vector<JobId>& arrived);

  /// The busiest links since the last call, and their sums.
  NetworkUse use_since(double start, double now);
  /// @throws RunError unless all that left one end arrived at another, or is on its way
  void check(double now);

private:
  struct Ends {
    uint32_t from;
    uint32_t to;
  };
  struct Waiting {
    double time;
    uint64_t number;
    Ends ends;
    uint32_t way;
    JobId job;
    double bytes;
    bool operator<(const Waiting& other) const
    {
      return time > other.time || (time == other.time && number > other.number);
    }
  };
  Ends ends_of(const Transfer& transfer) const
  {
    const uint32_t near   = transfer.from_station == UINT32_MAX
                                ? transfer.node
                                : first_server_[transfer.from_station] + transfer.from_instance;
    const uint32_t server = first_server_[transfer.station] + transfer.instance;
    return transfer.to_server ? Ends{near, server} : Ends{server, near};
  }
  bool passes_links(const Transfer& transfer, double time);
  void use(const Topology::Route& route, double bytes, double time);
  void start(const Waiting& one);
  void make_flows();
  std::vector<double> moved(double now);

  const Platform& platform_;
  std::vector<uint32_t> first_server_; ///< by station: end of its first instance; UINT32_MAX: it is at no end
  std::unique_ptr<Topology> topology_;
  std::vector<double> small_bytes_; ///< by link: of small transfers that passed, in this phase
  std::vector<double> idle_; ///< by link: when all that it has to carry would be done, were it half as fast; empty: no
                             ///< link has been looked at
  std::optional<FlowNetwork> flows_; ///< made when the first one begins
  std::priority_queue<Waiting> waiting_;
  std::vector<FlowNetwork::Ended> ended_;
  std::vector<double> moved_before_; ///< by link, by flows until the last call of use_since()
  double slack_        = 0;          ///< bytes beyond half of a link that small transfers may come to
  double all_pace_     = 0;          ///< seconds a byte of half of the narrowest link
  double all_bytes_    = 0;          ///< of small transfers, in this phase, as long as no link was looked at
  double all_idle_     = 0;          ///< Small::idle of that link, if all small transfers passed it
  bool looks_at_links_ = true;       ///< before a small transfer passes: flows are on their way, or may have been
  uint64_t number_     = 0;
  double begun_bytes_  = 0; ///< of flows
  double ended_bytes_  = 0;
};

} // namespace iocast
