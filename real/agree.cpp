// SPDX-License-Identifier: Apache-2.0
#include "real/agree.hpp"

#include <cstdio>
#include <fmt/format.h>

namespace iocast {

void settle(const Cluster& cluster, const std::optional<Failure>& mine)
{
  cluster.rendezvous();
  const auto everyone = static_cast<int>(cluster.size());
  int lowest          = mine ? static_cast<int>(cluster.rank()) : everyone;
  MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, cluster.comm());
  if (lowest == everyone)
    return;
  std::string message;
  int about[2] = {0, 0};
  if (static_cast<int>(cluster.rank()) == lowest) {
    message = mine->message;
    // Bad input, and a place where nothing is, that rank 0 sees is the same everywhere.
    if (cluster.size() > 1 && (lowest > 0 || mine->exit_code == 1))
      message = fmt::format("rank {} on host {}: {}", lowest, cluster.host(), message);
    fmt::print(stderr, "iocast-bench: {}\n", message);
    std::fflush(stderr);
    about[0] = mine->exit_code;
    about[1] = static_cast<int>(message.size());
  }
  MPI_Bcast(about, 2, MPI_INT, lowest, cluster.comm());
  message.resize(static_cast<size_t>(about[1]));
  MPI_Bcast(message.data(), about[1], MPI_CHAR, lowest, cluster.comm());
  throw AgreedFailure(about[0], message);
}

} // namespace iocast
