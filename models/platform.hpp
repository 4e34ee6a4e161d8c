// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/law.hpp"
#include "models/serves.hpp"
#include "workload/op.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace iocast {

enum class Discipline : uint8_t { fcfs, ps, timeslice };
/// Whom one instance of a station, limit or lock belongs to.
enum class Per : uint8_t { system, node, dataset, object, rank };
/// What chooses the instance of a station.
enum class Spread : uint8_t { dataset, object, stripe, round_robin };
/// How often a visit needs its demand.
enum class Times : uint8_t { once, entry, block };
/// What a flush waits for: all that is in an instance of a buffer, or what an object has in it; in all instances; in
/// all others. Where a cache forgets likewise.
enum class Flush : uint8_t { all, object, everywhere, elsewhere };

/// What pieces of a buffer do at stations; no operation of a workload.
constexpr OpKind draining   = static_cast<OpKind>(op_count);
constexpr size_t work_count = op_count + 1;
/// Where the work of others stands in the order of a station's classes, behind all that has a number of its own.
constexpr size_t work_of_others = work_count;

/// The device that each instance of a station has for bytes: a disk, an array of them, flash.
struct DiskSpec {
  double read     = 0; ///< bytes a second, when nobody writes; 0: the station has no device
  double write    = 0; ///< likewise, when nobody reads
  double together = 0; ///< bytes a second of reads and writes at the same time; 0: they share the device's time
  double overhead = 0; ///< seconds of an access or request beside its bytes
  std::vector<double> slowdown{}; ///< share of its speed that is left with 1, 2, ... accesses at a time
  bool fifo = false;              ///< one access after the other; else all at a time share it

  bool exists() const { return read > 0; }
  double speed(bool writes) const { return writes ? write : read; }
};

/// How a client cuts what it moves to or from one instance of a station.
struct RpcSpec {
  uint64_t size      = 0; ///< bytes of a request; 0: it is not cut
  uint32_t in_flight = 1; ///< requests on their way at a time, of a node to an instance
};

/// What each instance of a station keeps for others: copies of objects, or shards of their stripes.
struct RedundancySpec {
  uint32_t data   = 1; ///< shards that have the bytes of a stripe; 1: each has a copy
  uint32_t shards = 1; ///< all of them, each at an instance of its own, from the object's one on; 1: nothing is kept
  uint64_t unit   = 0; ///< bytes of a stripe at one of `data` shards

  bool exists() const { return shards > 1; }
  bool is_coded() const { return data > 1; }
  /// Bytes that are read and written together.
  uint64_t stripe() const { return is_coded() ? data * unit : 1; }
};

struct StationSpec {
  std::string name;
  Per per                = Per::system;
  uint32_t count         = 1; ///< instances, when per system
  Spread spread          = Spread::dataset;
  uint64_t stripe_size   = 1 << 20; ///< bytes, spread by stripe only: an object's bytes go in turn to ...
  uint32_t stripe_count  = 0;       ///< ... over this many instances, from ...
  bool allocated_in_turn = false;   ///< ... one after those of the object before it; else one that its name chooses
  bool by_stripe         = false;   ///< each stripe lies on one that its number and the object's name choose
  std::vector<double> free{};       ///< ... by these shares of all free space, summed up to each instance; else evenly
  uint32_t servers      = 1;
  double rating         = 1; ///< how many times as fast as the demands say, memory of other sockets included
  Discipline discipline = Discipline::fcfs;
  double quantum        = 0;     ///< seconds, timeslice only
  bool wakeup_preempts  = true;  ///< timeslice only: a job that comes from elsewhere takes a running job's server
  bool newest_first     = false; ///< fcfs only: of those who wait, whom a server takes
  double contention     = 0;
  double coherency      = 0;
  std::vector<double> speeds{}; ///< measured, of each of 1, 2, ... busy servers; empty: by the two above
  double crowding = 0;          ///< service is 1 + crowding ln(1 + waiting / servers) times as long
  std::vector<std::vector<std::string>>
      priority{}; ///< fcfs only: classes of work by name, the first one first; empty: all are one
  std::array<uint8_t, work_of_others + 1> class_of{}; ///< its place there, by kind of work
  DiskSpec disk{};
  RpcSpec rpc{};
  RedundancySpec redundancy{};

  /// Speed of each of n > 0 busy servers: as measured, or by Gunther's universal scalability law as a rate inside the
  /// queue, 1 for n = 1.
  double speed(uint32_t n) const
  {
    if (!speeds.empty())
      return speeds[std::min<size_t>(n, speeds.size()) - 1];
    return 1 / (1 + contention * (n - 1.0) + coherency * n * (n - 1.0));
  }
};

