// SPDX-License-Identifier: Apache-2.0
#include "real/environment.hpp"

#include "real/stopwatch.hpp"

#include <array>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <fstream>
#include <sys/resource.h>
#include <sys/utsname.h>

namespace iocast {

namespace {

std::string cpu_model()
{
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown";
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
  for (const auto& [name, job, queue] : {Scheduler{"Slurm", "SLURM_JOB_ID", "SLURM_JOB_PARTITION"}, {"PBS", "PBS_JOBID", "PBS_QUEUE"},
                                         {"LSF", "LSB_JOBID", "LSB_QUEUE"}, {"Grid Engine", "JOB_ID", "QUEUE"}, {"Flux", "FLUX_JOB_ID", ""}})
    if (const char* id = std::getenv(job)) {
      const char* in = std::getenv(queue);
      return {{"name", name}, {"job", id}, {"queue", in ? in : ""}};
    }
  return nullptr;
}

} // namespace

nlohmann::ordered_json environment_of(const Cluster& cluster)
{
  utsname system{};
  uname(&system);
  timespec resolution{};
  clock_getres(CLOCK_MONOTONIC, &resolution);
  return {{"hosts", cluster.hosts()},
          {"cpus_per_node", cluster.cpus_per_node()},
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
