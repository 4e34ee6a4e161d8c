// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/finished_phase.hpp"
#include "models/job.hpp"
#include "models/topology.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

namespace iocast {

/// Bytes of one job that begin to move between a client node and a server, or two servers, or at a station's disk.
struct Transfer {
  JobId job;
  uint32_t node;     ///< client node, unless it comes from a server
  uint32_t station;  ///< other end; UINT32_MAX: another client node
  uint32_t instance; ///< of that station, or that node
  double bytes;
  bool to_server;
  uint16_t way;                        ///< of the platform's
  uint32_t from_station  = UINT32_MAX; ///< where it comes from when it is no node
  uint32_t from_instance = 0;
};

/// Times the transfers of a system on the platform's network and at its disks. Transfers of any size compete for the
/// links on their way: they are flows that share these max-min fairly, their latency before. A disk is a link as well.
/// One request crosses the network and then is at the disk (when reading, the other way round); a train of requests is
/// at both at the same time, and at the station's servers and in the node's window. A small transfer is spared all that
/// where its links have had no more to carry than half of their bandwidth; it takes as long as it would alone. As long
/// as there are no flows and all small ones together come to no more than half of the narrowest link, no link is looked
/// at.
class Fabric {
public:
  Fabric(const Platform& platform, uint32_t nodes);
  /// Whether some transfer of the platform passes a link that it could wait for.
  static bool limits(const Platform& platform);
  static bool has_overheads(const Platform& platform);

  /// Seconds of a transfer, no train, that meets no other; between any two ends, where these are all alike.
  double alone(uint16_t way, double bytes) const { return ways_[way].fixed + bytes / ways_[way].pace; }
  /// Whether the transfer may pass as if it were alone, at this time; only then its bytes are counted.
  bool passes(const Transfer& transfer, double time)
  {
    const WayState& way = ways_[transfer.way];
    if (transfer.bytes >= platform_.network.never_limited || way.extra > 0)
      return false;
    const double idle = std::max(all_idle_, time) + transfer.bytes * all_pace_;
    if (looks_at_links_ || idle - time > slack_ * all_pace_)
      return passes_links(transfer, time);
    all_idle_ = idle;
    if (way.network) {
      const auto [from, to] = ends_of(transfer);
      small_bytes_[Topology::out_of(from)] += transfer.bytes;
      small_bytes_[Topology::into(to)] += transfer.bytes;
      all_bytes_ += transfer.bytes;
    }
    if (way.disk)
      count_at_disk(way, transfer.instance, transfer.bytes);
    return true;
  }
  /// Likewise, between these two ends.
  double alone(const Transfer& transfer) const;
  /// Asks for the cache line where small transfers of the node are counted.
  void prefetch(uint32_t node) const { __builtin_prefetch(&small_bytes_[Topology::out_of(node)], 1); }
  /// Begins as a flow.
  void begin(const Transfer& transfer, double now);
  /// Whether the transfer takes no time of any link.
  bool is_nothing(uint16_t way, double bytes) const { return bytes == 0 && ways_[way].extra == 0; }
  /// Nothing moves, nor will of itself.
  bool is_idle() const { return !rebuild_to_come_ && nothing_moves(); }
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
  /// What all transfers of a way have in common.
  struct WayState {
    bool network = true;
    bool disk    = false;
    bool train   = false;
    bool streams = false; ///< one request is on the network and at the disk at the same time
    bool to_server;
    const StationSpec* station;
    double demand        = 0; ///< of a train's request
    double fixed         = 0; ///< seconds of one request beside its bytes
    bool answered        = false;
    double speed         = 0; ///< bytes a second of the disk
    double weight        = 1; ///< there, of a byte, where reads and writes share its time
    double pace          = 0; ///< bytes a second of one request alone
    double wire          = 0; ///< likewise, over the network
    double extra         = 0; ///< bytes that the disk could have moved in its overhead
    uint32_t first_disk  = 0; ///< link of instance 0
    uint32_t disk_links  = 0; ///< of an instance
    uint32_t first_queue = 0; ///< of instance 0, in `queues_`; fifo only
    uint32_t first_crew  = 0; ///< link of instance 0's servers; 0: a request takes none
    uint32_t pace_link   = 0; ///< pace of bytes sent to a disk that is rebuilt; 0: it is another way
    double sent          = 1; ///< there, bytes on their way for each that the disk gets

