// SPDX-License-Identifier: Apache-2.0
#include "storage_model.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace iocast {

void Extents::add(uint64_t start, uint64_t end)
{
  if (start >= end)
    return;
  auto at = intervals_.upper_bound(start);
  if (at != intervals_.begin() && std::prev(at)->second >= start)
    --at;
  while (at != intervals_.end() && at->first <= end) {
    start = std::min(start, at->first);
    end   = std::max(end, at->second);
    at    = intervals_.erase(at);
  }
  intervals_[start] = end;
}

void Extents::add(const Extents& other)
{
  for (const auto& [start, end] : other.intervals_)
    add(start, end);
}

bool Extents::holds(uint64_t start, uint64_t end) const
{
  if (start == end)
    return true;
  const auto after = intervals_.upper_bound(start);
  return after != intervals_.begin() && std::prev(after)->second >= end;
}

uint64_t Extents::bytes() const
{
  uint64_t sum = 0;
  for (const auto& [start, end] : intervals_)
    sum += end - start;
  return sum;
}

uint64_t StorageModel::bytes() const
{
  uint64_t sum = 0;
  for (const auto& [id, extents] : objects_)
    sum += extents.bytes();
  return sum;
}

void StorageModel::fail(const std::string& sentence) const
{
  throw Violation(where_ + ": " + sentence);
}

void StorageModel::phase(const std::string& name, const std::vector<std::vector<Op>>& ranks)
{
  std::vector<View> views(ranks.size());
  for (uint32_t rank = 0; rank < ranks.size(); ++rank)
    for (size_t i = 0; i < ranks[rank].size(); ++i) {
      const Op& op = ranks[rank][i];
      where_       = fmt::format(
          "phase '{}', rank {}, operation {} ({} dataset {} object {} size {} offset {} count {} stride {} flags {})",
          name, rank, i, name_of(op.kind), op.dataset, op.object, op.size, op.offset, op.count, op.stride, op.flags);
      apply(rank, op, views[rank]);
      ++counts[static_cast<size_t>(op.kind)];
      largest = std::max(largest, op.bytes());
    }
  where_ = fmt::format("phase '{}'", name);
  merge(views);
}

std::string StorageModel::dataset_name(uint64_t dataset) const
{
  char name[256];
  return {name, pattern_.name_dataset(dataset, name)};
}

std::optional<uint64_t> StorageModel::parent(uint64_t dataset) const
{
  const auto name  = dataset_name(dataset);
  const auto slash = name.rfind('/');
  if (slash == std::string::npos)
    return std::nullopt;
  const auto found = numbers_.find(name.substr(0, slash));
  if (found == numbers_.end())
    fail(fmt::format("the dataset '{}' has no parent that was made", name));
  return found->second;
}

bool StorageModel::sees_dataset(const View& view, uint64_t dataset) const
{
  return (datasets_.contains(dataset) || view.datasets_made.contains(dataset)) &&
         !view.datasets_removed.contains(dataset);
}

bool StorageModel::sees(const View& view, Id id) const
{
  return view.made.contains(id) || (objects_.contains(id) && !view.removed.contains(id));
}

Extents StorageModel::content(const View& view, Id id) const
{
  Extents extents;
  if (const auto there = objects_.find(id); there != objects_.end() && !view.removed.contains(id))
    extents = there->second;
  if (const auto own = view.written.find(id); own != view.written.end())
    extents.add(own->second);
  return extents;
}

uint64_t StorageModel::entries(const View& view, uint64_t dataset) const
{
  uint64_t found   = 0;
  const auto first = Id{dataset, 0};
  for (auto at = objects_.lower_bound(first); at != objects_.end() && at->first.first == dataset; ++at)
    found += !view.removed.contains(at->first);
  for (auto at = view.made.lower_bound(first); at != view.made.end() && at->first == dataset; ++at)
    found += !objects_.contains(*at) || view.removed.contains(*at);
  const auto prefix = dataset_name(dataset) + "/";
  for (auto at = numbers_.lower_bound(prefix); at != numbers_.end() && at->first.starts_with(prefix); ++at)
    found += at->first.find('/', prefix.size()) == std::string::npos && sees_dataset(view, at->second);
  return found;
}

