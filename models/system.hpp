// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/buffer.hpp"
#include "models/cache.hpp"
#include "models/calendar.hpp"
#include "models/engine.hpp"
#include "models/extent.hpp"
#include "models/fabric.hpp"
#include "models/failure.hpp"
#include "models/finished_phase.hpp"
#include "models/huge.hpp"
#include "models/job.hpp"
#include "models/limit.hpp"
#include "models/lock.hpp"
#include "models/platform.hpp"
#include "models/stall.hpp"
#include "models/station.hpp"
#include "models/stripes.hpp"
#include "profile/op_trace.hpp"
#include "profile/precision.hpp"
#include "profile/recorder.hpp"
#include "workload/op_stream.hpp"
#include "workload/pattern.hpp"
#include "workload/steps.hpp"

#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <unordered_map>
#include <vector>

namespace iocast {

/// Ranks that pull operations from a pattern, and a platform that serves them: a closed queueing network on one event
/// calendar, with the flows of its transfers beside. It knows no SimGrid; sim/ runs it as a SimGrid model. Its parts
/// are the files of models/system/.
class System {
public:
  struct Options {
    uint64_t seed        = 0;
    bool hands_out_flows = false;        ///< transfers that are flows are for the caller to time: new_transfers()
    std::string op_stream_directory;     ///< empty: none
    bool time_limits          = true;    ///< phases end after Phase::most_seconds
    OpTrace* trace            = nullptr; ///< keeps what happens
    PrecisionWatch* precision = nullptr; ///< of the phases of this name; when it is content, the simulation is over
    std::string precision_phase{};
  };

  /// Keeps references to `platform` and `pattern`. @throws InputError when the pattern asks for an operation that the
  /// platform doesn't serve
  System(const Platform& platform, const Pattern& pattern, const Placement& placement, const Options& options,
         std::function<void(FinishedPhase)> on_phase);

  /// Every rank takes its first operation, at time 0.
  void start();
  /// Works off all events up to and including time `horizon`, but at most `most_events`; stops early, with all events
  /// of that time done, when there are transfers to hand out, and when all ranks have ended.
  /// @return false when it stopped only because of `most_events`
  bool run(double horizon = std::numeric_limits<double>::infinity(), uint64_t most_events = UINT64_MAX);
  bool finished() const { return finished_; }
  double now() const { return now_; }

  /// Transfers that begin now, with Options::hands_out_flows; the caller takes them.
  std::vector<Transfer>& new_transfers() { return new_transfers_; }
  /// The transfer of this job ended at time `now`, which is not before now().
  void transfer_done(JobId job, double now);

  uint64_t requests() const { return requests_; }
  uint64_t events() const { return events_; }

private:
  friend class Engine;
  enum class EventKind : uint32_t {
    wake,
    resume,
    served,
    slice_over,
    shared_departure,
    stall_over,
    background,
    lingered,
    failure,
    staged,
    lock_free
  };
  static_assert(static_cast<uint32_t>(EventKind::lock_free) < Calendar::kinds);

  struct alignas(32) Client {
    Cursor cursor;
    Op op;
    double since        = 0; ///< start of its operation; when it has none, its last answer in this phase
    int64_t part_end_ns = 0; ///< since the phase's start: the end of its operation's last part, or its start
  };
  static_assert(sizeof(Client) == 96);

  /// Ranks that do together what is shared or collective, in one phase. Nobody may be left alone in it: once one of
  /// them has been cut, none begins such an operation.
  struct Group {
    uint32_t size   = 0;
    uint32_t ended  = 0;                           ///< have no more operations
    bool stopped    = false;                       ///< one of them was cut
    bool cuts_after = false;                       ///< what they are doing: it began after the phase's time was over
    size_t begun    = 0;                           ///< ranks that do the present operation
    std::vector<std::pair<JobId, Cursor>> waiting; ///< to begin, with the cursor as it was before that operation
    std::vector<JobId> done;                       ///< wait for the others to end
  };
  /// Ranks that feed steps of common work.
  struct Steps {
    struct Waiting {
      uint64_t step;
      JobId id;
      double since;
    };
    uint32_t size = 0;
    StepTimes times{};
    std::deque<uint32_t> missing{}; ///< by step, from the first that isn't known: ranks that read for it
    std::vector<Waiting> waiting{};
  };
  /// What a rank has open, kept only when phases have time limits.
  struct OpenObjects {
    std::vector<Op> closes; ///< in the order of opening
    bool cut = false;       ///< in this phase
  };

