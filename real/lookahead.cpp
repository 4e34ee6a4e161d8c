// SPDX-License-Identifier: Apache-2.0
#include "real/lookahead.hpp"

namespace iocast {

Lookahead::Lookahead(const Pattern& pattern, uint32_t rank)
    : pattern_(pattern), requests_(most_requests, Request(pattern))
{
  cursor_.rank = rank;
}

bool Lookahead::take(Op& op)
{
  if (!pattern_.next(cursor_, op))
    return false;
  if (op.kind != OpKind::phase) [[likely]]
    return true;
  next_phase_ = op.object;
  return false;
}

std::optional<size_t> Lookahead::next_phase()
{
  if (!next_phase_) { // the very first, or the end
    Op op;
    take(op);
  }
  return std::exchange(next_phase_, std::nullopt);
}

bool Lookahead::form(bool streams)
{
  forget();
  formed_from_ = cursor_;
  while (!over_ && formed_ < requests_.size()) {
    Request& next = requests_[formed_];
    if (!take(next.op)) {
      over_ = true;
      break;
    }
    ++formed_;
    if (next.op.kind <= OpKind::open)
      next.name.point_at(next.op);
    else if (Cursor behind = cursor_; streams && is_access(next.op.kind) && pattern_.stretch(behind, 1).count > 0)
      break;
  }
  return formed_ > 0;
}

std::span<const Request> Lookahead::unrecorded()
{
  const size_t first = std::exchange(recorded_, answered_);
  return std::span<const Request>(requests_).subspan(first, answered_ - first);
}

void Lookahead::look_back()
{
  if (has_next() || (over_ && formed_ > 0)) {
    next_phase_.reset();
    go_to(formed_from_, answered_);
  }
  forget();
  over_ = false;
}

void Lookahead::go_to(const Cursor& from, size_t operations)
{
  cursor_ = from;
  Op passed;
  for (size_t i = 0; i < operations; ++i)
    pattern_.next(cursor_, passed);
}

} // namespace iocast
