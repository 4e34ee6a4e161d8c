// SPDX-License-Identifier: Apache-2.0
#include "real/environment.hpp"

#include "real/processor.hpp"
#include "real/stopwatch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

namespace iocast {

namespace {

std::string cpu_model()
{
  std::ifstream in("/proc/cpuinfo");
  return processor_model(in);
}

/// The socket of each of the node's CPUs, in their order; empty where the kernel does not tell.
std::vector<int> sockets()
{
  std::vector<int> found;
  for (int socket = 0;; found.push_back(socket)) {
    std::ifstream in("/sys/devices/system/cpu/cpu" + std::to_string(found.size()) + "/topology/physical_package_id");
    if (!(in >> socket))
      return found;
  }
}

std::string mpi_library()
{
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  // MPICH's goes on for a page.
  const std::string all(text.data(), static_cast<size_t>(length));
  return all.substr(0, all.find_first_of(std::string("\n\0", 2)));
}

/// The job that this is, by what schedulers tell their jobs; null outside of any.
nlohmann::ordered_json scheduler_job()
{
  struct Scheduler {
    const char* name;
    const char* job;
    const char* queue;
  };
  for (const auto& [name, job, queue] : {Scheduler{"Slurm", "SLURM_JOB_ID", "SLURM_JOB_PARTITION"},
                                         {"PBS", "PBS_JOBID", "PBS_QUEUE"},
                                         {"LSF", "LSB_JOBID", "LSB_QUEUE"},
                                         {"Grid Engine", "JOB_ID", "QUEUE"},
                                         {"Flux", "FLUX_JOB_ID", ""}})
    if (const char* id = std::getenv(job)) {
      const char* in = std::getenv(queue);
      return {{"name", name}, {"job", id}, {"queue", in ? in : ""}};
    }
  return nullptr;
}

/// How long Linux lets a process run while others wait for its processor, in seconds: the scheduler's base slice
/// (kernel/sched/fair.c, as it is unless someone tuned it: 0.75 ms, from 6.15 on 0.70 ms, times 1 + log2 of the
/// processors, of which 8 count), looked at when a tick comes. The coarse clock has the tick's resolution. Before 6.6
/// there is no such number: it depends on how many wait.
std::optional<double> timeslice_seconds(const utsname& system)
{
  int major = 0;
  int minor = 0;
  timespec tick{};
  if (std::string(system.sysname) != "Linux" || std::sscanf(system.release, "%d.%d", &major, &minor) != 2 ||
      std::pair(major, minor) < std::pair(6, 6) || clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0 ||
      tick.tv_sec != 0 || tick.tv_nsec <= 0)
    return std::nullopt;
  const double processors = std::clamp(get_nprocs(), 1, 8);
  const double base =
      (std::pair(major, minor) < std::pair(6, 15) ? 0.75e-3 : 0.70e-3) * (1 + std::floor(std::log2(processors)));
  const double length = static_cast<double>(tick.tv_nsec) * 1e-9;
  return length * (std::floor(base / length) + 1);
}

} // namespace

nlohmann::ordered_json environment_of(const Cluster& cluster)
{
  utsname system{};
  uname(&system);
  timespec resolution{};
  clock_getres(CLOCK_MONOTONIC, &resolution);
  const auto timeslice = timeslice_seconds(system);
  return {{"hosts", cluster.hosts()},
          {"cpus_per_node", cluster.cpus_per_node()},
          {"timeslice_seconds", timeslice ? nlohmann::ordered_json(*timeslice) : nullptr},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"cpu_model", cpu_model()},
          {"sockets", sockets()},
          {"bindings", cluster.bindings()},
          {"scheduler", scheduler_job()},
          {"mpi_library", mpi_library()},
          {"clock", Ticks::counts() ? "time stamp counter" : "monotonic"},
          {"clock_resolution_ns", int64_t{resolution.tv_sec} * 1'000'000'000 + resolution.tv_nsec}};
}

std::string utc_of(int64_t ns)
{
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  const int64_t ms          = wall.tv_sec * int64_t{1000} + (wall.tv_nsec - (now_ns() - ns)) / 1'000'000;
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text.data(), ms % 1000);
}

uint64_t peak_rss_bytes()
{
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

} // namespace iocast
