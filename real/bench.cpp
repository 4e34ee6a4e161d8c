// SPDX-License-Identifier: Apache-2.0
#include "real/bench.hpp"

#include "profile/run_directory.hpp"
#include "real/agree.hpp"
#include "real/alarm.hpp"
#include "real/collect.hpp"
#include "real/describe.hpp"
#include "real/environment.hpp"
#include "real/executor.hpp"
#include "real/manifest.hpp"
#include "profile/summary.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

namespace fs = std::filesystem;

namespace iocast {

namespace {
using Json = nlohmann::ordered_json;

class Bench {
public:
  Bench(const Options& options, const Cluster& cluster) : options_(options), cluster_(cluster) {}

  int run();

private:
  void open_input();
  int dry_run() const;
  Json placement() const;
  void open_place();
  void read_manifest();
  void begin();
  Json header() const;
  void write_manifest(bool ready, size_t phase);
  bool run_phase(Executor& executor, Alarm& alarm, size_t number);
  void keep(size_t number, MergedPhase& merged, double start_seconds);
  void end(const std::string& status, Json more = Json::object());

  const Options& options_;
  const Cluster& cluster_;
  std::optional<Workload> workload_;
  std::unique_ptr<Pattern> pattern_;
  const BackendEntry* entry_ = nullptr;
  std::optional<Parameters> backend_parameters_;
  std::unique_ptr<Backend> backend_;
  std::optional<Manifest> manifest_;
  bool sweeps_ = false;
  std::vector<std::string> warnings_;
  std::optional<OpStreamWriter> dump_;
  std::optional<Progress> progress_;
  int64_t begun_ns_ = 0;
  uint64_t errors_  = 0;
  std::optional<RunDirectory> directory_; ///< on rank 0 only
};

void Bench::open_input()
{
  workload_           = open_workload(options_.workload, options_.settings);
  pattern_            = workload_->make(cluster_.placement());
  entry_              = &backend_named(options_.backend);
  backend_parameters_ = backend_parameters(options_, *entry_);
  backend_            = entry_->make(*backend_parameters_, {cluster_.rank(), options_.seed});
}

Json Bench::placement() const
{
  return {{"ranks", cluster_.size()}, {"nodes", cluster_.nodes()}, {"ranks_per_node", cluster_.placement().ranks_per_node}};
}

int Bench::dry_run() const
{
  auto phases = Json::array();
  for (const auto& phase : pattern_->phases())
    phases.push_back({{"name", phase.name}, {"repeat", phase.repeat}});
  const Json json{{"schema_version", 1},
                  {"kind", "dry-run"},
                  {"workload", workload_->to_json()},
                  {"placement", placement()},
                  {"phases", phases},
                  {"footprint", to_json(pattern_->footprint())},
                  {"warnings", warnings_}};
  if (cluster_.is_first())
    fmt::print("{}", options_.json ? json.dump(1) + "\n" : dry_run_text(json));
  return 0;
}

/// Everything that can be refused is refused here, before anything is made.
void Bench::open_place()
{
  agree(cluster_, [&] {
    if (cluster_.is_first())
      for (const auto& [option, directory] : {std::pair{"--out", options_.out}, {"--dump-ops", options_.dump_ops}})
        if (!directory.empty() && fs::exists(directory))
          throw InputError(fmt::format("The directory '{}' of {} exists already; name a new one, nothing is overwritten.",
                                       directory, option));
  });
  agree(cluster_, [&] { backend_->open(); });
  if (backend_->keeps_data())
    read_manifest();
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
    text     = backend_->read_manifest();
    about[0] = static_cast<int>(text.size());
    about[1] = backend_->empty();
  });
  MPI_Bcast(about, 2, MPI_INT, 0, cluster_.comm());
  text.resize(static_cast<size_t>(about[0]));
  MPI_Bcast(text.data(), about[0], MPI_CHAR, 0, cluster_.comm());

  // From here on every rank sees the same and comes to the same conclusion.
  agree(cluster_, [&] {
    if (!text.empty())
      manifest_ = Manifest::parse(text, backend_->place());
    check_manifest(manifest_, about[1] != 0, backend_->place(), workload_->pattern->name, *pattern_);
    sweeps_ = manifest_ && !manifest_->ready;
    if (manifest_ && !sweeps_) {
      auto settings = options_.settings;
      for (const auto& setting : settings_to_go_on(*manifest_, backend_->place(), workload_->parameters, options_.settings))
        settings.push_back(setting);
      workload_ = open_workload(options_.workload, settings);
      pattern_  = workload_->make(cluster_.placement());
    }
    const auto footprint = pattern_->footprint();
    if (cluster_.is_first())
      backend_->check_room(makes_data_set(footprint) ? footprint : Footprint{});
  });
}

Json Bench::header() const
{
  auto options = backend_parameters_->to_json();
  for (const auto& secret : entry_->secrets)
    options.erase(secret);
  auto environment = environment_of(cluster_);
  environment.update(backend_->environment());
  return {{"schema_version", 1},
          {"kind", "run"},
          {"source", "bench"},
          {"tool", {{"name", "iocast-bench"}, {"version", IOCAST_VERSION}, {"git", IOCAST_GIT}}},
          {"command", options_.command},
          {"label", options_.label},
          {"started", utc_now()},
          {"seed", options_.seed},
          {"workload", workload_->to_json()},
          {"backend", {{"name", entry_->name}, {"options", options}}},
          {"placement", placement()},
          {"environment", environment},
          {"warnings", warnings_}};
}

