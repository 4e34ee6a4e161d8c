// SPDX-License-Identifier: Apache-2.0
#include "models/buffer.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace iocast {

void DirtyObjects::add(uint64_t key, uint64_t bytes, uint32_t instance)
{
  Slot& slot = objects_.find(key);
  if (!slot.used()) {
    objects_.insert({key, bytes, instance});
    return;
  }
  if (slot.instance == instance) {
    slot.bytes += bytes;
    return;
  }
  auto& parts = of_several(slot).parts;
  const auto found =
      std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.instance == instance; });
  if (found == parts.end())
    parts.push_back({instance, bytes});
  else
    found->bytes += bytes;
}

DirtyObjects::Dirty& DirtyObjects::of_several(Slot& slot)
{
  Dirty& dirty = several_[slot.key];
  if (slot.instance != several) {
    dirty.parts.push_back({slot.instance, slot.bytes});
    slot.instance = several;
  }
  return dirty;
}

void DirtyObjects::remove(uint64_t key, uint64_t bytes, uint32_t instance, std::vector<JobId>& freed)
{
  Slot& slot = objects_.find(key);
  if (slot.instance != several) {
    if (bytes == slot.bytes)
      objects_.erase(slot);
    else
      slot.bytes -= bytes;
    return;
  }
  const auto found = several_.find(key);
  auto& parts      = found->second.parts;
  auto& waiting    = found->second.waiting;
  const auto part = std::find_if(parts.begin(), parts.end(), [&](const Part& one) { return one.instance == instance; });
  if ((part->bytes -= bytes) > 0)
    return;
  parts.erase(part);
  std::erase_if(waiting, [&](const Waiter& waiter) {
    const bool free = !waiter.waits_for_any(parts);
    if (free)
      freed.push_back(waiter.job);
    return free;
  });
  if (parts.empty()) {
    several_.erase(found);
    objects_.erase(slot);
  }
}

bool DirtyObjects::Waiter::waits_for_any(const std::vector<Part>& parts) const
{
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) { return waits_for(part.instance); });
}

bool DirtyObjects::wait(uint64_t key, Flush flush, uint32_t own, JobId job, std::vector<uint32_t>& instances)
{
  Slot& slot = objects_.find(key);
  if (!slot.used())
    return true;
  const Waiter waiter{job, flush, own};
  if (slot.instance != several && !waiter.waits_for(slot.instance))
    return true;
  Dirty& dirty = of_several(slot);
  for (const auto& part : dirty.parts)
    if (waiter.waits_for(part.instance))
      instances.push_back(part.instance);
  if (instances.empty())
    return true;
  dirty.waiting.push_back(waiter);
  return false;
}

Buffer::Buffer(const BufferSpec& spec, uint32_t number, BufferSums& sums, DirtyObjects* objects)
    : spec_(&spec), sums_(&sums), objects_(objects), number_(number)
{
}

bool Buffer::enter(JobId job, const Op& write, double now)
{
  if (write.bytes() == 0)
    return true;
  Op rest     = write;
  rest.size   = write.bytes();
  rest.count  = 1;
  rest.stride = 0;
  if (writers_.empty() && admit(rest, now))
    return true;
  writers_.push_back({job, rest, now});
  ++sums_->stopped;
  return false;
}

/// Takes in what there is room for, a write of up to a unit only as a whole. True when that is all.
bool Buffer::admit(Op& write, double now)
{
  const uint64_t grain = spec_->unit > 0 ? spec_->unit : spec_->room();
  const uint64_t room  = spec_->room() - held_;
  const uint64_t taken = write.size <= room ? write.size : write.size < grain ? 0 : room / grain * grain;
  put(write, taken, now);
  stopped_ = write.size > 0;
  return !stopped_;
}

/// The first `bytes` of the write are in.
void Buffer::put(Op& write, uint64_t bytes, double now)
{
  if (bytes == 0)
    return;
  held_ += bytes;
  entered_ += bytes;
  sums_->entered += bytes;
  sums_->held += bytes;
  sums_->peak = std::max(sums_->peak, held_);
  newest_ += bytes;
  if (objects_)
    objects_->add(object_key(write), bytes, number_);
  if (spec_->unit == 0) {
    Extent piece = new_extent(write, now);
    piece.size   = bytes;
    newest_ready().push_back(piece);
    write.offset += bytes;
    write.size -= bytes;
    return;
  }
  while (bytes > 0) {
    Extent& extent      = open_extent(write, now);
    const uint64_t end  = extent.offset + extent.size;
    const uint64_t more = std::min(bytes, spec_->unit - end % spec_->unit);
    extent.size += more;
    write.offset += more;
    write.size -= more;
    bytes -= more;
    if ((end + more) % spec_->unit == 0)
      close(object_key(write));
  }
}

