// SPDX-License-Identifier: Apache-2.0
#include "real/sweeper.hpp"

#include "real/signals.hpp"

#include <cerrno>
#include <charconv>
#include <string>
#include <vector>

namespace iocast {

namespace {
/// "rank3.item07" -> 3, 7
std::vector<uint64_t> numbers_in(const std::string& name)
{
  std::vector<uint64_t> numbers;
  const char* const end = name.data() + name.size();
  for (const char* at = name.data(); at < end;) {
    uint64_t number   = 0;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ptr == at) {
      ++at;
      continue;
    }
    if (parsed.ec == std::errc())
      numbers.push_back(number);
    at = parsed.ptr;
  }
  return numbers;
}
} // namespace

void Sweeper::sweep(Lookahead& lookahead, uint32_t rank, RankPhase& phase)
{
  Op op;
  while (!phase.interrupted && !(phase.interrupted = stop_requested()) && lookahead.take(op))
    if (op.kind == OpKind::unlink)
      remove(op, rank, phase);
    else if (op.kind == OpKind::rmdir)
      remove_dataset(op, rank, phase);
}

void Sweeper::remove(const Op& op, uint32_t rank, RankPhase& phase)
{
  if (!pacer_.take_turn(phase))
    return; // the caller hears it, too
  name_.point_at(op);
  const int error = op.kind == OpKind::rmdir ? backend_.rmdir(name_) : backend_.remove_left(name_);
  if (error == 0)
    ++phase.swept;
  else if (error != ENOENT && error != EISDIR) { // a directory is left to its own rmdir
    phase.recorder.record_error(op.kind);
    phase.errors.add({error, op.kind, rank, 1, 0, op.dataset, op.object, 0});
  }
}

/// The stream has removed what it would remove after a whole run; what else lies there is listed. Ours is what the
/// pattern would call so, and the number of an object is one of those in its name; anything else stays, and the dataset
/// with it.
void Sweeper::remove_dataset(const Op& rmdir, uint32_t rank, RankPhase& phase)
{
  name_.point_at(rmdir);
  for (const auto& found : backend_.list(name_.dataset()))
    for (const uint64_t number : numbers_in(found)) {
      const Op object(OpKind::unlink, rmdir.dataset, number);
      name_.point_at(object);
      if (found == name_.object()) {
        remove(object, rank, phase);
        break;
      }
    }
  remove(rmdir, rank, phase);
}

} // namespace iocast