void Bench::begin()
{
  begun_ns_ = now_ns();
  agree(cluster_, [&] {
    if (!cluster_.is_first())
      return;
    directory_.emplace(options_.out);
    directory_->begin(header());
    if (!options_.dump_ops.empty())
      fs::create_directories(options_.dump_ops);
  });
  agree(cluster_, [&] {
    if (!options_.dump_ops.empty())
      dump_.emplace(options_.dump_ops, cluster_.rank());
  });
  progress_.emplace(pattern_->footprint(), cluster_.size(), cluster_.is_first());
}

void Bench::write_manifest(bool ready, size_t phase)
{
  if (!cluster_.is_first() || !backend_->keeps_data())
    return;
  const Manifest fresh{workload_->pattern->name, pattern_->data_set(), Json::object(), options_.seed, false, ""};
  Manifest next = manifest_.value_or(fresh);
  next.ready    = ready;
  next.phase    = pattern_->phases()[phase].name;
  if (ready)
    next.position = pattern_->position_after(phase);
  backend_->write_manifest(next.text());
  manifest_ = next;
}

/// @returns false when the phase was cut
bool Bench::run_phase(Executor& executor, Alarm& alarm, size_t number)
{
  const auto& phase = pattern_->phases()[number];
  agree(cluster_, [&] { write_manifest(false, number); });
  RankPhase mine         = executor.prepare();
  const int64_t start_ns = cluster_.start_together();
  progress_->begin_phase(phase_title(phase.name, phase.repeat), start_ns);
  if (sweeps_)
    executor.sweep(start_ns, mine);
  else
    executor.run(start_ns, mine);
  progress_->end_phase();
  alarm.finish();
  settle(cluster_, mine.failure);
  MergedPhase merged = collect(cluster_, mine);
  agree(cluster_, [&] {
    if (!cluster_.is_first())
      return;
    keep(number, merged, static_cast<double>(start_ns - begun_ns_) * 1e-9);
    if (merged.cut)
      return;
    const bool is_last = number + 1 == pattern_->phases().size();
    if (!is_last || !removes_data_set(pattern_->footprint()))
      write_manifest(true, number);
    else if (merged.recorder.errors() == 0) // else something is left: the manifest still says "in progress"
      backend_->remove_manifest();
  });
  return !merged.cut;
}

void Bench::keep(size_t number, MergedPhase& merged, double start_seconds)
{
  const auto& phase = pattern_->phases()[number];
  PhaseResult result{phase.name, phase.repeat, start_seconds, 0, merged.rank_seconds, merged.think_asked_seconds,
                     merged.think_actual_seconds};
  result.seconds = *std::max_element(merged.rank_seconds.begin(), merged.rank_seconds.end());
  errors_ += merged.recorder.errors();
  auto more = Json::object();
  if (merged.cut)
    more["cut"] = true;
  if (sweeps_)
    more["swept"] = merged.swept;
  auto first_errors = Json::array();
  for (size_t i = 0; i < merged.errors.used; ++i) {
    const auto& error = merged.errors.entries[i];
    Name name(*pattern_);
    name.point_at({error.kind, error.dataset, error.object, 0});
    const std::string about = error.kind == OpKind::mkdir || error.kind == OpKind::rmdir ? name.dataset() : name.path();
    fmt::print(stderr, "iocast-bench: in {}, {} {} operations failed: {}; the first was on rank {}, '{}'.\n",
               phase_title(phase.name, phase.repeat), error.count, name_of(error.kind), error_text(error.error), error.rank,
               about);
    first_errors.push_back({{"op", name_of(error.kind)},
                            {"error", error_text(error.error)},
                            {"count", error.count},
                            {"rank", error.rank},
                            {"start", static_cast<double>(error.first_ns) * 1e-9},
                            {"name", about}});
  }
  if (!first_errors.empty())
    more["first_errors"] = first_errors;
  directory_->add_phase(result, merged.recorder, more);
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

int Bench::run()
{
  agree(cluster_, [&] { open_input(); });
  if (!cluster_.in_blocks())
    warnings_.push_back(fmt::format("The ranks are not placed in blocks of {} a node, as offsets between nodes assume; start "
                                    "them in blocks (mpirun --map-by core, srun --distribution=block).",
                                    cluster_.placement().ranks_per_node));
  if (!options_.dry_run)
    open_place();
  for (const auto& warning : pattern_->warnings())
    warnings_.push_back(warning);
  if (cluster_.is_first())
    for (const auto& warning : warnings_)
      fmt::print(stderr, "iocast-bench: warning: {}\n", warning);
  if (options_.dry_run)
    return dry_run();

  catch_signals();
  begin();
  bool whole = true;
  try {
    Alarm alarm(cluster_);
    Executor executor(*pattern_, *backend_, cluster_.rank(), *progress_, alarm, dump_ ? &*dump_ : nullptr);
    while (whole) {
      const auto number = executor.next_phase();
      if (!number)
        break;
      whole = run_phase(executor, alarm, *number);
    }
  } catch (const AgreedFailure& failure) {
    end("interrupted", {{"error", failure.what()}});
    throw;
  }
  end(whole ? "complete" : "interrupted");
  if (cluster_.is_first()) {
    fmt::print("{}", options_.json ? directory_->json().dump(1) + "\n" : summary_text(directory_->json()));
    if (!whole)
      fmt::print(stderr, "iocast-bench: The run was interrupted by a signal.\n");
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
