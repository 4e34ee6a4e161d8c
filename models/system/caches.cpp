// SPDX-License-Identifier: Apache-2.0
//
// The part of System that looks into caches.
#include "input/error.hpp"
#include "models/pages.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace iocast {

bool Caches::touch(uint32_t instance, uint64_t key, uint64_t object, uint32_t weight, bool comes_ahead)
{
  Cache& cache      = instances[instance];
  const bool coming = !ahead.empty() && ahead[instance].forget(key);
  if (!holders)
    return cache.touch(
        key, weight, [this](uint64_t) { evicted = true; }, comes_ahead);
  if (!coming && !cache.holds(key))
    holders->add(key, object, instance);
  const bool held = cache.touch(
      key, weight,
      [&](uint64_t removed) {
        evicted = true;
        holders->remove(removed, instance);
      },
      comes_ahead);
  if (!held && !cache.holds(key))
    holders->remove(key, instance); // there was no place for it
  return held;
}

bool Caches::renew(uint32_t instance, bool held, double now)
{
  const uint32_t entry = instances[instance].newest();
  if (entry == Cache::none)
    return held;
  auto& entries = validity[instance];
  if (entry >= entries.size())
    entries.resize(entry + 1);
  Validity& valid = entries[entry];
  if (held && now < valid.until)
    return true;
  sums.expired += held;
  valid.length = held ? std::min(2 * valid.length, spec->valid_at_most) : spec->valid;
  valid.until  = now + valid.length;
  return false;
}

bool Caches::forget(uint32_t instance, uint64_t key)
{
  const bool coming = !ahead.empty() && ahead[instance].forget(key);
  const bool held   = instances[instance].forget(key);
  if (holders)
    holders->remove(key, instance);
  return coming || held;
}

void Caches::forget_elsewhere(uint64_t key, uint32_t spared)
{
  for (const uint32_t instance : holders->take(key, spared)) {
    forget(instance, key);
    ++sums.taken;
  }
}

const CacheSums& Caches::checked()
{
  sums.held        = 0;
  sums.interrupted = 0;
  sums.unused      = in_vain;
  uint64_t known   = 0; // by the directory
  bool adds_up     = true;
  for (const auto& cache : instances) {
    adds_up = adds_up && cache.adds_up();
    sums.held += cache.held();
    sums.rate = std::min(sums.rate, cache.rate());
    sums.unused += cache.unused();
    known += cache.entries();
  }
  for (const auto& coming : ahead) {
    adds_up = adds_up && coming.adds_up();
    known += coming.pages();
    sums.interrupted += coming.interrupted();
  }
  if (!adds_up || (holders && holders->size() != known))
    throw RunError(fmt::format(
        "What the cache '{}' holds is not what came in and did not leave; this is an error of the simulator.",
        spec->name));
  return sums;
}

void System::make_caches()
{
  cache_sums_.resize(platform_.caches.size());
  for (const auto& spec : platform_.caches) {
    caches_.emplace_back(spec, spec.of_nodes()    ? placement_.nodes()
                               : spec.station < 0 ? 1
                                                  : platform_.stations[static_cast<size_t>(spec.station)].count);
    caches_.back().idle = never_hits(spec);
  }
}

/// Whether a single kind of operation looks there, which meets no object twice, so that keeping them would cost time
/// and memory for nothing.
bool System::never_hits(const CacheSpec& spec) const
{
  if (spec.ahead > 0)
    return false;
  const auto which = static_cast<uint32_t>(&spec - platform_.caches.data());
  const auto looks = [which](const std::vector<Step>& steps) {
    return std::any_of(steps.begin(), steps.end(), [which](const Step& step) {
      return step.kind == Step::Kind::look && !step.forgets && step.target == which;
    });
  };
  for (const auto& cache : platform_.caches)
    if (looks(cache.fetch))
      return false;
  OpKind only = OpKind::phase;
  for (const auto& [kind, count] : pattern_.footprint().operations) {
    const auto& steps = platform_.routes[static_cast<size_t>(kind)].steps;
    if (count == 0 || kind == only || !looks(steps))
      continue;
    if (only != OpKind::phase || std::any_of(steps.begin(), steps.end(), [which](const Step& step) {
          return step.kind == Step::Kind::look && step.evicts && step.target == which;
        }))
      return false;
    only = kind;
  }
  return only != OpKind::phase && !pattern_.repeats(only);
}

