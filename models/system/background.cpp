// SPDX-License-Identifier: Apache-2.0
//
// The work of others: requests that come at random and visit one station.
#include "input/error.hpp"
#include "input/error_code.hpp"
#include "input/portable.hpp"
#include "models/system.hpp"

#include <cmath>
#include <fmt/format.h>

namespace iocast {

void System::make_background()
{
  for (const auto& work : platform_.background) {
    Step step;
    step.kind   = Step::Kind::visit;
    step.target = work.station;
    step.law    = work.demand;
    beside_steps_.push_back(step);
    // Those that are served at once are not too many, nor those that came during some stalls.
    const auto& spec = platform_.stations[work.station];
    most_background_ += size_t{spec.servers} * spec.count;
    for (const auto& stall : platform_.stalls)
      most_background_ += static_cast<size_t>(10 * work.rate * stall.length);
    for (const auto& failure : platform_.failures)
      most_background_ += static_cast<size_t>(10 * work.rate * (failure.length + failure.timeout));
  }
}

void System::schedule_background(uint32_t which)
{
  const double rate = platform_.background[which].rate;
  if (rate <= 0)
    return;
  const auto words = random_words(options_.seed, Stream::background, which, 2 * background_count_[which]);
  push(now_ - portable::log(to_uniform(words[0])) / rate, EventKind::background, which);
}

void System::background_arrival(uint32_t which)
{
  const Step& step = beside_steps_[which];
  if (jobs_.size() - free_jobs_.size() > placement_.ranks + most_background_) [[unlikely]]
    throw Coded<RunError>(error_code::work_piles_up,
                          fmt::format("The work of others '{}' comes to the station '{}' of '{}' faster than it is "
                                      "served: {} requests of others are there. Lower its rate or its share.",
                                      platform_.background[which].name,
                                      platform_.stations[platform_.background[which].station].name, platform_.file,
                                      most_background_));
  const JobId id       = new_job();
  Job& job             = jobs_[id];
  job.at               = static_cast<uint16_t>(which);
  job.beside           = true;
  const auto words     = random_words(options_.seed, Stream::background, which, 2 * background_count_[which]++ + 1);
  job.words            = {words[1], words[2], words[3]};
  job.draws            = 1; // its instance; its demand is the only other one
  const auto instances = stations_[step.target].instances.size();
  job.instance         = static_cast<uint32_t>(to_uniform(words[0]) * static_cast<double>(instances));
  begin_visit(id, step);
  schedule_background(which);
}

} // namespace iocast
