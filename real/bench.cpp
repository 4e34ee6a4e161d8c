// SPDX-License-Identifier: Apache-2.0
#include "real/bench.hpp"

#include "profile/run_directory.hpp"
#include "profile/summary.hpp"
#include "real/agree.hpp"
#include "real/alarm.hpp"
#include "real/client_threads.hpp"
#include "real/clocks.hpp"
#include "real/collect.hpp"
#include "real/content.hpp"
#include "real/dry_run.hpp"
#include "real/environment.hpp"
#include "real/executor.hpp"
#include "real/gather_trace.hpp"
#include "real/held_claim.hpp"
#include "real/manifest.hpp"
#include "real/page_cache.hpp"
#include "real/signals.hpp"
#include "real/source_state.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <mutex>
#include <utility>

namespace fs = std::filesystem;

namespace iocast {

namespace {
using Json = nlohmann::ordered_json;

/// The ranks of one group of the pattern.
class Group {
public:
  Group(const Cluster& cluster, uint32_t number)
  {
    MPI_Comm_split(cluster.comm(), static_cast<int>(number), static_cast<int>(cluster.rank()), &comm_);
  }
  ~Group() { MPI_Comm_free(&comm_); }
  Group(const Group&)            = delete;
  Group& operator=(const Group&) = delete;

  MPI_Comm comm() const { return comm_; }

private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// When the phase is over, if it isn't before.
int64_t deadline(double most_seconds, int64_t start_ns)
{
  const double ns = most_seconds * 1e9;
  return ns > 0 && ns < 9e18 - static_cast<double>(start_ns) ? start_ns + std::llround(ns)
                                                             : std::numeric_limits<int64_t>::max();
}

/// Bytes that the results of a run take at most on the disk, roughly: histograms of each phase, and a time of each
/// rank.
uint64_t room_of_results(const Pattern& pattern, uint32_t ranks)
{
  constexpr uint64_t phase = 64 << 10, rank = 32;
  return pattern.phases().size() * (phase + rank * ranks);
}

class Bench {
public:
  Bench(const Options& options, const Cluster& cluster)
      : options_(options)
      , cluster_(cluster)
      , clocks_(cluster)
      , members_(options.threads_per_rank)
      , placement_{cluster.placement().ranks * options.threads_per_rank,
                   cluster.placement().ranks_per_node * options.threads_per_rank,
                   cluster.in_turn() && options.threads_per_rank == 1}
  {
  }

  int run();

private:
  /// One of the rank's clients.
  struct Member {
    Client client;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<Pattern>
        own_pattern; ///< of all but the first: what a pattern keeps of the ranks under way is for one thread
    std::unique_ptr<OpStreamWriter> dump;
    std::unique_ptr<Progress> progress;
    std::unique_ptr<Executor> executor;
  };

  /// Makes the alarm known to lose_place() for as long as it is there.
  class AlarmInUse {
  public:
    AlarmInUse(Bench& bench, Alarm& alarm) : bench_(bench) { set(&alarm); }
    ~AlarmInUse() { set(nullptr); }

  private:
    void set(Alarm* alarm)
    {
      const std::lock_guard lock(bench_.alarm_mutex_);
      bench_.alarm_ = alarm;
    }
    Bench& bench_;
  };

  /// The workload with these settings; its placement is the one that the ranks have. @throws InputError
  Workload opened(const std::vector<std::string>& settings) const;
  void open_input();
  void make_backends();
  void check_threads() const;
  void make_executors(Alarm& alarm);
  Json placement() const { return to_json(placement_, cluster_.nodes(), options_.threads_per_rank); }
  void open_place();
  void read_manifest();
  std::unique_ptr<Backend> keeper() const;
  void claim_place();
  void lose_place();
  void begin();
  Json header() const;
  void write_manifest(bool ready, size_t phase);
  double most_seconds(const Phase& phase) const { return options_.no_time_limits ? 0 : phase.most_seconds; }
  std::optional<size_t> next_phase();
  bool run_phase(Alarm& alarm, size_t number);
  void drop_caches_before(const char* moment);
  void keep(size_t number, MergedPhase& merged, double start_seconds, double first_step_seconds);
  std::string left_over() const;
  void end(const std::string& status, Json more = Json::object());

