// SPDX-License-Identifier: Apache-2.0
#include "models/read_ahead.hpp"

#include "models/buffer.hpp"

#include <algorithm>
#include <bit>

namespace iocast {

ReadAhead::Stream* ReadAhead::read(uint64_t object, uint32_t reader, uint64_t begin, uint64_t end)
{
  const uint64_t key = mix(object ^ mix(reader));
  if (const auto known = stream_of_.find(key); known != stream_of_.end()) {
    streams_.splice(streams_.begin(), streams_, known->second);
  } else {
    streams_.push_front({key});
    stream_of_[key] = streams_.begin();
    if (const auto gone = forgotten_.find(key); gone != forgotten_.end()) {
      interrupted_ += gone->second == begin;
      forgotten_.erase(gone);
    }
    readers_.insert(reader);
    if (streams_.size() > fewest_streams + streams_of_reader * readers_.size()) {
      if (forgotten_.size() >= most_forgotten)
        forgotten_.clear();
      forgotten_[streams_.back().key] = streams_.back().end;
      stream_of_.erase(streams_.back().key);
      streams_.pop_back();
    }
  }
  Stream& stream      = streams_.front();
  const bool is_alike = stream.length > 0 && begin > stream.begin && end - begin == stream.end - stream.begin;
  const uint64_t step = is_alike ? begin - stream.begin : 0;
  const bool strides  = spec_->strides && step > end - begin && step == stream.step;
  const bool goes_on  = strides || (stream.length > 0 && stream.end == begin);
  if (!goes_on)
    stream = {key};
  stream.begin = begin;
  stream.end   = end;
  stream.step  = step;
  stream.length += end - begin;
  stream.looked = std::max(stream.looked, end);
  return goes_on || begin == 0 ? &stream : nullptr;
}

uint64_t ReadAhead::window(const Stream& stream) const
{
  return std::min(spec_->ahead, std::max(spec_->unit, stream.length));
}

bool ReadAhead::plan(const Op& bytes, const std::vector<Pages>& pages)
{
  uint64_t count = 0;
  for (const auto& of_block : pages)
    count += static_cast<uint64_t>(std::popcount(of_block.mask));
  if ((coming_pages_ + count) * spec_->page > spec_->capacity)
    return false;
  for (const auto& of_block : pages)
    coming_[of_block.key()].push_back({serial_, of_block.mask});
  planned_ += count;
  coming_pages_ += count;
  fetches_[serial_].bytes = bytes;
  queue_.push_back(serial_++);
  return true;
}

std::optional<ReadAhead::Fetch> ReadAhead::next()
{
  if (queue_.empty() || fetching_ == spec_->at_once)
    return std::nullopt;
  ++fetching_;
  const uint64_t serial = queue_.front();
  queue_.pop_front();
  return Fetch{fetches_.at(serial).bytes, serial, epoch_};
}

uint64_t ReadAhead::coming(uint64_t block) const
{
  uint64_t pages = 0;
  if (const auto found = coming_.find(block); found != coming_.end())
    for (const Part& part : found->second)
      pages |= part.pages;
  return pages;
}

bool ReadAhead::wait(uint64_t block, uint64_t pages, JobId job)
{
  const uint64_t first = lowest_bit(coming(block) & pages);
  if (first == 0)
    return false;
  for (const Part& part : coming_.at(block))
    if ((part.pages & first) != 0)
      fetches_.at(part.serial).waiting.push_back(job);
  return true;
}

uint64_t ReadAhead::forget(uint64_t block, uint64_t pages)
{
  const auto found = coming_.find(block);
  if (found == coming_.end())
    return 0;
  uint64_t forgotten = 0;
  for (Part& part : found->second) {
    forgotten |= part.pages & pages;
    part.pages &= ~pages;
  }
  std::erase_if(found->second, [](const Part& part) { return part.pages == 0; });
  if (found->second.empty())
    coming_.erase(found);
  const auto count = static_cast<uint64_t>(std::popcount(forgotten));
  gone_ += count;
  coming_pages_ -= count;
  return forgotten;
}

uint64_t ReadAhead::brings(const Fetch& fetch, uint64_t block) const
{
  uint64_t pages = 0;
  if (const auto found = coming_.find(block); found != coming_.end())
    for (const Part& part : found->second)
      pages |= part.serial == fetch.serial ? part.pages : 0;
  return pages;
}

void ReadAhead::arrived(const Fetch& fetch, std::vector<JobId>& freed)
{
  const auto found = fetches_.find(fetch.serial);
  freed.insert(freed.end(), found->second.waiting.begin(), found->second.waiting.end());
  fetches_.erase(found);
  --fetching_;
}

void ReadAhead::clear(std::vector<JobId>& freed)
{
  std::vector<uint64_t> serials;
  for (const auto& [serial, fetch] : fetches_)
    serials.push_back(serial);
  std::sort(serials.begin(), serials.end()); // the same on any computer
  for (const uint64_t serial : serials) {
    const auto& waiting = fetches_.at(serial).waiting;
    freed.insert(freed.end(), waiting.begin(), waiting.end());
  }
  gone_ += coming_pages_;
  coming_pages_ = 0;
  coming_.clear();
  fetches_.clear();
  queue_ = {};
  streams_.clear();
  stream_of_.clear();
  forgotten_.clear();
  fetching_ = 0;
  ++epoch_;
}

void ObjectSizes::note(const Op& op)
{
  const uint64_t key = object_key(op);
  const uint64_t end = op.offset + (op.count <= 1 ? op.bytes() : (op.count - 1) * op.stride + op.size);
  switch (op.kind) {
    case OpKind::create:
      bytes_[key] = op.bytes();
      break;
    case OpKind::open:
      if ((op.flags & make_it) != 0)
        bytes_.try_emplace(key, 0);
      break;
    case OpKind::pwrite:
      bytes_[key] = std::max(bytes_[key], end);
      break;
    case OpKind::append:
    case OpKind::pread:
      if (const auto found = bytes_.find(key); found != bytes_.end())
        found->second = op.kind == OpKind::append ? found->second + op.bytes() : std::max(found->second, end);
      break;
    case OpKind::unlink:
      bytes_.erase(key);
      break;
    default:
      break;
  }
}

uint64_t ObjectSizes::of(const Op& op) const
{
  const auto found = bytes_.find(object_key(op));
  return found == bytes_.end() ? UINT64_MAX : found->second;
}

} // namespace iocast
