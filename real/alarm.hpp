// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/cluster.hpp"

#include <array>
#include <atomic>
#include <thread>

namespace iocast {

/// Tells the other ranks, in the middle of a phase, that one can't go on: without it they would work for nothing until
/// the phase ends. The word spreads along a binary tree, so that no rank sends more than three messages however many
/// fail at once; every rank looks for it now and then.
class Alarm {
public:
  static constexpr int64_t listens_every_ns = 250'000'000; ///< how often a rank looks for the word

  explicit Alarm(const Cluster& cluster);
  ~Alarm();
  Alarm(const Alarm&)            = delete;
  Alarm& operator=(const Alarm&) = delete;

  /// From any thread of the rank; the next heard() of the rank's own thread passes it on.
  void raise();
  /// Whether the word is out. The rank's own thread also looks for it and passes it on.
  bool heard();
  /// Waits, asleep, until all ranks have left the phase; no message is under way afterwards.
  void finish();

private:
  void listen();
  void pass_on();

  const Cluster& cluster_;
  const std::thread::id own_ = std::this_thread::get_id(); ///< the only thread that speaks MPI
  std::atomic<bool> raised_{false};
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::array<int, 3> neighbours_{};
  int neighbour_count_ = 0;
  int received_        = 0;
  bool on_             = false; ///< passed on
  MPI_Request word_    = MPI_REQUEST_NULL;
  std::array<MPI_Request, 3> passed_on_{MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

} // namespace iocast
