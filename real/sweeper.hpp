// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "real/backend.hpp"
#include "real/lookahead.hpp"
#include "real/pacer.hpp"

namespace iocast {

/// Removes what an unfinished run has left of one rank's datasets, whatever state they are in.
class Sweeper {
public:
  Sweeper(const Pattern& pattern, Backend& backend, Pacer& pacer) : backend_(backend), pacer_(pacer), name_(pattern) {}

  /// Up to the next phase.
  void sweep(Lookahead& lookahead, uint32_t rank, RankPhase& phase);

private:
  void remove(const Op& op, uint32_t rank, RankPhase& phase);
  void remove_dataset(const Op& rmdir, uint32_t rank, RankPhase& phase);

  Backend& backend_;
  Pacer& pacer_;
  Name name_;
};

} // namespace iocast
