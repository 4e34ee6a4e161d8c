// SPDX-License-Identifier: Apache-2.0
//
// The part of System that looks into caches.
#include "input/error.hpp"
#include "models/pages.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace iocast {

bool Caches::touch(uint32_t instance, uint64_t key)
{
  Cache& cache = instances[instance];
  if (!holders)
    return cache.touch(key, [this](uint64_t) { evicted = true; });
  if (!cache.holds(key))
    holders->add(key, instance);
  const bool held = cache.touch(key, [&](uint64_t removed) {
    evicted = true;
    holders->remove(removed, instance);
  });
  if (!held && !cache.holds(key))
    holders->remove(key, instance); // there was no place for it
  return held;
}

uint64_t Caches::touch(uint32_t instance, const Pages& used, bool comes_ahead)
{
  PageCache& cache      = pages[instance];
  const uint64_t block  = used.key();
  const uint64_t coming = ahead.empty() ? 0 : ahead[instance].forget(block, used.mask);
  if (!page_holders)
    return cache.touch(
        block, used.mask, used.weight, [this](uint64_t, uint64_t) { evicted = true; }, comes_ahead);
  const uint64_t before = cache.held(block) | coming;
  const uint64_t held   = cache.touch(
      block, used.mask, used.weight,
      [&](uint64_t of, uint64_t removed) {
        evicted = true;
        if (of != block)
          page_holders->remove(of, removed, instance);
      },
      comes_ahead);
  const uint64_t after = cache.held(block);
  if ((before & ~after) != 0)
    page_holders->remove(block, before & ~after, instance);
  if ((after & ~before) != 0)
    page_holders->add({used.object, used.block, after & ~before, used.weight}, instance);
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

void Caches::forget(uint32_t instance, uint64_t key)
{
  instances[instance].forget(key);
  if (holders)
    holders->remove(key, instance);
}

uint64_t Caches::there(uint32_t instance, uint64_t block) const
{
  return pages[instance].held(block) | (ahead.empty() ? 0 : ahead[instance].coming(block));
}

void Caches::forget(uint32_t instance, uint64_t block, uint64_t which)
{
  if (!ahead.empty())
    ahead[instance].forget(block, which);
  pages[instance].forget(block, which);
  if (page_holders)
    page_holders->remove(block, which, instance);
}

void Caches::forget_elsewhere(uint64_t key, uint32_t spared)
{
  for (const uint32_t instance : holders->take(key, spared)) {
    forget(instance, key);
    ++sums.taken;
  }
}

void Caches::forget_elsewhere(uint64_t block, uint64_t which, uint32_t spared)
{
  for (const auto& share : page_holders->take(block, which, spared)) {
    forget(share.instance, block, share.pages);
    sums.taken += static_cast<uint64_t>(std::popcount(share.pages));
  }
}

void Caches::clear(uint32_t instance)
{
  if (pages.empty())
    instances[instance].clear();
  else
    pages[instance].clear();
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
    known += cache.entries();
  }
  for (const auto& cache : pages) {
    adds_up = adds_up && cache.adds_up();
    sums.held += cache.held();
    sums.rate = std::min(sums.rate, cache.rate());
    sums.unused += cache.unused();
    known += cache.pages();
  }
  for (const auto& coming : ahead) {
    adds_up = adds_up && coming.adds_up();
    known += coming.pages();
    sums.interrupted += coming.interrupted();
  }
  if (!adds_up || (holders && holders->size() != known) || (page_holders && page_holders->size() != known))
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
                               : spec.of_ranks()  ? placement_.ranks
                               : spec.station < 0 ? 1
                                                  : platform_.stations[static_cast<size_t>(spec.station)].count);
    caches_.back().idle = never_hits(spec);
  }
}

