// SPDX-License-Identifier: Apache-2.0
#include "real/watchdog.hpp"

#include "real/name.hpp"
#include "real/stopwatch.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <fmt/format.h>
#include <unistd.h>

namespace iocast {

Watchdog::Watchdog(const Pattern& pattern, uint32_t rank, const Patience& patience)
    : pattern_(pattern), rank_(rank), patience_(patience)
{
  if (patience_.report_seconds > 0 || patience_.give_up_seconds > 0)
    thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog()
{
  if (!thread_.joinable())
    return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Watchdog::watch()
{
  const double soonest = std::min(patience_.report_seconds > 0 ? patience_.report_seconds : patience_.give_up_seconds,
                                  patience_.give_up_seconds > 0 ? patience_.give_up_seconds : patience_.report_seconds);
  const std::chrono::duration<double> pause(std::clamp(soonest / 8, 0.001, 1.0));
  uint64_t seen    = 0;
  int64_t since_ns = 0;
  bool reported    = false;
  Op op; // what `seen` is about
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, pause, [this] { return over_; })) {
    const uint64_t turn = turn_.load(std::memory_order_acquire);
    const int64_t now   = now_ns();
    if (turn != seen) {
      if (reported)
        report(op, static_cast<double>(now - since_ns) * 1e-9, "was answered after");
      seen     = turn;
      since_ns = now;
      reported = false;
      continue;
    }
    if (turn % 2 == 0)
      continue;
    const double seconds = static_cast<double>(now - since_ns) * 1e-9;
    const bool gives_up  = patience_.give_up_seconds > 0 && seconds >= patience_.give_up_seconds;
    if ((reported || patience_.report_seconds <= 0 || seconds < patience_.report_seconds) && !gives_up)
      continue;
    // It has stood still for so long that it will hardly be replaced in this moment; if it is, the copy is thrown away.
    op = operation();
    if (turn_.load(std::memory_order_relaxed) != turn)
      continue;
    if (!reported)
      report(op, seconds, "has had no answer for");
    reported = true;
    if (gives_up) {
      report(op, seconds, "is given up after");
      _exit(1); // its thread can't be reached any more; the launcher ends the other ranks
    }
  }
  if (reported && turn_.load(std::memory_order_acquire) != seen)
    report(op, static_cast<double>(now_ns() - since_ns) * 1e-9, "was answered after");
}

/// What its name depends on.
Op Watchdog::operation() const
{
  Op op(kind_.load(std::memory_order_acquire), dataset_.load(std::memory_order_acquire),
        object_.load(std::memory_order_acquire));
  op.flags = flags_.load(std::memory_order_acquire);
  return op;
}

void Watchdog::report(const Op& op, double seconds, const char* what) const
{
  Name name(pattern_);
  name.point_at(op);
  const bool on_dataset = op.kind == OpKind::mkdir || op.kind == OpKind::rmdir || op.kind == OpKind::readdir;
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  fmt::print(stderr, "iocast-bench: {} of '{}' by rank {} on {} {} {:.1f} s.\n", name_of(op.kind),
             on_dataset ? name.dataset() : name.path(), rank_, host.data(), what, seconds);
}

} // namespace iocast
