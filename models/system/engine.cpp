// SPDX-License-Identifier: Apache-2.0
//
// What mechanisms may ask of a simulation, and where it comes to them.
#include "models/mechanism.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <utility>

namespace iocast {

double Engine::now() const
{
  return system_->now();
}

const Op& Engine::op(JobId id) const
{
  return system_->op_of(id);
}

uint32_t Engine::node(JobId id) const
{
  return system_->jobs_[id].owner;
}

uint32_t Engine::instances() const
{
  return spec_->of_nodes()    ? system_->placement_.nodes()
         : spec_->station < 0 ? 1
                              : system_->platform_.stations[static_cast<size_t>(spec_->station)].count;
}

uint32_t Engine::instance_of(JobId id) const
{
  return spec_->of_nodes() ? node(id)
         : spec_->station < 0
             ? 0
             : system_->instance_for(id, system_->platform_.stations[static_cast<size_t>(spec_->station)]);
}

void Engine::begin(Mechanism& of, uint32_t instance, uint32_t owner, const Op& about)
{
  system_->begin_piece({about, 0, 0, buffer_, instance, pieces_++, &of}, owner);
}

void Engine::go_on(std::vector<JobId>& jobs)
{
  for (const JobId id : jobs)
    go_on(id, system_->now());
  jobs.clear();
}

void Engine::go_on(JobId id, double time)
{
  ++system_->jobs_[id].at;
  system_->push(time, System::EventKind::resume, id);
}

void System::make_mechanisms()
{
  for (const auto& spec : platform_.mechanisms) {
    const Engine engine(*this, *spec, static_cast<uint32_t>(drain_steps_.size()));
    mechanisms_.push_back(spec->kind->make(engine, *spec));
    if (!spec->steps.empty())
      add_beside_steps(spec->steps, spec->at_once == 0 ? placement_.ranks : size_t{spec->at_once} * engine.instances());
  }
  first_fetched_ = drain_steps_.size();
}

/// False when the job waits.
bool System::at_mechanism(JobId id, const Step& step)
{
  Mechanism& mechanism = *mechanisms_[step.target];
  if (step.kind == Step::Kind::leave)
    mechanism.leave(id);
  else if (!mechanism.step(id))
    return false;
  ++jobs_[id].at;
  return true;
}

/// What each did in the phase that ends now, by section and name.
nlohmann::ordered_json System::report_mechanisms()
{
  auto json = nlohmann::ordered_json::object();
  for (const auto& mechanism : mechanisms_) {
    mechanism->check();
    json[mechanism->spec().kind->section][mechanism->spec().name] = mechanism->report();
  }
  return json;
}

} // namespace iocast