void StorageModel::apply(uint32_t rank, const Op& op, View& view)
{
  const int own_flag = op.kind == OpKind::stat ? whole : op.kind == OpKind::think ? until | paced : 0;
  if (op.flags & ~(for_writing | make_it | shared | collective | own_flag))
    fail("unknown flags are set, or flags of other operations");
  if (op.kind == OpKind::think && op.flags & paced) {
    if (op.count == 0 || op.object + 1 - op.count != view.steps)
      fail(fmt::format("a rank that has handed over {} steps goes on with the next one", view.steps));
    view.steps += op.count;
    if (op.offset != StepTimes::no_step && op.offset >= view.steps)
      fail("a rank that waits for a step has read for it: else it would wait for itself");
    return;
  }
  if (op.kind == OpKind::think) {
    if (op.size == 0 || op.size > 3'600'000'000'000)
      fail("a think lasts between 1 ns and an hour");
    thought_ns += op.size;
    return;
  }
  const Id id{op.dataset, op.object};
  if (op.kind == OpKind::mkdir) {
    if (datasets_.contains(op.dataset) || view.datasets_made.contains(op.dataset))
      fail("the dataset is there already");
    const auto name = dataset_name(op.dataset);
    if (name.empty() || name.size() > 200 || name.front() == '/' || name.back() == '/' ||
        name.find("//") != std::string::npos)
      fail(fmt::format("'{}' is no name of a dataset", name));
    if (const auto [at, is_new] = numbers_.emplace(name, op.dataset); at->second != op.dataset)
      fail(fmt::format("the datasets {} and {} are both called '{}'", at->second, op.dataset, name));
    if (const auto above = parent(op.dataset)) {
      if (!sees_dataset(view, *above))
        fail("the dataset's parent was not made before, by this rank or in an earlier phase");
      view.datasets_used.insert(*above);
      view.datasets_changed.insert(*above);
    }
    view.datasets_made.insert(op.dataset);
    view.datasets_removed.erase(op.dataset);
    return;
  }
  if (!sees_dataset(view, op.dataset))
    fail("the dataset is not there");
  view.datasets_used.insert(op.dataset);
  if (op.flags & whole)
    return;
  switch (op.kind) {
    case OpKind::rmdir:
      if (const uint64_t left = entries(view, op.dataset); left > 0)
        fail(fmt::format("the dataset still holds {} entries", left));
      if (const auto above = parent(op.dataset))
        view.datasets_changed.insert(*above);
      view.datasets_removed.insert(op.dataset);
      view.datasets_made.erase(op.dataset);
      return;
    case OpKind::readdir:
      view.datasets_listed.insert(op.dataset);
      if (const uint64_t found = entries(view, op.dataset); found != op.size)
        fail(fmt::format("the dataset holds {} entries", found));
      return;
    case OpKind::open: {
      if (open_.contains({rank, id}))
        fail("the object is open already");
      const auto first = open_.lower_bound({rank, Id{0, 0}});
      const auto last  = open_.lower_bound({rank + 1, Id{0, 0}});
      if (std::distance(first, last) >= 64)
        fail("64 objects are open already");
      if (!sees(view, id)) {
        if (!(op.flags & make_it) || !(op.flags & for_writing))
          fail("the object is not there, and is not to be made");
        view.made.insert(id);
        view.datasets_changed.insert(op.dataset);
      }
      open_[{rank, id}] = {op.flags};
      break;
    }
    case OpKind::create:
      if (sees(view, id))
        fail("the object is there already");
      view.made.insert(id);
      view.created.insert(id);
      view.written[id].add(0, op.size);
      view.datasets_changed.insert(op.dataset);
      bytes_written += op.bytes();
      break;
    default:
      if (!sees(view, id))
        fail("the object is not there");
      access(rank, op, view);
  }
  char name[256];
  const std::string object(name, pattern_.name_object_in(op.dataset, op.object, name));
  if (object.empty() || object.size() > 200 || object.find('/') != std::string::npos || object == "." || object == "..")
    fail(fmt::format("'{}' is no name of an object", object));
  view.used.insert(id);
}

/// What is done to an object that is there.
void StorageModel::access(uint32_t rank, const Op& op, View& view)
{
  const Id id{op.dataset, op.object};
  const auto opened  = open_.find({rank, id});
  const bool is_open = opened != open_.end();
  if (op.kind >= OpKind::pwrite && !is_open)
    fail("the object is not open");
  const Extents there = content(view, id);
  switch (op.kind) {
    case OpKind::stat:
      if (op.size != 0 && op.size != there.end())
        fail(fmt::format("the object has {} bytes", there.end()));
      return;
    case OpKind::read:
      if (op.size != there.end() || !there.holds(0, op.size))
        fail(fmt::format("the object has {} bytes, {} of them written", there.end(), there.bytes()));
      bytes_read += op.bytes();
      return;
    case OpKind::append:
      view.written[id].add(there.end(), there.end() + op.size);
      bytes_written += op.bytes();
      return;
    case OpKind::unlink:
      if (is_open)
        fail("the object is still open");
      if (view.made.erase(id))
        view.gone.insert(id);
      if (const auto own = view.written.find(id); own != view.written.end()) {
        view.gone_bytes += own->second.bytes();
        view.written.erase(own);
      }
      view.removed.insert(id);
      view.datasets_changed.insert(op.dataset);
      return;
    case OpKind::pwrite:
    case OpKind::pread: {
      const bool writes = op.kind == OpKind::pwrite;
      if (op.size == 0 || op.count == 0 || (op.count > 1 && op.stride < op.size))
        fail("an access has at least one block of at least one byte, and its blocks don't overlap");
      if (op.flags & ~collective || (op.flags & collective && !(opened->second.flags & shared)))
        fail("of flags, an access can have 'collective', on an object that was opened together");
      if (writes && !(opened->second.flags & for_writing))
        fail("the object is open for reading only");
      for (uint32_t block = 0; block < op.count; ++block) {
        const uint64_t start = op.offset + block * op.stride;
        if (writes)
          view.written[id].add(start, start + op.size);
        else if (!there.holds(start, start + op.size))
          fail(fmt::format("bytes {} to {} were not written before, by this rank or in an earlier phase", start,
                           start + op.size));
      }
      (writes ? bytes_written : bytes_read) += op.bytes();
      return;
    }
    default: // fsync, close
      if (op.flags != (opened->second.flags & shared))
        fail("fsync and close are shared when the open was, and have no other flags");
      if (op.kind == OpKind::close)
        open_.erase(opened);
  }
}