struct MechanismKind;
/// A part of a platform file whose keys are declared.
struct Named {
  std::string name;
  const MechanismKind* kind = nullptr;
};

struct LimitSpec : Named {
  uint32_t slots  = 1;
  Per per         = Per::node;
  int32_t station = -1; ///< not negative: slots of their own for each instance of this station
  double barging  = 0;  ///< share of the slots given up that go to the last comer, not to who waits longest
};

struct LockSpec : Named {
  Per per = Per::dataset;
  LawPointer hand_over{}; ///< how long one takes from the node that keeps it to another; none: nobody keeps it
  uint64_t extent = 0;    ///< bytes of a unit of the ranges of objects that nodes keep; 0: whole objects
  std::optional<uint64_t>
      grow{};           ///< largest growth of a granted range in bytes, on each side; none: as far as units are free
  int32_t station = -1; ///< not negative: each instance of this station has the locks of the stripes that lie there
  double hot      = 0;  ///< seconds since its last use in which a lock stays where it is
  LawPointer message{}; ///< time of another node that wants it then
};

struct StallSpec : Named {
  uint32_t station  = 0;
  double every      = 0;
  double length     = 0; ///< mean, seconds
  double sigma      = 0; ///< of the logarithm of the length
  double per_change = 0; ///< seconds that the mean grows for each operation since the last window began ...
  double absorbed   = 0; ///< ... beyond this number
  std::array<bool, work_count> operations{};
};

/// An instance of a station stops serving, and loses what it has in service and in its queue. Or a link of the network,
/// or an instance's disk, has a part of its bandwidth for a time.
struct FailureSpec : Named {
  uint32_t station  = UINT32_MAX; ///< of a link or a disk none
  uint32_t instance = 0;
  double at         = 0;        ///< seconds of simulated time
  double every      = 0;        ///< from one to the next; 0: there is but one
  double length     = 0;        ///< mean, seconds until it serves again
  double sigma      = 0;        ///< of the logarithm of the length
  std::optional<uint32_t> to{}; ///< the instance that serves its requests while it is away ...
  double takeover = 0;          ///< ... seconds after the failure
  double timeout  = 0;          ///< after which a client notices that its request is lost, seconds
  std::string link{};           ///< as a run names it, with its direction or without: both then
  bool disk = false;            ///< it is that of a disk
  std::string where{};          ///< file and line of the link, for messages
  double share   = 0;           ///< that is left of it
  bool reroute   = false;       ///< transfers go another way meanwhile
  double rebuild = 0;           ///< bytes that other instances send the disk's, over `length` if nothing holds them up
};

struct BackgroundSpec : Named {
  uint32_t station = 0;
  double rate      = 0; ///< a second, over all instances of the station
  double share     = 0; ///< of all its servers' time, of which the rate follows
  LawPointer demand;
};

/// Where the instances of a station are in a network.
struct ServerPlace {
  uint32_t station = 0;
  uint32_t each    = 0; ///< instances at one switch; 0: as many as client nodes
  bool among_nodes = false;
  double bandwidth = 0; ///< bytes a second of the link of an instance; 0: server_bandwidth
};

class TopologyPlan;
struct NetworkEnds;

struct NetworkSpec {
  double latency            = 0;
  double hop_latency        = 0; ///< of each link between switches
  double node_bandwidth     = 0; ///< bytes a second; 0: unlimited
  double server_bandwidth   = 0;
  double backbone_bandwidth = 0;
  double never_limited      = 1 << 14;      ///< bytes; smaller transfers are flows only where links are busy
  std::shared_ptr<const TopologyPlan> plan; ///< none: a star
  std::vector<ServerPlace> places;          ///< of stations that have a place or a bandwidth of their own
  int32_t routers = -1; ///< not negative: bytes between nodes and servers pass an instance of this station

  /// Whether any two ends are as far apart, and limited by the same bandwidths.
  bool is_uniform() const { return !plan && places.empty() && routers < 0; }
  /// Of the link of each server.
  std::vector<double> bandwidths(const NetworkEnds& ends) const;
};

