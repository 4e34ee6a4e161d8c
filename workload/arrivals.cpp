// SPDX-License-Identifier: Apache-2.0
#include "workload/arrivals.hpp"

#include "input/error.hpp"
#include "input/portable.hpp"
#include "workload/random.hpp"

#include <cmath>
#include <fmt/format.h>

namespace iocast {

namespace {
double draw(uint64_t seed, uint32_t rank, uint64_t number)
{
  return to_uniform(random_words(seed, Stream::arrival, rank, number)[0]);
}

bool chosen(const Parameters& given, const std::string& name, const std::string& no, const std::string& yes)
{
  const auto& text = given.text(name);
  if (text != no && text != yes)
    throw InputError(fmt::format("The parameter '{}' can't be '{}'. {}", name, text,
                                 allowed_sentence(text, std::vector<std::string>{no, yes})));
  return text == yes;
}
} // namespace

double Arrivals::think_seconds(double response, uint64_t seed, uint32_t rank, uint64_t number) const
{
  double seconds = waiting_factor * response;
  if (think_time > 0)
    seconds += think == Law::fixed ? think_time : -portable::log(draw(seed, rank, number)) * think_time;
  return seconds;
}

int64_t Arrivals::gap_ns(uint64_t seed, uint32_t rank, uint64_t number, bool first) const
{
  double beats = 1;
  if (gap == Law::exponential)
    beats = -portable::log(draw(seed, rank, number));
  else if (first)
    beats = draw(seed, rank, number);
  return std::llround(beats / rate * 1e9);
}

const std::vector<Parameter>& arrival_parameters()
{
  static const std::vector<Parameter> parameters{
      {"waiting_factor", Unit::factor, "0", "T: after each operation wait T times its response time", 0, 1e6},
      {"think_time", Unit::seconds, "0s", "after each operation wait so long in addition", 0, 86400},
      {"think_law", Unit::text, "fixed",
       "think_time is fixed, or the mean of an exponential law: fixed or exponential"},
      {"rate", Unit::rate, "0/s",
       "open loop: operations a second that each rank intends, whatever the answers take; 0 for none", 0, 1e9},
      {"arrivals", Unit::text, "poisson", "open loop: poisson (exponential gaps) or fixed (equal gaps)"},
      {"placement", Unit::text, "block",
       "which ranks share a node: block (the first ones the first node) or cyclic (rank r is on node r mod nodes)"}};
  return parameters;
}

bool lies_cyclically(const Parameters& given)
{
  return chosen(given, "placement", "block", "cyclic");
}

Arrivals read_arrivals(const Parameters& given)
{
  Arrivals arrivals;
  arrivals.waiting_factor = given.number("waiting_factor");
  arrivals.think_time     = given.number("think_time");
  arrivals.think =
      chosen(given, "think_law", "fixed", "exponential") ? Arrivals::Law::exponential : Arrivals::Law::fixed;
  arrivals.rate = given.number("rate");
  arrivals.gap  = chosen(given, "arrivals", "poisson", "fixed") ? Arrivals::Law::fixed : Arrivals::Law::exponential;
  if (arrivals.is_open() && arrivals.thinks())
    throw InputError("A workload with a rate is an open loop and doesn't think between operations; leave out rate, or "
                     "waiting_factor "
                     "and think_time.");
  return arrivals;
}

} // namespace iocast