/// After a phase: what the ranks have done must not depend on who was faster.
void StorageModel::merge(const std::vector<View>& views)
{
  std::map<Id, uint32_t> removed_by;
  std::map<uint64_t, uint32_t> datasets_removed_by, datasets_made_by;
  uint64_t made_bytes = 0;
  std::set<Id> made;
  std::map<uint32_t, uint64_t> steps;
  for (uint32_t rank = 0; rank < views.size(); ++rank)
    if (steps.emplace(pattern_.group_of(rank), views[rank].steps).first->second != views[rank].steps)
      fail("the ranks of a group hand over unlike numbers of steps");
  for (uint32_t rank = 0; rank < views.size(); ++rank) {
    for (const auto& id : views[rank].removed)
      if (const auto [other, alone] = removed_by.emplace(id, rank); !alone)
        fail(fmt::format("the ranks {} and {} both remove object {} of dataset {}", other->second, rank, id.second,
                         id.first));
    for (const auto dataset : views[rank].datasets_removed)
      if (const auto [other, alone] = datasets_removed_by.emplace(dataset, rank); !alone)
        fail(fmt::format("the ranks {} and {} both remove dataset {}", other->second, rank, dataset));
    for (const auto dataset : views[rank].datasets_made)
      if (const auto [other, alone] = datasets_made_by.emplace(dataset, rank); !alone)
        fail(fmt::format("the ranks {} and {} both make dataset {}", other->second, rank, dataset));
  }
  for (uint32_t rank = 0; rank < views.size(); ++rank) {
    const View& view = views[rank];
    for (const auto& id : view.used)
      if (const auto other = removed_by.find(id); other != removed_by.end() && other->second != rank)
        fail(fmt::format("rank {} removes object {} of dataset {}, which rank {} uses", other->second, id.second,
                         id.first, rank));
    for (const auto dataset : view.datasets_used)
      if (const auto other = datasets_removed_by.find(dataset);
          other != datasets_removed_by.end() && other->second != rank)
        fail(fmt::format("rank {} removes dataset {}, in which rank {} works", other->second, dataset, rank));
    for (const auto dataset : view.datasets_listed)
      for (uint32_t other = 0; other < views.size(); ++other)
        if (other != rank && views[other].datasets_changed.contains(dataset))
          fail(fmt::format("rank {} lists dataset {}, which rank {} changes", rank, dataset, other));
    for (const auto& id : view.created)
      for (uint32_t other = 0; other < views.size(); ++other)
        if (other != rank && views[other].made.contains(id))
          fail(fmt::format("rank {} creates object {} of dataset {}, which rank {} makes too", rank, id.second,
                           id.first, other));
    for (const auto& [id, extents] : view.written)
      made_bytes += extents.bytes();
    made.insert(view.made.begin(), view.made.end());
    made.insert(view.gone.begin(), view.gone.end());
    made_bytes += view.gone_bytes;
  }
  std::erase_if(made, [&](const Id& id) { return objects_.contains(id); });
  most_objects = std::max(most_objects, objects_.size() + made.size());
  most_bytes   = std::max(most_bytes, bytes() + made_bytes);
  for (const auto& [id, rank] : removed_by)
    objects_.erase(id);
  for (const auto& view : views) {
    for (const auto& id : view.made)
      objects_[id];
    for (const auto& [id, extents] : view.written)
      objects_[id].add(extents);
    for (const auto dataset : view.datasets_removed)
      datasets_.erase(dataset);
  }
  for (const auto& view : views)
    for (const auto dataset : view.datasets_made)
      datasets_[dataset] = dataset_name(dataset);
  peak_objects = std::max<uint64_t>(peak_objects, objects_.size());
  peak_bytes   = std::max(peak_bytes, bytes());
}

void StorageModel::end() const
{
  if (!objects_.empty() || !datasets_.empty())
    throw Violation(fmt::format(
        "at the end {} objects and {} datasets are left, among them {}", objects_.size(), datasets_.size(),
        objects_.empty()
            ? "dataset '" + datasets_.begin()->second + "'"
            : fmt::format("object {} of dataset {}", objects_.begin()->first.second, objects_.begin()->first.first)));
  if (!open_.empty())
    throw Violation(
        fmt::format("at the end {} objects are open, the first by rank {}", open_.size(), open_.begin()->first.first));
}

} // namespace iocast