  const Options& options_;
  const Cluster& cluster_;
  Clocks clocks_;
  std::optional<Workload> workload_;
  std::unique_ptr<Pattern> pattern_;
  const BackendEntry* entry_ = nullptr;
  std::optional<Group> group_;
  std::optional<Content> content_; ///< when the run verifies
  std::optional<Parameters> backend_parameters_;
  std::vector<Member> members_;
  Backend* backend_ = nullptr;     ///< of the first of them, for all that concerns the place
  Placement placement_;            ///< of clients
  std::atomic<bool> lost_{false};  ///< the place, to another run
  std::mutex alarm_mutex_;         ///< of alarm_, which another thread raises when the place is lost
  Alarm* alarm_ = nullptr;         ///< while executors are at work
  std::optional<HeldClaim> claim_; ///< on rank 0 only
  std::optional<Manifest> manifest_;
  std::optional<std::string> found_; ///< the text of the manifest that was there
  bool sweeps_ = false;
  std::optional<size_t> cut_at_; ///< the phase that was cut first, unless the pattern has mended it
  std::vector<std::string> warnings_;
  std::optional<OpTrace> trace_; ///< of the rank's clients
  int64_t run_begun_ns_ = 0;     ///< on the run's clock
  int64_t begun_ns_     = 0;     ///< on this node's
  uint64_t errors_      = 0;
  std::optional<RunDirectory> directory_; ///< on rank 0 only
};

Workload Bench::opened(const std::vector<std::string>& settings) const
{
  auto workload = open_workload(options_.workload, settings, options_.seed);
  if (placement_.cyclic)
    workload.parameters.set("placement", "cyclic");
  else if (workload.is_cyclic() && cluster_.nodes() > 1 && placement_.ranks > cluster_.nodes())
    throw InputError("The workload's placement is cyclic, rank r on node r mod nodes, and the ranks lie otherwise; "
                     "start one client a rank with mpirun --map-by node or srun --distribution=cyclic, or leave the "
                     "parameter out.");
  return workload;
}

void Bench::open_input()
{
  workload_ = opened(options_.settings);
  pattern_  = workload_->make(placement_);
  check_size(pattern_->footprint());
  options_.brake.check(pattern_->footprint());
  entry_              = &backend_named(options_.backend);
  backend_parameters_ = backend_parameters(options_, *entry_);
}

void Bench::make_backends()
{
  if (options_.verify)
    content_.emplace(options_.seed);
  const auto clients = options_.threads_per_rank;
  if (clients == 1)
    group_.emplace(cluster_, pattern_->group_of(cluster_.rank()));
  agree(cluster_, [&] {
    for (uint32_t number = 0; auto& member : members_) {
      member.client  = {cluster_.rank() * clients + number++, options_.seed, group_ ? group_->comm() : MPI_COMM_SELF,
                       content_ ? &*content_ : nullptr};
      member.backend = entry_->make(*backend_parameters_, member.client);
    }
    const Backend& backend = *members_.front().backend;
    if (clients > 1 && pattern_->footprint().steps)
      throw InputError("The workload has steps, for which ranks wait together and threads of them can't; leave out "
                       "--threads-per-rank, or start as many ranks more.");
    if (clients > 1 && backend.acts_together())
      check_threads();
    check_backend(options_, *entry_, backend, *pattern_);
  });
  backend_ = members_.front().backend.get();
}

/// Whether clients that are threads can call MPI for themselves.
void Bench::check_threads() const
{
  constexpr auto instead = "leave out --threads-per-rank, or start as many ranks more";
  int given              = MPI_THREAD_SINGLE;
  MPI_Query_thread(&given);
  if (given < MPI_THREAD_MULTIPLE)
    throw InputError(fmt::format("The backend '{}' with --threads-per-rank calls MPI from several threads at a time, "
                                 "for which this MPI library is not made "
                                 "(it has no MPI_THREAD_MULTIPLE); {}.",
                                 entry_->name, instead));
  if (pattern_->footprint().collective)
    throw InputError(fmt::format(
        "The workload has collective accesses, which the backend '{}' makes by ranks and not by threads of them; {}.",
        entry_->name, instead));
}

/// Everything that can be refused is refused here, before anything is made.
void Bench::open_place()
{
  if (!options_.drop_caches.empty())
    agree(cluster_, [&] {
      if (cluster_.is_first_of_node())
        check_may_drop_caches();
    });
  agree(cluster_, [&] {
    if (cluster_.is_first())
      for (const auto& [option, directory] : {std::pair{"--out", options_.out}, {"--dump-ops", options_.dump_ops}})
        if (std::error_code ignored; !directory.empty() && fs::exists(directory, ignored))
          throw InputError(fmt::format(
              "The directory '{}' of {} exists already; name a new one, nothing is overwritten.", directory, option));
  });
  agree(cluster_, [&] {
    for (auto& member : members_)
      member.backend->connect();
  });
  if (!backend_->keeps_data())
    return;
  agree(cluster_, [&] {
    if (cluster_.is_first() && options_.brake.min_free > 0)
      options_.brake.check(backend_->place(), backend_->free_bytes());
  });
  agree(cluster_, [&] {
    if (!cluster_.is_first())
      return;
    const auto dead = refuse_if_claimed(*backend_, options_.claim);
    if (dead && options_.sweep && backend_->empty() && backend_->read_manifest().empty())
      HeldClaim(keeper(), options_.claim, [] {}); // takes over what a killed run left, and lets it go
  });
  read_manifest();
  claim_place();
}

/// A backend of its own for the claim, whose thread renews it.
std::unique_ptr<Backend> Bench::keeper() const
{
  auto made = entry_->make(*backend_parameters_, Client{cluster_.rank(), options_.seed, MPI_COMM_SELF, nullptr});
  made->connect();
  return made;
}

/// From here on the place is this run's, and its manifest what it was.
void Bench::claim_place()
{
  std::string text;
  uint64_t size = 0;
  agree(cluster_, [&] {
    if (!cluster_.is_first())
      return;
    claim_.emplace(keeper(), options_.claim, [this] { lose_place(); });
    if (backend_->read_manifest() != *found_)
      throw InputError(fmt::format(
          "{} was changed by another run a moment ago; wait for its end, or name another place.", backend_->place()));
    text = claim_->text();
    size = text.size();
  });
  MPI_Bcast(&size, 1, MPI_UINT64_T, 0, cluster_.comm());
  text.resize(size);
  MPI_Bcast(text.data(), static_cast<int>(size), MPI_CHAR, 0, cluster_.comm());
  agree(cluster_, [&] { backend_->check_claim_is_seen(text); });
}

void Bench::read_manifest()
{
  std::string text;
  int about[2] = {0, 0};
  agree(cluster_, [&] {
    if (!cluster_.is_first())
      return;
    for (const auto& [option, directory] : {std::pair{"--out", options_.out}, {"--dump-ops", options_.dump_ops}})
      if (!directory.empty())
        backend_->check_outside(option, directory);
    text = backend_->read_manifest();
    if (text.size() > most_manifest)
      throw InputError(
          fmt::format("{} has a manifest of {} bytes; iocast did not make it.", backend_->place(), text.size()));
    about[0] = static_cast<int>(text.size());
    about[1] = backend_->empty();
  });
  MPI_Bcast(about, 2, MPI_INT, 0, cluster_.comm());
  text.resize(static_cast<size_t>(about[0]));
  MPI_Bcast(text.data(), about[0], MPI_CHAR, 0, cluster_.comm());

  found_ = text;
  // From here on every rank sees the same and comes to the same conclusion.
  agree(cluster_, [&] {
    if (!text.empty())
      manifest_ = Manifest::parse(text, backend_->place());
    auto settings = options_.settings;
    if (manifest_)
      if (const auto seeds = seeds_to_go_on(*manifest_, *workload_->pattern, options_.settings); !seeds.empty()) {
        settings.insert(settings.end(), seeds.begin(), seeds.end());
        workload_ = opened(settings);
        pattern_  = workload_->make(placement_);
      }
    check_manifest(manifest_, about[1] != 0, backend_->place(), *workload_->pattern, *pattern_, options_.sweep);
    sweeps_ = options_.sweep || (manifest_ && !manifest_->ready);
    if (manifest_ && options_.verify && !sweeps_) {
      if (!manifest_->verifiable)
        throw InputError(
            fmt::format("{} holds a data set that was not written with --verify; its content can't be checked.",
                        backend_->place()));
      *content_ = Content(manifest_->seed);
    }
    if (manifest_ && !sweeps_) {
      for (const auto& setting :
           settings_to_go_on(*manifest_, backend_->place(), workload_->parameters, options_.settings))
        settings.push_back(setting);
      workload_ = opened(settings);
      pattern_  = workload_->make(placement_);
    }
    if (!cluster_.is_first())
      return;
    backend_->check_writable();
    const auto footprint = pattern_->footprint();
    const auto lack      = makes_data_set(footprint) && !sweeps_ ? backend_->lacks_room(footprint) : "";
    const auto& phases   = pattern_->phases();
    if (lack.empty())
      return;
    // With a time limit nobody knows how much of that will come.
    if (std::none_of(phases.begin(), phases.end(), [&](const Phase& phase) { return most_seconds(phase) > 0; }))
      throw InputError(lack);
    warnings_.push_back(lack + " That it fits rests on the time limits.");
  });
}

/// From a thread of its own: nothing more is to be done in a place that is another's.
void Bench::lose_place()
{
  lost_ = true;
  const std::lock_guard lock(alarm_mutex_);
  if (alarm_)
    alarm_->raise();
}

Json Bench::header() const
{
  auto options = backend_parameters_->to_json();
  for (const auto& secret : entry_->secrets)
    options.erase(secret);
  auto environment = environment_of(cluster_);
  environment.update(backend_->environment());
  Json header{{"schema_version", 1},
              {"kind", "run"},
              {"source", "bench"},
              {"tool", {{"name", "iocast-bench"}, {"version", IOCAST_VERSION}, {"git", source_state}}},
              {"command", options_.command},
              {"label", options_.label},
              {"started", utc_of(begun_ns_)},
              {"seed", options_.seed},
              {"verified", options_.verify},
              {"caches_dropped", options_.drop_caches.empty() ? Json(false) : Json(options_.drop_caches)},
              {"workload", workload_->to_json()},
              {"peak_objects", pattern_->footprint().peak_objects},
              {"backend", {{"name", entry_->name}, {"options", options}}},
              {"placement", placement()},
              {"environment", environment},
              {"warnings", warnings_}};
  if (const auto brake = options_.brake.to_json(); !brake.is_null())
    header["brake"] = brake;
  return header;
}

void Bench::begin()
{
  clocks_.compare();
  run_begun_ns_ = now_ns();
  MPI_Bcast(&run_begun_ns_, 1, MPI_INT64_T, 0, cluster_.comm());
  begun_ns_ = clocks_.here(run_begun_ns_);
  agree(cluster_, [&] {
    if (!cluster_.is_first())
      return;
    directory_.emplace(options_.out);
    directory_->reserve(room_of_results(*pattern_, placement_.ranks));
    directory_->begin(header());
    std::error_code error;
    if (!options_.dump_ops.empty())
      fs::create_directories(options_.dump_ops, error);
    if (error)
      throw RunError(
          fmt::format("The directory '{}' of --dump-ops can't be made: {}.", options_.dump_ops, error.message()));
  });
  agree(cluster_, [&] {
    if (options_.trace && !sweeps_)
      trace_.emplace(options_.threads_per_rank);
  });
}

void Bench::make_executors(Alarm& alarm)
{
  agree(cluster_, [&] {
    for (uint32_t number = 0; auto& member : members_) {
      const bool first = number == 0;
      if (!first)
        member.own_pattern = workload_->make(placement_);
      const Pattern& pattern = first ? *pattern_ : *member.own_pattern;
      if (!options_.dump_ops.empty())
        member.dump = std::make_unique<OpStreamWriter>(options_.dump_ops, member.client.rank);
      member.progress = std::make_unique<Progress>(pattern_->footprint(), placement_.ranks,
                                                   cluster_.is_first() && first && !options_.quiet);
      const Executor::Keeps keeps{member.dump.get(), trace_ ? &*trace_ : nullptr, number++,
                                  begun_ns_,         options_.patience,           options_.brake,
                                  placement_.ranks};
      member.executor =
          std::make_unique<Executor>(pattern, *member.backend, member.client, *member.progress, alarm, keeps);
    }
  });
}

/// The phase that the streams of all clients stand before.
std::optional<size_t> Bench::next_phase()
{
  std::optional<size_t> number;
  for (auto& member : members_)
    number = member.executor->next_phase();
  return number;
}

void Bench::write_manifest(bool ready, size_t phase)
{
  if (!cluster_.is_first() || !backend_->keeps_data())
    return;
  // What is swept is unfinished until all is gone; and the disk may be full.
  if (sweeps_ && (ready || !manifest_->ready))
    return;
  const Manifest fresh{
      workload_->pattern->name, pattern_->data_set(), Json::object(), options_.seed, false, "", false, false};
  Manifest next   = manifest_.value_or(fresh);
  next.verifiable = options_.verify && (!manifest_ || manifest_->verifiable);
  if (manifest_ && pattern_->footprint().bytes_written == 0)
    next.verifiable = manifest_->verifiable;
  next.made_place = next.made_place || (claim_ && claim_->made_place());
  next.ready      = ready;
  next.phase      = pattern_->phases()[cut_at_.value_or(phase)].name;
  if (ready)
    next.position = pattern_->position_after(phase);
  backend_->write_manifest(next.text());
  manifest_ = next;
}

void Bench::drop_caches_before(const char* moment)
{
  if (options_.drop_caches == moment)
    agree(cluster_, [&] {
      if (cluster_.is_first_of_node())
        drop_caches();
    });
}

/// @returns false when the phase was interrupted
bool Bench::run_phase(Alarm& alarm, size_t number)
{
  const auto& phase = pattern_->phases()[number];
  agree(cluster_, [&] {
    if (claim_)
      claim_->check();
    write_manifest(false, number);
  });
  std::vector<RankPhase> mine(members_.size());
  std::optional<ClientThreads> clients;
  const auto work = [&](size_t client, int64_t start_ns) {
    Executor& executor = *members_[client].executor;
    if (sweeps_)
      executor.sweep(start_ns, mine[client]);
    else
      executor.run(start_ns, deadline(most_seconds(phase), start_ns), mine[client]);
  };
  drop_caches_before("phase");
  agree(cluster_, [&] {
    clients.emplace(
        members_.size(), [&](size_t client) { mine[client] = members_[client].executor->prepare(); }, work);
  });
  const int64_t start_ns = clocks_.start_together([&](int64_t moment_ns) {
    for (size_t client = 0; client < members_.size(); ++client) {
      members_[client].executor->set_begin(clocks_.here(run_begun_ns_));
      members_[client].progress->begin_phase(phase_title(phase.name, phase.repeat), moment_ns, mine[client].recorder);
    }
    clients->start_at(moment_ns);
  });
  clients->work([&] { alarm.heard(); });
  members_.front().progress->end_phase();
  alarm.finish();
  std::optional<Failure> failure;
  for (size_t at = 0; auto& one : mine) {
    one.interrupted       = one.interrupted || one.failure;
    const uint32_t client = members_[at++].client.rank;
    if (one.failure && !failure)
      failure = members_.size() == 1
                    ? one.failure
                    : Failure{one.failure->exit_code, fmt::format("client {}: {}", client, one.failure->message)};
  }
  MergedPhase merged = collect(cluster_, mine);
  if (phase.most_seconds > 0 && !merged.interrupted && !sweeps_) // a sweep goes the whole way, and counts nothing
    for (auto& member : members_)
      member.executor->agree(merged.furthest);
  agree(cluster_, [&] {
    if (!cluster_.is_first())
      return;
    keep(number, merged, static_cast<double>(start_ns - begun_ns_) * 1e-9, mine.front().first_step_seconds);
    if (lost_)
      claim_->check();
    if (merged.interrupted)
      return;
    // Nobody but this process knows how far the ranks came, unless the pattern sees to it: a later one has to look.
    if (pattern_->mends(number))
      cut_at_.reset();
    else if (merged.cut_ranks > 0 && !cut_at_)
      cut_at_ = number;
    if (number + 1 < pattern_->phases().size())
      return; // between phases the data set is not another run's to use
    if (!removes_data_set(pattern_->footprint()))
      write_manifest(!cut_at_, number);
    else if (merged.recorder.errors() == 0) { // else something is left: the manifest still says "in progress"
      if (claim_)
        claim_->check();
      backend_->remove_manifest();
      if (claim_ && manifest_ && manifest_->made_place)
        claim_->leave_nothing();
    }
  });
  settle(cluster_, failure); // what was measured until then is kept
  return !merged.interrupted;
}

void Bench::keep(size_t number, MergedPhase& merged, double start_seconds, double first_step_seconds)
{
  const auto& phase = pattern_->phases()[number];
  PhaseResult result{phase.name,
                     phase.repeat,
                     start_seconds,
                     0,
                     merged.rank_seconds,
                     merged.think_asked_seconds,
                     merged.think_actual_seconds};
  result.seconds      = *std::max_element(merged.rank_seconds.begin(), merged.rank_seconds.end());
  result.most_seconds = most_seconds(phase);
  result.cut_ranks    = merged.cut_ranks;
  if (cluster_.in_blocks() || placement_.cyclic)
    result.ranks_per_node = placement_.ranks_per_node;
  result.cyclic = placement_.cyclic;
  if (!sweeps_ && !merged.interrupted) {
    result.accelerators       = pattern_->accelerators(number);
    result.first_step_seconds = first_step_seconds;
  }
  errors_ += merged.recorder.errors();
  auto more = Json::object();
  if (merged.interrupted)
    more["interrupted"] = true;
  if (sweeps_)
    more["swept"] = merged.swept;
  if (cluster_.nodes() > 1)
    more["clocks"] = {{"uncertainty", clocks_.uncertainty_seconds()}, {"drift", clocks_.drift()}};
  auto first_errors = Json::array();
  for (size_t i = 0; i < merged.errors.used; ++i) {
    const auto& error = merged.errors.entries[i];
    Name name(*pattern_);
    Op failed(error.kind, error.dataset, error.object);
    failed.flags = error.flags;
    name.point_at(failed);
    const bool on_dataset = error.kind == OpKind::mkdir || error.kind == OpKind::rmdir || error.kind == OpKind::readdir;
    const std::string about = on_dataset ? name.dataset() : name.path();
    const bool has_place    = is_access(error.kind) || error.error == wrong_content;
    fmt::print(stderr, "iocast-bench: in {}, {} {} operations failed: {}; the first was on rank {}, '{}'{}.\n",
               phase_title(phase.name, phase.repeat), error.count, name_of(error.kind), error_text(error.error),
               error.rank, about, has_place ? fmt::format(", byte {}", error.offset) : "");
    first_errors.push_back({{"op", name_of(error.kind)},
                            {"error", error_text(error.error)},
                            {"count", error.count},
                            {"rank", error.rank},
                            {"start", static_cast<double>(error.first_ns) * 1e-9},
                            {"name", about}});
    if (has_place)
      first_errors.back()["offset"] = error.offset;
  }
  if (!first_errors.empty())
    more["first_errors"] = first_errors;
  directory_->add_phase(std::move(result), merged.recorder, more);
}

void Bench::end(const std::string& status, Json more)
{
  uint64_t peak = peak_rss_bytes();
  MPI_Allreduce(MPI_IN_PLACE, &peak, 1, MPI_UINT64_T, MPI_MAX, cluster_.comm());
  agree(cluster_, [&] {
    if (!cluster_.is_first())
      return;
    more["peak_rss_bytes"] = peak;
    directory_->end(status, more);
  });
}

/// What a run that ended early leaves at its place, and how it goes, with a space before; "" for nothing.
std::string Bench::left_over() const
{
  if (!manifest_)
    return "";
  const auto footprint = pattern_->footprint();
  return fmt::format(" {} still holds what it made, up to {} objects; the same command with --sweep removes {}{}.",
                     backend_->place(), footprint.peak_objects, footprint.peak_objects == 1 ? "it" : "them",
                     options_.out.empty() ? "" : ", without --out");
}

int Bench::run()
{
  agree(cluster_, [&] { open_input(); });
  make_backends();
  if (!cluster_.in_blocks() && !placement_.cyclic)
    warnings_.push_back(
        fmt::format("The ranks are not placed in blocks of {} a node, as offsets between nodes assume; start "
                    "them in blocks (mpirun --map-by core, srun --distribution=block).",
                    cluster_.placement().ranks_per_node));
  if (const auto crowded = cluster_.crowded_warning(); !crowded.empty())
    warnings_.push_back(crowded);
  if (!options_.dry_run)
    open_place();
  for (const auto& warning : pattern_->warnings())
    warnings_.push_back(warning);
  if (cluster_.is_first())
    print_warnings(warnings_);
  if (options_.dry_run) {
    if (cluster_.is_first())
      print_dry_run(options_, *workload_, *pattern_, placement(), warnings_);
    return 0;
  }

  catch_signals();
  begin();
  bool whole = true;
  try {
    Alarm alarm(cluster_);
    const AlarmInUse in_use(*this, alarm);
    make_executors(alarm);
    drop_caches_before("run");
    while (whole) {
      const auto number = next_phase();
      if (!number)
        break;
      whole = run_phase(alarm, *number);
    }
    if (trace_)
      gather_trace(cluster_, *trace_, *pattern_, options_.out + "/ops.h5",
                   about_trace("bench", workload_->to_json(), placement_, *pattern_, options_.seed));
  } catch (const AgreedFailure& failure) {
    end("interrupted", {{"error", failure.what()}});
    if (cluster_.is_first() && manifest_ && !lost_)
      fmt::print(stderr, "iocast-bench: warning:{}\n", left_over());
    throw;
  }
  end(whole ? "complete" : "interrupted");
  if (cluster_.is_first()) {
    fmt::print("{}", options_.json ? directory_->json().dump(1) + "\n" : summary_text(directory_->json()));
    if (!whole)
      fmt::print(stderr, "iocast-bench: The run was interrupted by a signal.{}\n", left_over());
  }
  MPI_Bcast(&errors_, 1, MPI_UINT64_T, 0, cluster_.comm());
  return whole && errors_ == 0 ? 0 : 1;
}

} // namespace

int run_bench(const Options& options, const Cluster& cluster)
{
  return Bench(options, cluster).run();
}

} // namespace iocast
