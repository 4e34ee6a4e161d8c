// SPDX-License-Identifier: Apache-2.0
#include "real/meeting.hpp"

#include "real/stopwatch.hpp"

#include <fmt/format.h>
#include <sched.h>

namespace iocast {

Meeting::Meeting(MPI_Comm group, uint64_t number, bool acts_together, Alarm& alarm)
    : group_(group), number_(number), alarm_(alarm)
{
  int ranks = 1;
  MPI_Comm_size(group_, &ranks);
  together_ = acts_together && ranks > 1;
}

bool Meeting::may_begin(bool in_time, RankPhase& phase)
{
  const int words   = meet(in_time ? begins : begins | late);
  phase.interrupted = words & fails;
  phase.cut         = !phase.interrupted && words & left;
  cut_after_        = words & late;
  return !(words & (fails | left));
}

bool Meeting::leave(const RankPhase& phase)
{
  const bool stopped = phase.failure || phase.interrupted;
  if (!together_ || met_at_last_)
    return stopped || phase.cut;
  return meet(stopped ? fails : phase.cut ? left : ended) != ended; // what is shared is closed by all
}

/// The words of all ranks of the group.
int Meeting::meet(int word)
{
  int words = 0;
  MPI_Request all;
  MPI_Iallreduce(&word, &words, 1, MPI_INT, MPI_BOR, group_, &all);
  int64_t listens_ns = now_ns() + Alarm::listens_every_ns;
  for (int done = 0; MPI_Test(&all, &done, MPI_STATUS_IGNORE), !done; sched_yield())
    if (const int64_t now = now_ns(); now >= listens_ns) {
      listens_ns = now + Alarm::listens_every_ns;
      alarm_.heard(); // and passes it on
    }
  met_at_last_ = words != begins;
  if (words == (begins | ended) || words == (begins | late | ended))
    throw RunError(fmt::format(
        "The pattern gives the ranks of group {} different numbers of shared and collective operations in one "
        "phase; this is an error of the pattern.",
        number_));
  return words;
}

} // namespace iocast