    /// Through the network: an answer has one, too.
    double ways() const { return answered ? 2 : 1; }
  };
  enum class Stage : uint8_t { network, disk, both };
  /// A transfer under way.
  struct Move {
    JobId job         = nobody;
    uint32_t instance = 0;
    Ends ends{};
    uint32_t path = 0; ///< of those that the topology has between them
    double wire   = 0; ///< bytes a second of the narrowest link between them
    double bytes  = 0;
    double fill   = 0; ///< of a train: seconds before the flow begins
    uint16_t way  = 0;
    Stage stage   = Stage::network;
    bool first    = true;  ///< of two stages
    bool has      = false; ///< the disk for itself
    bool active   = true;  ///< it has not arrived
    bool flows    = false; ///< its stage has begun
  };
  /// Of a disk that serves one after the other.
  struct DiskQueue {
    bool busy = false;
    std::deque<uint32_t> moves;
  };
  /// Requests of one end on their way to another.
  struct Window {
    Ends ends;
    double capacity;
  };
  struct Waiting {
    double time;
    uint64_t number;
    uint32_t move;
    bool operator<(const Waiting& other) const
    {
      return time > other.time || (time == other.time && number > other.number);
    }
  };
  Ends ends_of(const Transfer& transfer) const
  {
    const uint32_t near = transfer.from_station == UINT32_MAX
                              ? transfer.node
                              : first_server_[transfer.from_station] + transfer.from_instance;
    const uint32_t server =
        transfer.station == UINT32_MAX ? transfer.instance : first_server_[transfer.station] + transfer.instance;
    return transfer.to_server ? Ends{near, server} : Ends{server, near};
  }
  /// A link that fails, with both its directions.
  struct FailingLink {
    const FailureSpec* spec;
    std::vector<FlowNetwork::Link> links;
    double next;
    bool slow    = false;
    uint16_t way = 0; ///< of the bytes that rebuild it

    bool will_be_rebuilt() const { return spec->rebuild > 0 && (slow ? spec->every > 0 : next < never); }
  };
  static constexpr double never = std::numeric_limits<double>::infinity();
  bool nothing_moves() const { return waiting_.empty() && (!flows_ || flows_->empty()); }
  void add_failing_links();
  void add_rebuild(FailingLink& failing);
  void begin_rebuild(const FailingLink& failing, double now);
  void reroute(double now);
  uint32_t new_move();
  FlowNetwork::Link first_pace() const
  {
    return network_links_ + static_cast<FlowNetwork::Link>(disks_.size() + crews_.size());
  }
  FlowNetwork::Link first_window() const { return first_pace() + static_cast<FlowNetwork::Link>(paces_.size()); }
  bool is_gone(FlowNetwork::Link link) const;
  uint32_t way_around(const Ends& ends, uint32_t way) const;
  /// Those that begin and end up to then.
  void fail_links(double now);
  bool passes_links(const Transfer& transfer, double time);
  void use(const Topology::Route& route, double bytes, double time);
  void use_all(const Move& move, double time);
  void add_ways();
  void add_disk(WayState& state);
  void count_at_disk(const WayState& way, uint32_t instance, double bytes)
  {
    const FlowNetwork::Link first = way.first_disk + instance * way.disk_links;
    if (way.disk_links == 1) {
      count(first, bytes, way.weight);
    } else {
      count(first + (way.to_server ? 1 : 0), bytes, 1);
      count(first + 2, bytes, 1);
    }
  }
  /// A small transfer at a link behind those of the network.
  void count(FlowNetwork::Link link, double bytes, double weight)
  {
    small_bytes_[link] += bytes * weight;
    passed_[link - network_links_] += bytes;
  }
  void pass_disk(const WayState& way, uint32_t instance, double weight, Topology::Route& route) const;
  Topology::Route route_of(const Move& move);
  uint64_t key_of(const Move& move);
  double narrowest(const Topology::Route& route) const;
  void plan_train(Move& move);
  FlowNetwork::Link window_of(const Move& move);
  double whole(const Move& move, double bytes) const;
  double latency(const Move& move) const;
  void begin_stage(uint32_t move, double now);
  void start(uint32_t move, double now);
  void start_flow(uint32_t move, double bytes, double now);
  double bytes_of_stage(const Move& move) const;
  double bytes_at(const Move& move, FlowNetwork::Link link) const;
  bool next_stage(Move& move) const;
  bool goes_on(uint32_t move, double now);
  double capacity_of(FlowNetwork::Link link) const;
  double capacity_now(FlowNetwork::Link link) const;
  void add_up_lost(double now);
  void make_flows();
  std::string name_of(FlowNetwork::Link link) const;
  std::string name_of_device(FlowNetwork::Link link) const;
  std::vector<double> moved(double now);