/// The number of the instance that has this page of the operation's object.
uint32_t System::cache_instance(JobId id, const Caches& caches, uint64_t offset) const
{
  if (caches.spec->of_nodes())
    return jobs_[id].owner;
  if (caches.spec->station < 0)
    return 0;
  const auto& station = platform_.stations[static_cast<size_t>(caches.spec->station)];
  if (station.spread != Spread::stripe || caches.spec->page == 0 || (jobs_[id].piece && is_own_station(id, station)))
    return instance_for(id, station);
  return instance_of(op_of(id), station, offset);
}

/// The job goes on with what the platform says of a hit or of a miss. False when it waits for what is on its way, and
/// will look again.
bool System::look_up(JobId id, const Step& step)
{
  Caches& caches = caches_[step.target];
  const Op& op   = op_of(id);
  if (step.forgets) {
    if (step.flush == Flush::all)
      forget(id, caches);
    else
      forget_elsewhere(id, caches, step.flush);
    ++jobs_[id].at;
    return true;
  }
  if (!caches.ahead.empty() && await_pages(id, caches))
    return false;
  caches.evicted        = false;
  bool known            = false;
  bool hit              = true;
  Cache* cache          = nullptr;
  const uint64_t object = object_key(op);
  const auto touch      = [&](uint32_t instance, uint64_t key, uint32_t weight) {
    cache = &caches.instances[instance];
    if (!cache->knows(key))
      return;
    known     = true;
    bool held = caches.touch(instance, key, object, weight);
    if (!caches.validity.empty() && cache->knows(key))
      held = caches.renew(instance, held, now_);
    hit = held && hit;
  };
  const uint64_t page_size = caches.spec->page;
  if (page_size == 0)
    touch(cache_instance(id, caches, 0), entry_key(op), 1);
  else
    for_each_page(op, page_size, [&](uint64_t page, uint32_t bytes) {
      touch(cache_instance(id, caches, page * page_size), page_key(op, page), bytes);
    });
  if (cache && cache->rate() < 1) {
    Recent& recent = cache->recent(jobs_[id].kind);
    if (known) {
      recent.hits.add(hit);
      recent.evictions.add(caches.evicted);
    } else {
      hit = uniform(id) < recent.hits.share;
      if (step.evicts)
        caches.evicted = uniform(id) < recent.evictions.share;
    }
    caches.sums.guessed += !known;
  }
  jobs_[id].evicted = caches.evicted;
  ++caches.sums.lookups;
  caches.sums.hits += hit;
  jobs_[id].at = static_cast<uint16_t>(jobs_[id].at + (hit ? 1 : step.jump));
  if (caches.ahead.empty())
    return true;
  if (!jobs_[id].waited)
    read_ahead(id, caches);
  jobs_[id].waited = false;
  return true;
}

/// Of pages, those from the first on, as far as they are there.
void System::forget(JobId id, Caches& caches)
{
  const Op& op = op_of(id);
  if (caches.spec->page == 0) {
    caches.forget(cache_instance(id, caches, 0), entry_key(op));
    return;
  }
  for (uint64_t page = 0;; ++page) {
    const uint32_t instance = cache_instance(id, caches, page * caches.spec->page);
    const uint64_t key      = page_key(op, page);
    if (caches.instances[instance].knows(key) && !caches.forget(instance, key))
      return;
  }
}

/// Of pages, those of an access; what concerns the object as a whole takes out all that there are.
void System::forget_elsewhere(JobId id, Caches& caches, Flush where)
{
  const Op& op          = op_of(id);
  const uint32_t spared = where == Flush::elsewhere ? jobs_[id].owner : nobody;
  if (caches.spec->page == 0)
    caches.forget_elsewhere(entry_key(op), spared);
  else if (is_access(op.kind))
    for_each_page(op, caches.spec->page,
                  [&](uint64_t page, uint32_t) { caches.forget_elsewhere(page_key(op, page), spared); });
  else
    for (const uint64_t key : caches.holders->keys_of(object_key(op)))
      caches.forget_elsewhere(key, spared);
}

void System::check_caches()
{
  for (size_t i = 0; i < caches_.size(); ++i)
    cache_sums_[i] = caches_[i].checked();
}

} // namespace iocast
