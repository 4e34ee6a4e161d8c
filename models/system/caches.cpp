// SPDX-License-Identifier: Apache-2.0
//
// The part of System that looks into caches.
#include "input/error.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace iocast {

namespace {
/// What a cache of objects knows an operation's object by: that of a dataset itself differs from those of the objects in it.
uint64_t entry_key(const Op& op)
{
  const bool of_dataset = op.kind == OpKind::mkdir || op.kind == OpKind::rmdir || op.kind == OpKind::readdir || (op.flags & whole) != 0;
  return of_dataset ? mix(~op.dataset) : object_key(op);
}

uint64_t page_key(const Op& op, uint64_t page)
{
  return mix(object_key(op) + page);
}

/// Calls do_it(page, bytes of it) for each page of an access. What reads or writes a whole object has only its bytes; of other accesses whole pages are fetched.
template <class DoIt> void for_each_page(const Op& op, uint64_t page_size, DoIt do_it)
{
  const bool whole_object = op.kind == OpKind::create || op.kind == OpKind::read;
  const auto piece        = [&](uint64_t begin, uint64_t size) {
    if (size == 0)
      return;
    for (uint64_t page = begin / page_size; page <= (begin + size - 1) / page_size; ++page)
      do_it(page, static_cast<uint32_t>(whole_object ? std::min(page_size, begin + size - page * page_size) : page_size));
  };
  if (op.count <= 1 || op.stride == op.size)
    piece(op.offset, op.bytes());
  else
    for (uint32_t block = 0; block < op.count; ++block)
      piece(op.offset + block * op.stride, op.size);
}
} // namespace

const CacheSums& Caches::checked()
{
  sums.held = 0;
  for (const auto& cache : instances) {
    if (!cache.adds_up())
      throw RunError(fmt::format("What the cache '{}' holds is not what came in and did not leave; this is an error of the simulator.", spec->name));
    sums.held += cache.held();
    sums.rate = std::min(sums.rate, cache.rate());
  }
  return sums;
}

void System::make_caches()
{
  cache_sums_.resize(platform_.caches.size());
  for (const auto& spec : platform_.caches)
    caches_.emplace_back(spec, spec.of_nodes() ? placement_.nodes() : spec.station < 0 ? 1 : platform_.stations[static_cast<size_t>(spec.station)].count);
}

/// The instance that has this page of the operation's object.
Cache& System::cache_for(JobId id, Caches& caches, uint64_t offset)
{
  if (caches.spec->of_nodes())
    return caches.instances[jobs_[id].owner];
  if (caches.spec->station < 0)
    return caches.instances[0];
  const auto& station = platform_.stations[static_cast<size_t>(caches.spec->station)];
  if (station.spread != Spread::stripe || caches.spec->page == 0 || (jobs_[id].piece && is_own_station(id, station)))
    return caches.instances[instance_for(id, station)];
  return caches.instances[instance_of(op_of(id), station, offset)];
}

/// The job goes on with what the platform says of a hit or of a miss.
void System::look_up(JobId id, const Step& step)
{
  Caches& caches = caches_[step.target];
  const Op& op   = op_of(id);
  if (step.forgets) {
    forget(id, caches);
    ++jobs_[id].at;
    return;
  }
  bool known   = false;
  bool hit     = true;
  Cache* cache = nullptr;
  const auto touch = [&](Cache& at, uint64_t key, uint32_t weight) {
    cache = &at;
    if (!at.knows(key))
      return;
    known = true;
    hit   = at.touch(key, weight) && hit;
  };
  const uint64_t page_size = caches.spec->page;
  if (page_size == 0)
    touch(cache_for(id, caches, 0), entry_key(op), 1);
  else
    for_each_page(op, page_size, [&](uint64_t page, uint32_t bytes) { touch(cache_for(id, caches, page * page_size), page_key(op, page), bytes); });
  if (cache && cache->rate() < 1) {
    RecentHits& recent = cache->recent(jobs_[id].kind);
    if (known)
      recent.add(hit);
    else
      hit = uniform(id) < recent.share;
  }
  ++caches.sums.lookups;
  caches.sums.hits += hit;
  jobs_[id].at = static_cast<uint16_t>(jobs_[id].at + (hit ? 1 : step.jump));
}

/// Of pages, those from the first on, as far as they are there.
void System::forget(JobId id, Caches& caches)
{
  const Op& op = op_of(id);
  if (caches.spec->page == 0) {
    cache_for(id, caches, 0).forget(entry_key(op));
    return;
  }
  for (uint64_t page = 0;; ++page) {
    Cache& cache       = cache_for(id, caches, page * caches.spec->page);
    const uint64_t key = page_key(op, page);
    if (cache.knows(key) && !cache.forget(key))
      return;
  }
}

void System::check_caches()
{
  for (size_t i = 0; i < caches_.size(); ++i)
    cache_sums_[i] = caches_[i].checked();
}

} // namespace iocast
