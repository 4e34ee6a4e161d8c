// SPDX-License-Identifier: Apache-2.0
//
// The way of a job through the steps of its route.
#include "models/system.hpp"

namespace iocast {

/// All of a visit to a station where nobody ever waits; it may begin and end later.
inline void System::visit_at_once(JobId id, Station& station, double begin, double work)
{
  VisitSums& sums = sums_of(id);
  ++sums.visits;
  sums.total += work;
  station.occupancy.busy.add(work);
  station.occupancy.present.add(work);
  if (!is_client(id)) [[unlikely]] // a client answers before the phase is over
    visit_ahead(station, begin, work);
}

[[gnu::always_inline]] inline Limit& System::limit_for(JobId id, const Step& step)
{
  const auto& spec = platform_.limits[step.target];
  size_t which     = spec.per == Per::node ? jobs_[id].owner : 0;
  if (spec.station >= 0) [[unlikely]] {
    const auto& station = platform_.stations[static_cast<size_t>(spec.station)];
    which               = which * station.count + instance_for(id, station);
  }
  return limits_[step.target][which];
}

/// Goes through the route until something must be waited for. Time that nobody else can lengthen (delays, stations that
/// never make anyone wait) is added up and costs one event.
void System::advance(JobId id)
{
  double from  = now_; // or the end of a visit with a lock that the job went on from
  double ahead = 0;
  for (;;) {
    Job& job         = jobs_[id];
    const Step& step = step_of(id);
    switch (step.kind) {
      case Step::Kind::delay:
        ahead += draw(id, step);
        ++job.at;
        continue;
      case Step::Kind::visit:
        if (stations_[step.target].never_waits && step.lock < 0) {
          const double work = work_of(id, step);
          visit_at_once(id, stations_[step.target], from + ahead, work);
          ahead += work;
          ++job.at;
          continue;
        }
        if (stations_[step.target].never_waits && step.lock >= 0 && ahead == 0 && from == now_)
          if (const double end = hold_lock_ahead(id, step); end >= 0) {
            visit_at_once(id, stations_[step.target], now_, end - now_);
            from = end;
            ++job.at;
            continue;
          }
        break;
      case Step::Kind::transfer:
        if (!stations_[step.target].outages.any())
          if (const double seconds = pass(id, step, from + ahead); seconds >= 0) {
            ahead += seconds;
            ++job.at;
            continue;
          }
        break;
      case Step::Kind::train:
        if (!is_train(id, step)) {
          ++job.at;
          continue;
        }
        break;
      case Step::Kind::look:
        if (Caches& caches = caches_[step.target]; caches.idle) {
          caches.sums.lookups += !step.forgets;
          job.at = static_cast<uint16_t>(job.at + (step.forgets ? 1 : step.jump));
          continue;
        }
        break;
      case Step::Kind::jump:
        job.at = static_cast<uint16_t>(job.at + step.jump);
        continue;
      case Step::Kind::end_part:
        end_part(id, from + ahead);
        job.at = static_cast<uint16_t>(job.at + (step.jump == 1 || clients_[id].op.bytes() > 0 ? 1 : step.jump));
        continue;
      default:
        break;
    }
    if (ahead > 0 || from > now_) {
      push(from + ahead, EventKind::resume, id);
      if (step.kind == Step::Kind::release)
        if (const JobId soon = limit_for(id, step).front(); soon != nobody)
          prefetch(soon);
      return;
    }
    switch (step.kind) {
      case Step::Kind::visit:
        begin_visit(id, step);
        return;
      case Step::Kind::seize:
        if (!limit_for(id, step).acquire(links_, id, platform_.limits[step.target].slots))
          return;
        ++job.at;
        break;
      case Step::Kind::release:
        if (const JobId next = limit_for(id, step).release(links_, barges(id, platform_.limits[step.target]));
            next != nobody) {
          granted_.push_back(next);
          prefetch(next);
        }
        ++job.at;
        break;
      case Step::Kind::transfer:
      case Step::Kind::train:
        if (step.stripes == Step::spanned || (step.kind == Step::Kind::train && step.shard_way >= 0))
          split_transfer(id, step);
        else if (begin_transfer(id, step))
          job.at = static_cast<uint16_t>(job.at + step.jump);
        return;
      case Step::Kind::shards:
        if (split_shards(id, step))
          return;
        ++job.at;
        break;
      case Step::Kind::enter:
      case Step::Kind::flush:
      case Step::Kind::drained:
        if (!at_buffer(id, step))
          return;
        break;
      case Step::Kind::use:
      case Step::Kind::leave:
        if (!at_mechanism(id, step))
          return;
        break;
      case Step::Kind::look:
        if (!look_up(id, step))
          return;
        break;
      case Step::Kind::recalled:
        job.at = static_cast<uint16_t>(job.at + (job.recalled ? 1 : step.jump));
        break;
      case Step::Kind::evicted:
        job.at = static_cast<uint16_t>(job.at + (job.evicted ? 1 : step.jump));
        break;
      case Step::Kind::end: {
        if (job.kind == OpKind::phase) {
          if (!awake(id))
            return;
          break;
        }
        if (clients_[id].op.is_joint() && !part(id))
          return;
        const double response = now_ - clients_[id].since;
        finish_op(id);
        const double seconds =
            was_cut(id) ? 0 : pattern_.arrivals_of(id).think_seconds(response, options_.seed, id, jobs_[id].operations);
        if (seconds > 0) {
          if (now_ + (seconds + platform_.think_overshoot) < deadline_ || !may_be_cut(id)) {
            think(id, seconds);
            return;
          }
          if (!cut(id)) // it would sleep until the phase is over
            return;
          break;
        }
        if (!pull_op(id))
          return;
        break;
      }
      default:
        break;
    }
  }
}

} // namespace iocast