  /// When a rank means to start its next operation, and what it does until then.
  struct Intent {
    enum class Waits : uint8_t {
      no,
      to_start, ///< its operation
      to_go_on  ///< with whatever comes next
    };
    int64_t ns  = 0;     ///< since the start of the phase
    bool first  = true;  ///< there was no operation yet in this phase
    bool counts = false; ///< there is such a moment for the operation
    Waits waits = Waits::no;
    Cursor before; ///< as it was before the operation
  };

  // setup.cpp; what make_...() others make is in their parts' files
  void make_stations();
  void find_where_nobody_waits();
  void make_clients(bool thinks);

  // events.cpp
  void start_clients();
  void handle(const Calendar::Event& event);
  void push(double time, EventKind kind, uint32_t who) { calendar_.push(time, static_cast<uint32_t>(kind), who); }
  bool is_stale(const Calendar::Event& event)
  {
    return !exposed_.empty() && !exposed_[event.who].takes(event.time, event.kind);
  }
  static constexpr uint32_t few_clients = 4000;
  void look_ahead() const;
  void prefetch(JobId id) const;
  const Buffer* buffer_before(const Calendar::Event& event) const;

  // operations.cpp: an operation's life
  bool pull_op(JobId id);
  bool begin_op(JobId id, const Cursor& before);
  bool keep_to_plan(JobId id, const Cursor& before);
  bool start_pulled_op(JobId id, const Cursor& before);
  void start_op(JobId id);
  void wake(JobId id);
  bool awake(JobId id);
  void think(JobId id, double seconds);
  void end_part(JobId id, double end);
  void finish_op(JobId id);
  void trace(JobId id, double start, double end) const;
  /// The nearest; not negative. No std::llround(), which is a call.
  // NOLINTNEXTLINE(bugprone-incorrect-roundings)
  static int64_t to_ns(double seconds) { return static_cast<int64_t>(seconds * 1e9 + 0.5); }

  // routes.cpp
  void advance(JobId id);
  Limit& limit_for(JobId id, const Step& step);
  /// Whether the last comer gets the slot that this job gives up, before those who wait longer.
  bool barges(JobId id, const LimitSpec& limit) { return limit.barging > 0 && uniform(id) < limit.barging; }

  // phases.cpp
  void reach_barrier();
  void pass_barrier();
  void begin_phase();
  void end_phase();
  std::vector<StationTimes> times_of_stations();
  void check_at_end();
  void check_nothing_is_held() const;
  void check_stations() const;

  // groups.cpp: what ranks do together, and time limits
  void make_groups();
  bool join(JobId id, const Cursor& before);
  void gather(Group& group);
  bool is_two_phase(const std::vector<JobId>& ranks) const;
  struct ExchangingNode;
  std::vector<ExchangingNode> aggregate(const std::vector<JobId>& ranks);
  void exchange(const std::vector<JobId>& ranks, const std::vector<ExchangingNode>& nodes);
  bool end_exchange(JobId part);
  void begun(JobId id);
  bool part(JobId id);
  bool cut(JobId id);
  bool may_be_cut(JobId id) const { return !together(id) || groups_[pattern_.group_of(id)].cuts_after; }
  bool was_cut(JobId id) const { return !open_.empty() && open_[id].cut; }
  bool together(JobId id) const { return clients_[id].op.is_joint() && groups_[pattern_.group_of(id)].size > 1; }

  // steps.cpp: steps of common work
  void make_steps();
  bool pace(JobId id);
  void await_step(JobId id, double begin, double since);
  double begin_of(const Steps& steps, uint64_t step) const
  {
    return phase_start_ + static_cast<double>(steps.times.begin_ns(step)) * 1e-9;
  }

  // jobs.cpp
  JobId new_job();
  bool is_client(JobId id) const { return id < placement_.ranks; }
  bool has_op(JobId id) const { return is_client(id) || jobs_[id].piece; }
  /// What a client does, or what a piece of a buffer moves.
  const Op& op_of(JobId id) const { return is_client(id) ? clients_[id].op : pieces_[id - placement_.ranks].bytes; }
  const Step& step_of(JobId id) const;
  VisitSums& sums_of(JobId id) { return sums_[step_of(id).target][static_cast<size_t>(jobs_[id].kind)]; }
  double draw(JobId id, const Step& step);
  double draw(JobId id, const Law& law);
  double uniform(JobId id);
  /// Random words of the draws of an operation: 32 bits distinguish operations; below and above them are 8 bits each of
  /// the draws.
  static uint64_t draw_counter(uint64_t number, uint16_t draws)
  {
    return uint64_t{draws} >> 8 << 40 | (number & UINT32_MAX) << 8 | (draws & 0xFFU);
  }

