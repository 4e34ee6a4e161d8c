// SPDX-License-Identifier: Apache-2.0
#include "models/buffer.hpp"

#include "workload/random.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace iocast {

void DirtyObjects::add(uint64_t key, uint64_t bytes, uint32_t instance)
{
  Dirty& dirty = objects_[key];
  dirty.bytes += bytes;
  if (std::find(dirty.instances.begin(), dirty.instances.end(), instance) == dirty.instances.end())
    dirty.instances.push_back(instance);
}

void DirtyObjects::remove(uint64_t key, uint64_t bytes, std::vector<JobId>& freed)
{
  const auto found = objects_.find(key);
  if ((found->second.bytes -= bytes) > 0)
    return;
  freed.insert(freed.end(), found->second.waiting.begin(), found->second.waiting.end());
  objects_.erase(found);
}

const std::vector<uint32_t>* DirtyObjects::wait(uint64_t key, JobId job)
{
  const auto found = objects_.find(key);
  if (found == objects_.end())
    return nullptr;
  found->second.waiting.push_back(job);
  return &found->second.instances;
}

Buffer::Buffer(const BufferSpec& spec, uint32_t number, BufferSums& sums, DirtyObjects& everywhere)
    : spec_(&spec), sums_(&sums), everywhere_(&everywhere), number_(number)
{
  epochs_.push_back(0);
}

uint64_t Buffer::key_of(const Op& op)
{
  return mix(mix(op.dataset) ^ op.object);
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
  const uint64_t grain = spec_->unit > 0 ? spec_->unit : spec_->capacity;
  const uint64_t room  = spec_->capacity - held_;
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
  epochs_.back() += bytes;
  if (spec_->flushed_by_object)
    objects_.add(key_of(write), bytes, number_);
  if (spec_->flushed_everywhere)
    everywhere_->add(key_of(write), bytes, number_);
  while (bytes > 0) {
    Extent& extent      = open_extent(write, now);
    const uint64_t end  = extent.bytes.offset + extent.bytes.size;
    const uint64_t more = spec_->unit > 0 ? std::min(bytes, spec_->unit - end % spec_->unit) : bytes;
    extent.bytes.size += more;
    write.offset += more;
    write.size -= more;
    bytes -= more;
    if (spec_->unit == 0 || (end + more) % spec_->unit == 0)
      close(write);
  }
}

/// The one that the write's first byte goes to. What is appended follows what was written before.
Extent& Buffer::open_extent(const Op& write, double now)
{
  const uint64_t key = key_of(write);
  if (const auto found = open_of_.find(key); found != open_of_.end()) {
    Extent& extent = open_[found->second - first_open_];
    if (write.kind == OpKind::append || extent.bytes.offset + extent.bytes.size == write.offset)
      return extent;
    close_at(found->second);
  }
  open_of_[key] = first_open_ + open_.size();
  Extent& extent = open_.push_back({});
  extent.bytes   = Op(OpKind::pwrite, write.dataset, write.object, 0, write.offset);
  extent.since   = now;
  extent.serial  = serial_++;
  extent.epoch   = first_epoch_ + epochs_.size() - 1;
  return extent;
}

void Buffer::close(const Op& of)
{
  if (const auto found = open_of_.find(key_of(of)); found != open_of_.end())
    close_at(found->second);
}

void Buffer::close_at(uint64_t place)
{
  Extent& extent = open_[place - first_open_];
  open_of_.erase(key_of(extent.bytes));
  ready_.push_back(extent);
  extent.bytes.size = 0;
  forget_closed();
}

void Buffer::forget_closed()
{
  while (!open_.empty() && open_.front().bytes.size == 0) {
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
  if (open_is_due(now) && (ready_.empty() || open_.front().serial < ready_.front().serial)) {
    const Extent piece = open_.front();
    open_of_.erase(key_of(piece.bytes));
    open_.front().bytes.size = 0;
    forget_closed();
    ++draining_;
    return piece;
  }
  if (ready_.empty())
    return {};
  const Extent piece = ready_.front();
  ready_.pop_front();
  ++draining_;
  return piece;
}

void Buffer::drained(const Extent& piece, double now, std::vector<JobId>& freed)
{
  const uint64_t bytes = piece.bytes.size;
  --draining_;
  held_ -= bytes;
  drained_ += bytes;
  sums_->held -= bytes;
  sums_->drained += bytes;
  ++sums_->pieces;
  epochs_[piece.epoch - first_epoch_] -= bytes;
  for (; epochs_.size() > 1 && epochs_.front() == 0; ++first_epoch_)
    epochs_.pop_front();
  for (; !flushes_.empty() && flushes_.front().first < first_epoch_; flushes_.pop_front())
    freed.push_back(flushes_.front().second);
  if (spec_->flushed_by_object)
    objects_.remove(key_of(piece.bytes), bytes, freed);
  if (spec_->flushed_everywhere)
    everywhere_->remove(key_of(piece.bytes), bytes, freed);
  if (held_ <= spec_->resume)
    stopped_ = false;
  while (!stopped_ && !writers_.empty() && admit(writers_.front().rest, now)) {
    sums_->wait += now - writers_.front().since;
    freed.push_back(writers_.front().job);
    writers_.pop_front();
  }
}

bool Buffer::flush(JobId job)
{
  if (held_ == 0)
    return true;
  while (!open_.empty())
    close_at(first_open_);
  flushes_.push_back({first_epoch_ + epochs_.size() - 1, job});
  epochs_.push_back(0);
  return false;
}

bool Buffer::flush_object(JobId job, const Op& of)
{
  if (objects_.wait(key_of(of), job) == nullptr)
    return true;
  close(of);
  return false;
}

bool Buffer::adds_up() const
{
  uint64_t unflushed = 0;
  for (size_t epoch = 0; epoch < epochs_.size(); ++epoch)
    unflushed += epochs_[epoch];
  return entered_ - drained_ == held_ && unflushed == held_ && held_ <= spec_->capacity;
}

} // namespace iocast