/// With no bytes yet.
Extent Buffer::new_extent(const Op& write, double now)
{
  return {write.dataset, write.object, write.offset, 0, now, serial_++, newest_epoch()};
}

/// For pieces that came since the last flush.
Turns& Buffer::newest_ready()
{
  return ready_.empty() ? ready_.push_back({}) : ready_.back();
}

/// The one that the write's first byte goes to. What is appended follows what was written before.
Extent& Buffer::open_extent(const Op& write, double now)
{
  const uint64_t key = object_key(write);
  if (const auto found = open_of_.find(key); found != open_of_.end()) {
    Extent& extent = open_[found->second - first_open_];
    if (write.kind == OpKind::append || extent.offset + extent.size == write.offset)
      return extent;
    close_at(found->second);
  }
  open_of_[key] = first_open_ + open_.size();
  return open_.push_back(new_extent(write, now));
}

void Buffer::close(uint64_t key)
{
  if (const auto found = open_of_.find(key); found != open_of_.end())
    close_at(found->second);
}

void Buffer::close_at(uint64_t place)
{
  Extent& extent = open_[place - first_open_];
  open_of_.erase(object_key(extent.dataset, extent.object));
  newest_ready().push_back(extent);
  extent.size = 0;
  forget_closed();
}

void Buffer::forget_closed()
{
  while (!open_.empty() && open_.front().size == 0) {
    open_.pop_front();
    ++first_open_;
  }
}

bool Buffer::open_is_due(double now) const
{
  return !open_.empty() && (!writers_.empty() || open_.front().since + spec_->linger <= now);
}

double Buffer::due() const
{
  return open_.empty() ? std::numeric_limits<double>::infinity() : open_.front().since + spec_->linger;
}

std::optional<Extent> Buffer::next(double now)
{
  if (draining_ == spec_->at_once)
    return {};
  if (held_ <= spec_->above && !urgent_ && writers_.empty())
    return {};
  while (ready_.size() > 1 && ready_.front().empty())
    ready_.pop_front();
  const bool any_ready = !ready_.empty() && !ready_.front().empty();
  if (open_is_due(now) &&
      (!any_ready || (ready_.size() == 1 && open_.front().serial < ready_.front().front().serial))) {
    const Extent piece = open_.front();
    open_of_.erase(object_key(piece.dataset, piece.object));
    open_.front().size = 0;
    forget_closed();
    ++draining_;
    return piece;
  }
  if (!any_ready)
    return {};
  ++draining_;
  return ready_.front().pop_front(serial_++);
}

void Buffer::drained(const Op& piece, uint64_t epoch, double now, std::vector<JobId>& freed)
{
  const uint64_t bytes = piece.size;
  --draining_;
  held_ -= bytes;
  urgent_ = urgent_ && held_ > 0;
  drained_ += bytes;
  sums_->held -= bytes;
  sums_->drained += bytes;
  ++sums_->pieces;
  (epoch == newest_epoch() ? newest_ : epochs_[epoch - first_epoch_]) -= bytes;
  for (; !epochs_.empty() && epochs_.front() == 0; ++first_epoch_)
    epochs_.pop_front();
  for (; !flushes_.empty() && flushes_.front().first < first_epoch_; flushes_.pop_front())
    freed.push_back(flushes_.front().second);
  if (objects_)
    objects_->remove(object_key(piece), bytes, number_, freed);
  if (held_ <= spec_->resume)
    stopped_ = false;
  while (!stopped_ && !writers_.empty()) {
    Writer writer = writers_.front();
    if (admit(writer.rest, now)) {
      sums_->wait += now - writer.since;
      freed.push_back(writer.job);
      writers_.pop_front();
    } else if (writer.rest.size < writers_.front().rest.size) { // writers take turns, too
      writers_.pop_front();
      writers_.push_back(writer);
    }
  }
}

bool Buffer::flush(JobId job)
{
  if (held_ == 0)
    return true;
  empty();
  if (!newest_ready().empty())
    ready_.push_back({});
  flushes_.push_back({newest_epoch(), job});
  epochs_.push_back(std::exchange(newest_, 0));
  return false;
}

void Buffer::empty()
{
  hurry();
  while (!open_.empty())
    close_at(first_open_);
}

bool Buffer::adds_up() const
{
  uint64_t unflushed = newest_;
  for (size_t epoch = 0; epoch < epochs_.size(); ++epoch)
    unflushed += epochs_[epoch];
  return entered_ - drained_ == held_ && unflushed == held_ && held_ <= spec_->room();
}

} // namespace iocast