  // visits.cpp: a visit to a station
  double work_of(JobId id, const Step& step);
  void begin_visit(JobId id, const Step& step);
  void arrive(JobId id, const Step& step, double work);
  void enter(JobId id, const Step& step);
  double end_of_stall(const Job& job, uint32_t station);
  void begin_service(JobId id);
  void serve(JobId id);
  void served(JobId id);
  void end_visit(JobId id);
  void await(double time, EventKind kind, JobId id);
  void schedule_departure(Station& station, uint32_t instance);
  void shared_departure(uint32_t instance_number);
  /// A moment of a visit that nobody waits for may lie in the phase before; what was before this phase is not this
  /// one's.
  double in_phase(const Job& job, double moment) const { return job.beside ? std::max(moment, phase_start_) : moment; }
  /// What the job did since `since` was this part of its visit, or a share of it was. Of a visit that nobody waits for,
  /// the total goes with it: it may end in a later phase, and no phase has more in parts than in all.
  template <double VisitSums::*part> void book(JobId id, double share = 1)
  {
    Job& job        = jobs_[id];
    VisitSums& sums = sums_of(id);
    if (job.beside) [[unlikely]] {
      sums.total += now_ - in_phase(job, job.requested);
      job.requested = now_;
    }
    sums.*part += (now_ - in_phase(job, job.since)) * share;
    job.since = now_;
  }
  void visit_at_once(JobId id, Station& station, double begin, double work);
  void visit_ahead(Station& station, double begin, double work);
  void stall_over(JobId id);

  // timeslice.cpp: a visit to a timeslice station
  void enter_timeslice(JobId id);
  uint32_t free_core(const Station& station, uint32_t instance) const;
  void take_core(JobId id, uint32_t core);
  void give_up_core(uint32_t core);
  bool starves(const Station& station, uint32_t instance) const;
  uint32_t preempt(Station& station, uint32_t instance);
  void end_stretch(uint32_t core);
  void run_slice(uint32_t core);
  void slice_over(uint32_t core);
  void leave_core(uint32_t core);
  size_t station_of_core(uint32_t core) const;

  // instances.cpp
  uint32_t instance_for(JobId id, const StationSpec& spec) const
  {
    if (spec.per == Per::node)
      return jobs_[id].owner;
    return spec.count == 1 ? 0 : instance_among(id, spec);
  }
  uint32_t instance_among(JobId id, const StationSpec& spec) const;
  static uint32_t instance_of(const Op& op, const StationSpec& spec, uint64_t offset);
  Station& station_of_instance(uint32_t instance_number);

  // locks.cpp
  void take_lock(JobId id);
  bool acquire_lock(JobId id, const Step& step);
  void make_locks();
  [[gnu::noinline]] void give_up_shared(JobId id);
  void serve_admitted(uint64_t key);
  void find_locks_held_ahead();
  double hold_lock_ahead(JobId id, const Step& step);
  double hand_over(JobId id, const Step& step);
  double hand_over(JobId id, const Step& step, LockKeepers& keepers);
  double call_back(JobId id, const Step& step, uint32_t times);
  bool is_hot(LockKeepers& keepers, double hot) const;
  double wait_for_lock(JobId id, double seconds);
  void give_up_locks(const std::vector<JobId>& lost);
  uint64_t lock_key(JobId id, int32_t lock) const;

  // extents.cpp: locks on ranges
  void make_extents();
  ExtentLocks* extents_of(const Step& step);
  bool take_extents(JobId id, const Step& step, ExtentLocks& extents);
  void give_back_extents(JobId id, const Step& step, ExtentLocks& extents);
  void grant_extents(ExtentLock& object, ExtentLocks& extents);
  void give_up_extents(const std::vector<JobId>& lost);
  void check_extents();

  // transfers.cpp
  void make_fabric(const Footprint& footprint);
  double alone(const Transfer& transfer) const;
  bool is_train(JobId id, const Step& step);
  Transfer transfer_of(JobId id, JobId whole, const Step& step, uint32_t instance, double bytes) const;
  bool passes(const Transfer& transfer, double time);
  double pass(JobId id, const Step& step, double time);
  bool begin_transfer(JobId id, const Step& step);
  void begin_flow(const Transfer& transfer);
  double next_flow();
  void go_on_with_flows(double flow);