  const Platform& platform_;
  uint32_t nodes_;
  std::vector<uint32_t> first_server_; ///< by station: end of its first instance; UINT32_MAX: it is at no end
  std::unique_ptr<Topology> topology_;
  FlowNetwork::Link network_links_ = 0;
  std::vector<FailingLink> failing_;
  double next_failure_ = std::numeric_limits<double>::infinity(); ///< or end of one
  std::vector<double> left_; ///< share of its capacity by link of the network; empty: none ever fails
  std::vector<double> lost_; ///< since use_since: seconds of its whole capacity that failures took, by link
  double lost_until_ = 0;    ///< when lost_ was added up last
  std::vector<WayState> ways_;
  std::vector<double> disks_;     ///< capacity of each disk's links, which follow those of the network
  std::vector<DiskQueue> queues_; ///< of disks that serve one after the other
  std::vector<double> crews_;     ///< capacity of the links of stations' servers, which follow
  std::vector<double> paces_;     ///< bytes a second of each that rebuilds a disk, whose links follow
  bool rebuild_to_come_ = false;
  std::vector<Window> windows_; ///< of the links that come last
  std::unordered_map<uint64_t, FlowNetwork::Link> window_of_;
  std::unordered_map<uint64_t, uint16_t> class_of_; ///< by way and path, of keys
  std::vector<double> passed_;                      ///< bytes by link behind those of the network, in this phase
  std::vector<Move> moves_;
  std::vector<uint32_t> free_moves_;
  std::vector<double> small_bytes_; ///< by link: of small transfers that passed, in this phase
  std::vector<double> idle_; ///< by link: when all that it has to carry would be done, were it half as fast; empty: no
                             ///< link has been looked at
  std::optional<FlowNetwork> flows_; ///< made when the first one begins
  std::priority_queue<Waiting> waiting_;
  std::vector<FlowNetwork::Ended> ended_;
  std::vector<double> moved_before_; ///< by link, by flows until the last call of use_since()
  double slack_          = 0;        ///< bytes beyond half of a link that small transfers may come to
  double all_pace_       = 0;        ///< seconds a byte of half of the narrowest link
  double all_bytes_      = 0;        ///< of small transfers, in this phase, as long as no link was looked at
  double all_idle_       = 0;        ///< Small::idle of that link, if all small transfers passed it
  bool looks_at_links_   = true;     ///< before a small transfer passes: flows are on their way, or may have been
  uint64_t number_       = 0;
  double begun_bytes_    = 0; ///< of flows
  double ended_bytes_    = 0;
  uint64_t short_trains_ = 0;
};

} // namespace iocast
