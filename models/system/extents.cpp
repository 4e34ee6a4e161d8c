// SPDX-License-Identifier: Apache-2.0
//
// Locks on ranges of objects: taken, granted and given back.
#include "input/error.hpp"
#include "models/system.hpp"

#include <fmt/format.h>

namespace iocast {

void System::make_extents()
{
  for (const auto& spec : platform_.locks) {
    extent_of_.push_back(spec.extent > 0 ? static_cast<int32_t>(extents_.size()) : -1);
    if (spec.extent > 0)
      extents_.emplace_back(spec, spec.station < 0 ? nullptr : &platform_.stations[static_cast<size_t>(spec.station)]);
  }
  extent_sums_.resize(extents_.size());
}

ExtentLocks* System::extents_of(const Step& step)
{
  const int32_t which = extent_of_[static_cast<size_t>(step.lock)];
  return which < 0 ? nullptr : &extents_[static_cast<size_t>(which)];
}

/// False when the job waits for ranges that others hold or requested before.
bool System::take_extents(JobId id, const Step& step, ExtentLocks& extents)
{
  return extents.objects[lock_key(id, step.lock)].acquire(id, jobs_[id].owner, step.lock_shared,
                                                          extents.cutter.cut(op_of(id)), extents.cutter, *extents.spec,
                                                          extents.sums);
}

/// Those that can have their ranges now are served.
void System::give_back_extents(JobId id, const Step& step, ExtentLocks& extents)
{
  ExtentLock& object = extents.objects[lock_key(id, step.lock)];
  object.drop(id);
  grant_extents(object, extents);
}

void System::grant_extents(ExtentLock& object, ExtentLocks& extents)
{
  std::vector<JobId> freed;
  object.grant(extents.cutter, *extents.spec, extents.sums, freed);
  for (const JobId next : freed)
    serve(next);
}

/// What ranges the jobs had or waited for are others' to have.
void System::give_up_extents(const std::vector<JobId>& lost)
{
  std::vector<std::pair<ExtentLock*, ExtentLocks*>> objects;
  for (const JobId id : lost)
    if (jobs_[id].locked)
      if (const Step& step = step_of(id); ExtentLocks* extents = extents_of(step)) {
        ExtentLock& object = extents->objects[lock_key(id, step.lock)];
        object.drop(id);
        jobs_[id].locked = false;
        objects.emplace_back(&object, extents);
      }
  for (const auto& [object, extents] : objects)
    grant_extents(*object, *extents);
}

void System::check_extents()
{
  for (size_t i = 0; i < extents_.size(); ++i) {
    uint64_t ranges = 0;
    for (const auto& [key, object] : extents_[i].objects) {
      ranges += object.ranges();
      if (!object.adds_up())
        throw RunError(fmt::format("Two nodes keep the same part of an object by the lock '{}', one of them alone; "
                                   "this is an error of the simulator.",
                                   extents_[i].spec->name));
    }
    if (ranges != extents_[i].sums.ranges)
      throw RunError(fmt::format(
          "Nodes keep {} ranges by the lock '{}', not the {} that were granted; this is an error of the simulator.",
          ranges, extents_[i].spec->name, extents_[i].sums.ranges));
    extent_sums_[i] = extents_[i].sums;
  }
}

} // namespace iocast