  // stripes.cpp: requests in parts
  void split_visit(JobId id, const Step& step);
  static uint32_t neighbour(const StationSpec& spec, uint32_t first, const StripePart& first_part,
                            const StripePart& part);
  JobId fork(JobId id, uint32_t instance);
  bool join_part(JobId part);
  void split_transfer(JobId id, const Step& step);
  bool split_shards(JobId id, const Step& step);
  void fork_shards(JobId id, const Step& step);
  void begin_parts(JobId id);
  void send_shard(Transfer& transfer, const Step& step, uint32_t owner) const;
  bool is_shard(JobId part) const
  {
    return part - placement_.ranks < shard_of_.size() && shard_of_[part - placement_.ranks] != nobody;
  }
  void begin_part(JobId part);
  void resume_part(JobId part);

  // buffers.cpp
  void make_buffers(const Footprint& footprint);
  void add_beside_steps(const std::vector<Step>& steps, size_t pieces);
  [[gnu::noinline]] bool at_buffer(JobId id, const Step& step);
  bool enter_buffer(JobId id, const Step& step);
  bool enter_in_parts(JobId id, Buffers& buffers);
  bool flush_buffer(JobId id, const Step& step);
  void drain(Buffers& buffers, uint32_t instance);
  void begin_piece(const Piece& piece, uint32_t owner);
  void lingered(uint32_t number);
  void piece_drained(JobId id);
  void resume_freed();
  bool stage_in();
  void stage_next(uint32_t buffer, uint32_t instance);
  void staged_in(const Piece& piece);
  bool stage_out();
  bool is_staging_out() const;
  void staged();
  size_t first_staged() const { return first_fetched_ + caches_.size(); }
  uint32_t buffer_instance(JobId id, const Buffers& buffers) const;
  int32_t station_of_piece(const Piece& piece) const;
  bool is_own_station(JobId id, const StationSpec& spec) const;
  void send_from_buffer(JobId id, Transfer& transfer) const;
  std::array<uint32_t, 4> words_of_piece(JobId id) const;
  void check_buffers();

  // engine.cpp: mechanisms of models/mechanisms/
  void make_mechanisms();
  [[gnu::noinline]] bool at_mechanism(JobId id, const Step& step);
  nlohmann::ordered_json report_mechanisms();

  // caches.cpp
  void make_caches();
  bool never_hits(const CacheSpec& spec) const;
  bool is_striped(JobId id, const Caches& caches) const;
  uint32_t cache_instance(JobId id, const Caches& caches, uint64_t offset) const;
  template <class DoIt> void for_each_part(JobId id, const Caches& caches, Pages pages, DoIt do_it) const;
  [[gnu::noinline]] bool look_up(JobId id, const Step& step);
  void forget(JobId id, Caches& caches);
  bool forget_elsewhere(JobId id, Caches& caches, Flush where);
  void check_caches();

  // read_ahead.cpp: the read-ahead of caches
  void make_read_ahead(bool reads);
  bool await_pages(JobId id, Caches& caches);
  void read_ahead(JobId id, Caches& caches);
  bool plan_piece(Caches& caches, uint32_t instance, const Op& op, uint64_t page, uint64_t end);
  void fetch(Caches& caches, uint32_t instance);
  void fetched(const Piece& piece);
  void lose_cache(Caches& caches, uint32_t instance);
  void look_again();
  bool is_fetching() const;

  // failures.cpp
  void make_failures();
  void fail(uint32_t which);
  void lose(JobId id, uint32_t lost_by);
  void ask_again(JobId id);
  bool find_server(JobId id, const Step& step);
  bool find_end(JobId id, const Step& step, uint32_t& instance);

  // background.cpp: the work of others
  void make_background();
  void schedule_background(uint32_t which);
  void background_arrival(uint32_t which);

  const Platform& platform_;
  const Pattern& pattern_;
  Placement placement_;
  Options options_;
  std::function<void(FinishedPhase)> on_phase_;