/// One instruction of a route. Routes are flattened: nested steps of a limit become seize ... release.
struct Step {
  enum class Kind : uint8_t {
    delay,
    visit,
    seize,
    release,
    transfer,
    train,  ///< of requests; an access of one request takes the visit and the transfer behind it instead
    shards, ///< of redundant bytes move between the instance that has the object and the others, and are at their disks
    enter,
    flush,
    use,
    leave,
    look,
    recalled,
    evicted,
    jump,
    end_part,
    end,
    drained
  };
  Kind kind     = Kind::end;
  uint16_t jump = 1;     ///< distance in steps: of a jump, of a look at a cache that misses (after a hit comes the next
                         ///< step), of a lock that nobody had to give up, and of the end of a part before content
  uint32_t target   = 0; ///< number of the station, limit, buffer, mechanism or cache
  int32_t lock      = -1;
  double lock_share = 0;
  bool lock_shared  = false; ///< for reading: others that read keep it as well
  double bandwidth  = 0;     ///< bytes a second that a visit also has to move; 0: none
  /// Parts of a visit or transfer, each at an instance of its own at the same time; it ends with the last of them.
  uint32_t stripes                  = 1;
  static constexpr uint32_t spanned = 0; ///< as many as an access has bytes at
  bool to_server                    = true;
  uint16_t way                      = 0; ///< of a transfer or train: its place in Platform::ways
  int32_t shard_way = -1; ///< of shards, and of a train with which they move: likewise, that between two instances ...
  uint16_t own_way  = 0;  ///< ... and that of the shard which needs no network
  bool mends        = false;       ///< of shards: those of stripes that are written in part and read whole before
  bool forgets      = false;       ///< a look that takes out what the cache has of the object
  bool evicts       = false;       ///< a look after which steps follow if something else was evicted
  Times times       = Times::once; ///< of a visit's demand: for each entry listed, for each block accessed
  Flush flush       = Flush::all;
  LawPointer law;
  double constant = -1; ///< the law's value when it has but one
};

/// How a collective access is made: two-phase I/O.
struct CollectiveSpec {
  uint32_t aggregators = 0; ///< ranks of a node that access for all; 0: each rank makes its own access
  uint64_t unit        = 1; ///< bytes of a file, which aggregators have by turns
  uint32_t servers     = 0; ///< that have such units by turns, too: a divisor of their number aggregates; 0: any number
  uint16_t way         = 0; ///< place in Platform::ways of their exchange
};

/// What bytes pass that move to or from an instance of a station.
struct Way {
  uint32_t station = 0;
  bool to_server   = true;
  bool network     = true; ///< between two ends; else they are at the station already
  bool train       = false;
  bool device      = true;  ///< they pass the station's disk
  bool answered    = false; ///< it is of requests, which wait for an answer; else bytes stream
  double demand    = 0;     ///< of an answered one: mean seconds for which a request has one of the station's servers

  bool operator==(const Way&) const = default;
};

struct Route {
  bool served = false; ///< false: the platform has no answer to this operation
  std::string where;   ///< file and line, for messages
  std::vector<Step> steps;
};

/// A mechanism of models/mechanisms/, whose file derives from this what it has besides.
struct MechanismSpec : Named {
  Per per          = Per::node;
  int32_t station  = -1;             ///< not negative: one for each instance of this station
  uint32_t at_once = 1;              ///< pieces of an instance; 0: as many as there are clients
  std::vector<Step> steps;           ///< of a piece; ends with Kind::drained; empty: it has no pieces
  nlohmann::ordered_json steps_json; ///< as read, with laws resolved

  virtual ~MechanismSpec() = default;
  bool of_nodes() const { return station < 0 && per == Per::node; }
  bool of_ranks() const { return station < 0 && per == Per::rank; }
};

/// Memory that takes writes at once and empties in the background, in pieces that go through steps of their own.
struct BufferSpec : MechanismSpec {
  uint64_t capacity = 0;     ///< bytes, of an instance
  uint64_t unit     = 0;     ///< bytes up to which adjacent writes of an object drain together; 0: each write by itself
  double linger     = 0;     ///< seconds that less than a unit waits for more
  uint64_t above    = 0;     ///< bytes that stay until somebody waits for room or for a flush
  uint64_t resume   = 0;     ///< writes that had to wait enter again when no more bytes than these are held
  bool stage_out    = false; ///< all of it drains after each phase, before the next one begins
  uint64_t stage_in = 0;     ///< bytes that come into an instance before the first phase, and stay there
  std::vector<Step> stage_in_steps;     ///< of a piece of them; ends with Kind::drained
  nlohmann::ordered_json stage_in_json; ///< as read

  /// Bytes of writes that an instance has room for.
  uint64_t room() const { return capacity - stage_in; }
};

