// SPDX-License-Identifier: Apache-2.0
#include "real/stopwatch.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <string>

namespace iocast {

namespace {

struct Pair {
  int64_t ticks;
  int64_t ns;
};

/// What both clocks say at one moment: of several tries the one between whose readings least time went by.
Pair both()
{
  Pair best{0, 0};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < 8; ++i) {
    const int64_t before = now_ns();
    const int64_t ticks  = Ticks::now();
    const int64_t after  = now_ns();
    if (after - before < least) {
      least = after - before;
      best  = {ticks, before + least / 2};
    }
  }
  return best;
}

thread_local Pair first{0, 0}; ///< the rate is that between this and the latest pair

/// Of begin(), for threads that come later.
Pair begun{0, 0};
double begun_rate = 1;

} // namespace

bool Ticks::begin()
{
  std::ifstream in("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
#ifdef __x86_64__
  counter_ = in >> source && source == "tsc";
#endif
  if (!counter_)
    return false;
  first = both();
  while (now_ns() < first.ns + 2'000'000) // a rough rate for the beginning
    ;
  const Pair second = both();
  here_.ns_per_tick = static_cast<double>(second.ns - first.ns) / static_cast<double>(second.ticks - first.ticks);
  align();
  begun      = first;
  begun_rate = here_.ns_per_tick;
  return true;
}

void Ticks::begin_thread()
{
  first             = begun;
  here_.ns_per_tick = begun_rate;
  align();
}

void Ticks::align()
{
  if (!counter_)
    return;
  const Pair here   = both();
  const double rate = static_cast<double>(here.ns - first.ns) / static_cast<double>(here.ticks - first.ticks);
  // A machine that slept has counted on while its clock stood still: compare anew from here.
  if (std::abs(rate / here_.ns_per_tick - 1) < 1e-3)
    here_.ns_per_tick = rate;
  else
    first = here;
  here_.ticks = here.ticks;
  here_.ns    = here.ns;
}

} // namespace iocast