/// Whether a single kind of operation looks there, which meets no object twice, so that keeping them would cost time
/// and memory for nothing.
bool System::never_hits(const CacheSpec& spec) const
{
  if (spec.ahead > 0 || spec.calls_back)
    return false;
  const auto which = static_cast<uint32_t>(&spec - platform_.caches.data());
  const auto looks = [which](const std::vector<Step>& steps) {
    return std::any_of(steps.begin(), steps.end(), [which](const Step& step) {
      return step.kind == Step::Kind::look && !step.forgets && step.target == which;
    });
  };
  for (const auto& cache : platform_.caches)
    if (looks(cache.steps))
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

/// Whether pages of the operation's object are in more than one instance.
bool System::is_striped(JobId id, const Caches& caches) const
{
  if (caches.spec->of_nodes() || caches.spec->station < 0 || caches.spec->page == 0)
    return false;
  const auto& station = platform_.stations[static_cast<size_t>(caches.spec->station)];
  return station.spread == Spread::stripe && !(jobs_[id].piece && is_own_station(id, station));
}

/// The number of the instance that has this page of the operation's object.
uint32_t System::cache_instance(JobId id, const Caches& caches, uint64_t offset) const
{
  if (caches.spec->of_nodes())
    return jobs_[id].owner;
  if (caches.spec->of_ranks())
    return id; // only ranks look there
  if (caches.spec->station < 0)
    return 0;
  const auto& station = platform_.stations[static_cast<size_t>(caches.spec->station)];
  return is_striped(id, caches) ? instance_of(op_of(id), station, offset) : instance_for(id, station);
}

/// Calls do_it(instance, pages) for those of a block that are in one instance, in order.
template <class DoIt> void System::for_each_part(JobId id, const Caches& caches, Pages pages, DoIt do_it) const
{
  if (!is_striped(id, caches)) {
    do_it(cache_instance(id, caches, pages.first() * caches.spec->page), pages);
    return;
  }
  const auto instance_at = [&](int bit) {
    return cache_instance(id, caches, (pages.first() + static_cast<uint64_t>(bit)) * caches.spec->page);
  };
  while (pages.mask != 0) {
    const uint32_t instance = instance_at(std::countr_zero(pages.mask));
    uint64_t part           = 0;
    while (pages.mask != 0 && instance_at(std::countr_zero(pages.mask)) == instance) {
      part |= lowest_bit(pages.mask);
      pages.mask &= pages.mask - 1;
    }
    do_it(instance, Pages{pages.object, pages.block, part, pages.weight});
  }
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
      jobs_[id].recalled = forget_elsewhere(id, caches, step.flush);
    ++jobs_[id].at;
    return true;
  }
  if (!caches.ahead.empty() && await_pages(id, caches))
    return false;
  caches.evicted   = false;
  bool known       = false;
  bool hit         = true;
  Sampling* memory = nullptr;
  if (caches.spec->page == 0) {
    const uint32_t instance = cache_instance(id, caches, 0);
    const uint64_t key      = entry_key(op);
    Cache& cache            = caches.instances[instance];
    memory                  = &cache;
    if (cache.knows(key)) {
      known = true;
      hit   = caches.touch(instance, key);
      if (!caches.validity.empty() && cache.knows(key))
        hit = caches.renew(instance, hit, now_);
    }
  } else {
    const auto touch = [&](uint32_t instance, const Pages& pages) {
      PageCache& cache = caches.pages[instance];
      memory           = &cache;
      const Pages part = pages.only(cache.known(pages.key(), pages.mask));
      if (part.mask == 0)
        return;
      known = true;
      hit   = caches.touch(instance, part) == part.mask && hit;
    };
    for_each_block(op, caches.spec->page, [&](const Pages& pages) { for_each_part(id, caches, pages, touch); });
  }
  if (memory && memory->rate() < 1) {
    Recent& recent = memory->recent(jobs_[id].kind);
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
  bool all = true; // up to here
  for (uint64_t block = 0; all; ++block)
    for_each_part(id, caches, {object_key(op), block, ~uint64_t{0}, 0}, [&](uint32_t instance, const Pages& pages) {
      if (!all)
        return;
      const uint64_t key     = pages.key();
      const uint64_t known   = caches.pages[instance].known(key, pages.mask);
      const uint64_t missing = lowest_bit(known & ~caches.there(instance, key));
      all                    = missing == 0;
      caches.forget(instance, key, known & (missing - 1)); // without one, all
    });
}

/// Of pages, those of an access; what concerns the object as a whole takes out all that there are. True if anybody had
/// some.
bool System::forget_elsewhere(JobId id, Caches& caches, Flush where)
{
  const Op& op          = op_of(id);
  const uint64_t before = caches.sums.taken;
  const uint32_t spared = where == Flush::elsewhere ? cache_instance(id, caches, 0) : nobody;
  if (caches.spec->page == 0)
    caches.forget_elsewhere(entry_key(op), spared);
  else if (is_access(op.kind))
    for_each_block(op, caches.spec->page,
                   [&](const Pages& pages) { caches.forget_elsewhere(pages.key(), pages.mask, spared); });
  else
    for (const uint64_t block : caches.page_holders->blocks_of(object_key(op)))
      caches.forget_elsewhere(block, ~uint64_t{0}, spared);
  return caches.sums.taken > before;
}

void System::check_caches()
{
  for (size_t i = 0; i < caches_.size(); ++i)
    cache_sums_[i] = caches_[i].checked();
}

} // namespace iocast