/// Memory that keeps what was used last, and so tells what is a hit. Its steps are for pieces fetched ahead.
struct CacheSpec : MechanismSpec {
  uint64_t capacity        = 0;     ///< of an instance: bytes, or objects
  bool in_objects          = false; ///< which of the two
  uint64_t page            = 0;     ///< bytes that come and go together; 0: objects do
  uint64_t ahead           = 0;     ///< most bytes that are fetched beyond a reader who reads on; 0: none are
  uint64_t unit            = 0;     ///< bytes of a fetched piece, a multiple of pages
  bool strides             = false; ///< who reads pieces of one size at equal distances is read ahead for as well
  double valid             = 0;     ///< seconds for which an entry may be used since it came in; 0: without end
  double valid_at_most     = 0;     ///< up to which these double whenever they are over and the entry is used again
  bool forgotten_by_others = false; ///< some route takes out what other nodes have
  bool calls_back          = false; ///< and has steps for where they had it
};

/// Nodes that are slower than the others at their own stations, or at one of them.
struct SlowNodes {
  double share    = 0; ///< of the nodes, evenly spread among them
  double factor   = 1;
  int32_t station = -1; ///< -1: all of their own

  /// By how much this node is slower at this station.
  double at(uint32_t node, uint32_t where) const
  {
    if (share == 0 || (station >= 0 && static_cast<uint32_t>(station) != where))
      return 1;
    return std::floor((node + 1) * share) > std::floor(node * share) ? factor : 1;
  }
};

/// A storage system as a queueing network; docs/platforms.md describes the file it is read from.
struct Platform {
  std::string name;
  std::string file;
  std::vector<std::pair<std::string, std::string>>
      read; ///< `file` and those that it extends, one after the other, each with its text
  std::string description;
  std::string source;
  double speed_sigma     = 0;
  double think_overshoot = 0;
  double wake_slowdown = 1; ///< factor on a thinking client's demands at stations of its node: cold caches, idle cores
  SlowNodes slow;
  CollectiveSpec collective;
  std::vector<StationSpec> stations;
  std::vector<LimitSpec> limits;
  std::vector<LockSpec> locks;
  std::vector<StallSpec> stalls;
  std::vector<FailureSpec> failures;
  std::vector<FailureSpec> link_failures; ///< those of links and disks
  std::vector<BackgroundSpec> background;
  std::vector<CacheSpec> caches;
  std::vector<BufferSpec> buffers;
  std::vector<std::shared_ptr<const MechanismSpec>> mechanisms; ///< by section
  std::vector<std::shared_ptr<const Named>> parts;              ///< all of sections that are declared, as read
  NetworkSpec network;
  ServesSpec serves;
  std::vector<Way> ways;
  std::array<Route, op_count> routes;    ///< routes[OpKind::phase] is what waking up from a think time costs
  nlohmann::ordered_json routes_json;    ///< as read, with laws resolved
  std::vector<LawPointer> quantile_laws; ///< laws by the numbers that the steps' JSON has in place of quantiles, which
                                         ///< only to_json(true) computes

  /// Calls do_it(step, buffer that it drains or fills, or nullptr) for each step of routes, drains, stages, fetches
  /// and pieces of mechanisms.
  template <class DoIt> void for_each_step(DoIt do_it) const
  {
    for (const auto& route : routes)
      for (const auto& step : route.steps)
        do_it(step, static_cast<const BufferSpec*>(nullptr));
    for (const auto& buffer : buffers)
      for (const auto* steps : {&buffer.steps, &buffer.stage_in_steps})
        for (const auto& step : *steps)
          do_it(step, &buffer);
    for (const auto& mechanism : mechanisms)
      for (const auto& step : mechanism->steps)
        do_it(step, static_cast<const BufferSpec*>(nullptr));
    for (const auto& cache : caches)
      for (const auto& step : cache.steps)
        do_it(step, static_cast<const BufferSpec*>(nullptr));
  }

  /// Steps as read, with the quantiles of their laws or without them.
  nlohmann::ordered_json settled(nlohmann::ordered_json steps, bool quantiles) const;
  /// The resolved platform of docs/platforms.md.
  nlohmann::ordered_json to_json(bool quantiles) const;
};

/// Opens a platform of platforms/ by name, or a YAML file, with all that it extends.
/// @throws InputError: nothing of that name, unknown keys, units or references (with file, line and nearest match),
/// numbers out of range
Platform open_platform(const std::string& name_or_file, std::optional<uint32_t> stripe_count = {});

struct PlatformEntry {
  std::string name;
  std::string description;
  std::string extends;
  std::string source;
  std::string file;
};
std::vector<PlatformEntry> platforms();

/// What a platform is made of, for `describe`: stations, locks, limits, stalls, ...
struct PrimitiveEntry {
  std::string name;
  std::string summary;
  std::vector<std::pair<std::string, std::string>> keys; ///< key, meaning
  const MechanismKind* mechanism = nullptr;              ///< that declares more of its keys
};
const std::vector<PrimitiveEntry>& primitives();

} // namespace iocast
