// SPDX-License-Identifier: Apache-2.0
#include "real/agree.hpp"
#include "real/bench.hpp"
#include "real/describe.hpp"
#include "real/dry_run.hpp"
#include "real/options.hpp"
#include "real/stopwatch.hpp"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <mpi.h>
#include <optional>
#include <sys/prctl.h>

namespace {

using namespace iocast;

/// The rank that a launcher gave this process, before MPI starts; nothing without a launcher.
std::optional<int> launched_rank()
{
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID", "SLURM_PROCID"})
    if (const char* value = std::getenv(name))
      return std::atoi(value);
  return std::nullopt;
}

int run_with_mpi(const Options& options, const std::optional<Failure>& so_far)
{
  Ticks::begin();
  int threads = 0;
  // The watchdog's thread makes no MPI call; clients that are threads do, where the storage is MPI-IO's.
  MPI_Init_thread(nullptr, nullptr, options.threads_per_rank > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &threads);
  // Sleeps end at their time, not up to 50 us later. Not yet while MPI starts, nor when it ends: it waits by
  // many short sleeps, on all ranks at once.
  prctl(PR_SET_TIMERSLACK, 1);
  int code = 0;
  {
    const Cluster cluster;
    try {
      settle(cluster, so_far);
      code = run_bench(options, cluster);
    } catch (const AgreedFailure& failure) {
      code = failure.exit_code;
    }
    // Launchers kill the other ranks when one ends with an error; by now all have printed their messages.
    std::fflush(nullptr);
    cluster.rendezvous();
  }
  prctl(PR_SET_TIMERSLACK, 0);
  MPI_Finalize();
  return code;
}

} // namespace

int main(int argc, char** argv)
{
  Options options;
  std::string answer;
  const auto failure = failure_of([&] {
    options = parse_options(argc, argv);
    if (options.informs())
      answer = information(options);
  });
  const auto rank    = launched_rank();
  // Login nodes, where people ask for help, often can't start MPI.
  if (!failure && options.informs()) {
    if (rank.value_or(0) == 0)
      fmt::print("{}", answer);
    return 0;
  }
  const auto report = [](const std::optional<Failure>& met) {
    if (met)
      fmt::print(stderr, "iocast-bench: {}\n", met->message);
    return met ? met->exit_code : 0;
  };
  if (failure && !rank)
    return report(failure);
  // Under a launcher, a dry run is of the ranks that it started, unless others are requested.
  if (!failure && options.dry_run && (!rank || options.ranks > 0))
    return rank.value_or(0) == 0 ? report(failure_of([&] { dry_run(options); })) : 0;
  return run_with_mpi(options, failure);
}
