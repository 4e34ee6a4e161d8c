// SPDX-License-Identifier: Apache-2.0
//
// The part of System that reads ahead into caches. The fetch of a piece is a job as the drain of a buffer's piece is.
#include "models/pages.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <bit>

namespace iocast {

void System::make_read_ahead(bool reads)
{
  for (const auto& caches : caches_) {
    add_beside_steps(caches.spec->steps, size_t{caches.spec->at_once} * caches.ahead.size());
    if (reads && !caches.ahead.empty() && !sizes_)
      sizes_ = std::make_unique<ObjectSizes>();
  }
}

/// True when the job reads what is on its way, and waits for it. Other pages that it needs are not fetched meanwhile;
/// pages that follow are.
bool System::await_pages(JobId id, Caches& caches)
{
  const Op& op = op_of(id);
  if (op.kind != OpKind::pread && op.kind != OpKind::read)
    return false;
  bool waits = false;
  for_each_block(op, caches.spec->page, [&](const Pages& pages) {
    const uint32_t instance = cache_instance(id, caches, pages.first() * caches.spec->page);
    waits                   = waits || caches.ahead[instance].wait(pages.key(), pages.mask, id);
  });
  if (waits && !jobs_[id].waited) {
    jobs_[id].waited = true;
    ++caches.sums.waited;
    read_ahead(id, caches);
  }
  return waits;
}

/// What follows an access that goes on where one ended begins to be fetched.
void System::read_ahead(JobId id, Caches& caches)
{
  const Op& op = op_of(id);
  if (op.kind != OpKind::pread || op.bytes() == 0 || (op.count > 1 && op.stride != op.size))
    return;
  const uint32_t instance = cache_instance(id, caches, op.offset);
  // A node tells its processes apart, a server the nodes that ask.
  const uint32_t reader           = caches.spec->of_nodes() ? is_client(id) ? id : nobody : jobs_[id].owner;
  ReadAhead& ahead                = caches.ahead[instance];
  ReadAhead::Stream* const stream = ahead.read(object_key(op), reader, op.offset, op.offset + op.bytes());
  if (stream == nullptr)
    return;
  const uint64_t unit   = caches.spec->unit;
  const uint64_t length = sizes_ ? sizes_->of(op) : UINT64_MAX;
  if (stream->strides()) {
    const uint64_t size  = stream->end - stream->begin;
    const uint64_t most  = std::max<uint64_t>(1, ahead.window(*stream) / size);
    const uint64_t first = (stream->looked - stream->begin - 1) / stream->step + 1;
    for (uint64_t k = first; k <= most && stream->begin + k * stream->step < length; ++k) {
      const uint64_t begin = stream->begin + k * stream->step;
      const uint64_t end   = std::min(begin + size, length);
      bool has_room        = true;
      for (uint64_t at = begin; at < end && has_room; at = (at / unit + 1) * unit)
        has_room = plan_piece(caches, instance, op, at / caches.spec->page, std::min((at / unit + 1) * unit, end));
      if (!has_room)
        break;
      stream->looked = begin + 1;
    }
  } else {
    const uint64_t page = caches.spec->page;
    const uint64_t end  = std::min(stream->end + ahead.window(*stream), length);
    while (stream->looked < end) {
      const uint64_t piece_end = std::min((stream->looked / unit + 1) * unit, length);
      if (!plan_piece(caches, instance, op, (stream->looked + page - 1) / page, piece_end))
        break;
      stream->looked = piece_end;
    }
  }
  fetch(caches, instance);
}

/// Of the pages from this one to the byte `end` of the operation's object, those that are neither there nor on their
/// way are fetched together. False when there is no room for them.
bool System::plan_piece(Caches& caches, uint32_t instance, const Op& op, uint64_t page, uint64_t end)
{
  const uint64_t page_size = caches.spec->page;
  std::vector<Pages> missing;
  for_each_block(object_key(op), page, (end + page_size - 1) / page_size, static_cast<uint32_t>(page_size),
                 [&](const Pages& pages) {
                   if (const Pages part = pages.only(~caches.there(instance, pages.key())); part.mask != 0)
                     missing.push_back(part);
                 });
  if (missing.empty())
    return true;
  const Pages& low     = missing.front();
  const Pages& high    = missing.back();
  const uint64_t first = low.first() + static_cast<uint64_t>(std::countr_zero(low.mask));
  const uint64_t after = high.first() + static_cast<uint64_t>(std::bit_width(high.mask));
  const Op piece(OpKind::pread, op.dataset, op.object, std::min(after * page_size, end) - first * page_size,
                 first * page_size);
  if (!caches.ahead[instance].plan(piece, missing))
    return false;
  if (caches.page_holders)
    for (const Pages& pages : missing)
      caches.page_holders->add(pages, instance);
  return true;
}

/// All pieces begin that can.
void System::fetch(Caches& caches, uint32_t instance)
{
  const auto number =
      static_cast<uint32_t>(first_fetched_) + static_cast<uint32_t>(caches.spec - platform_.caches.data());
  while (const auto fetch = caches.ahead[instance].next()) {
    ++caches.sums.requests;
    begin_piece({fetch->bytes, fetch->serial, fetch->epoch, number, instance, caches.fetches++},
                caches.spec->of_nodes() ? instance : nobody);
  }
}

/// The pages that the piece was fetched for are there, those excepted that nobody wants any more.
void System::fetched(const Piece& piece)
{
  Caches& caches   = caches_[piece.buffer - first_fetched_];
  ReadAhead& ahead = caches.ahead[piece.instance];
  const Op& op     = piece.bytes;
  const ReadAhead::Fetch fetch{op, piece.serial, piece.epoch};
  const uint64_t page_size = caches.spec->page;
  if (!ahead.has_lost(fetch)) {
    caches.sums.fetched += op.size;
    const uint64_t end = op.offset + op.size;
    const auto came    = [&](const Pages& pages) {
      const Pages wanted = pages.only(ahead.brings(fetch, pages.key()));
      if (wanted.mask != 0)
        caches.touch(piece.instance, wanted, true);
      caches.in_vain += uint64_t{pages.weight} * static_cast<uint64_t>(std::popcount(pages.mask & ~wanted.mask));
    };
    const uint64_t whole = end / page_size;
    for_each_block(object_key(op), op.offset / page_size, whole, static_cast<uint32_t>(page_size), came);
    if (end % page_size != 0)
      for_each_block(object_key(op), whole, whole + 1, static_cast<uint32_t>(end % page_size), came);
    ahead.arrived(fetch, freed_);
    look_again();
  }
  this->fetch(caches, piece.instance);
}

/// What it has and what is on its way is lost.
void System::lose_cache(Caches& caches, uint32_t instance)
{
  caches.clear(instance);
  if (caches.ahead.empty())
    return;
  caches.ahead[instance].clear(freed_);
  look_again();
}

void System::look_again()
{
  for (const JobId freed : freed_)
    push(now_, EventKind::resume, freed);
  freed_.clear();
}

bool System::is_fetching() const
{
  for (const auto& caches : caches_)
    if (std::any_of(caches.ahead.begin(), caches.ahead.end(),
                    [](const ReadAhead& ahead) { return ahead.is_fetching(); }))
      return true;
  return false;
}

} // namespace iocast