  Calendar calendar_;
  HugeVector<Job> jobs_;
  Links links_;
  HugeVector<Core> cores_;    ///< of timeslice stations, instance after instance
  uint32_t parting_ = nobody; ///< the one whose job has ended its visit and may go straight on to its next
  HugeVector<Client> clients_;
  std::vector<float> node_speed_; ///< empty: all 1
  std::vector<Station> stations_;
  std::vector<uint32_t> first_instances_; ///< of every station, ascending
  bool looks_ahead_ = false;              ///< some events: nodes have queues or buffers, and there are many
  std::vector<size_t>
      queues_of_nodes_; ///< stations of nodes where requests may wait; empty where there are few clients
  std::vector<HugeVector<Limit>> limits_;
  LockTable locks_;
  std::vector<bool> shared_locks_;                    ///< by lock: some take it shared
  std::vector<bool> held_ahead_;                      ///< by lock: see find_locks_held_ahead()
  std::unordered_map<uint64_t, LockKeepers> keepers_; ///< by lock
  std::vector<ExtentLocks> extents_;
  std::vector<int32_t> extent_of_; ///< by lock: its place there; negative: it is no range's
  std::vector<StallClock> stalls_;
  std::vector<std::vector<uint32_t>> stalls_at_; ///< by station
  std::vector<Step> beside_steps_;               ///< of background load, one each; then of the draining of buffers
  std::deque<Buffers> buffers_;
  std::vector<std::unique_ptr<Mechanism>> mechanisms_; ///< as the platform has them
  std::vector<uint16_t> drain_steps_;                  ///< by Piece::buffer: the first of its steps
  size_t first_fetched_ = 0;                           ///< Piece::buffer of the first cache
  HugeVector<Piece> pieces_; ///< by job less the clients; empty where nothing drains, fills or is fetched ahead
  std::vector<JobId> freed_; ///< jobs that go on at the current time as a piece is out
  std::vector<Caches> caches_;
  std::vector<FailureClock> failures_;
  std::vector<Exposed> exposed_;  ///< by job; empty when nothing fails
  size_t most_background_ = 5000; ///< requests of others at a time, and what the servers and stalls hold: a system with
                                  ///< more does not get over them
  std::vector<JobId> free_jobs_;
  StripeCutter stripes_;
  size_t parts_ = 0;               ///< of requests, under way
  std::vector<JobId> forked_;      ///< parts that are about to begin
  std::vector<uint32_t> shard_of_; ///< by job less the clients: the instance that has the object whose shard moves;
                                   ///< empty where no station has redundancy
  std::vector<JobId> granted_;     ///< jobs that got a slot and go on at the current time, in this order
  std::unique_ptr<Fabric> fabric_; ///< none: no transfer could wait for a link
  std::vector<JobId> arrived_;
  std::vector<Transfer> new_transfers_;
  std::vector<OpStreamWriter> op_streams_;

  double wake_slowdown_        = 1;
  bool is_uniform_             = true; ///< a transfer alone takes as long between any two ends
  double now_                  = 0;
  bool finished_               = false;
  bool flowing_                = false; ///< flows of `fabric_` are on their way
  uint64_t requests_           = 0;
  uint64_t events_             = 0;
  uint32_t waiting_at_barrier_ = 0;
  bool between_phases_         = false; ///< one ends and the next begins
  bool staging_out_            = false; ///< all are at a barrier until buffers are empty
  uint64_t staging_in_         = 0;     ///< pieces on their way
  uint32_t ended_              = 0;
  int64_t phase_               = -1;
  double phase_start_          = 0;
  PrecisionWatch* watch_       = nullptr;                        ///< while it watches
  std::unique_ptr<ObjectSizes> sizes_;                           ///< where something is fetched ahead
  bool precise_       = false;                                   ///< and is content
  uint32_t thinking_  = 0;                                       ///< ranks, at this moment
  double deadline_    = std::numeric_limits<double>::infinity(); ///< of the phase
  uint64_t cut_ranks_ = 0;
  std::vector<Group> groups_;             ///< empty when nothing can be shared
  std::unordered_map<JobId, Op> own_ops_; ///< of ranks while aggregators access for all
  /// What nodes exchange before that.
  struct Exchange {
    size_t parts; ///< on their way
    std::vector<JobId> ranks;
  };
  std::unordered_map<JobId, Exchange> exchanges_; ///< by the job that stands for it
  std::vector<OpenObjects> open_;                 ///< by client
  std::vector<Steps> steps_;                      ///< by group; empty when the pattern has none
  std::vector<Intent> intents_;                   ///< by client; empty in a closed loop
  double think_asked_  = 0;
  double think_actual_ = 0;
  std::unique_ptr<PhaseRecorder> recorder_;
  StationSums sums_;
  std::array<uint64_t, op_count> moved_{}; ///< bytes, in this phase
  std::vector<StationTimes> times_before_; ///< by station, until the phase began
  std::vector<double> clients_times_;      ///< likewise, seconds of all clients' visits as these summed them up
  struct VisitAhead {
    uint32_t station;
    double begin;
    double end;
  };
  std::vector<VisitAhead> visits_ahead_; ///< of those beside clients that count already and may not be over
  std::vector<BufferSums> buffer_sums_;  ///< as they were at the end of the last phase
  std::vector<CacheSums> cache_sums_;    ///< likewise
  std::vector<ExtentSums> extent_sums_;  ///< likewise
  std::vector<uint64_t> background_count_;
};

} // namespace iocast
