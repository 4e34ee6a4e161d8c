// SPDX-License-Identifier: Apache-2.0
#include "models/extent.hpp"

#include <algorithm>
#include <bit>

namespace iocast {

namespace {
constexpr uint64_t everything = UINT64_MAX;
constexpr int server_shift    = 44; ///< a server's units are numbered from server << 44
constexpr uint64_t server_size =
    (uint64_t{1} << server_shift) - 1; ///< one is left out, so that ranges of two servers are never one
} // namespace

// ---- requested units
// ------------------------------------------------------------------------------------------------------

std::vector<Units> ExtentCutter::cut(const Op& op) const
{
  std::vector<Units> out;
  if (op.bytes() == 0) {
    for (uint64_t server = 0; striped_ && server < striped_->stripe_count; ++server)
      out.push_back(space(server << server_shift));
    if (!striped_)
      out.push_back(space(0));
    return out;
  }
  if (op.count <= 1 || op.stride == op.size)
    cut_piece(op.offset, op.size * op.count, out);
  else
    for (uint32_t block = 0; block < op.count; ++block)
      cut_piece(op.offset + block * op.stride, op.size, out);
  std::sort(out.begin(), out.end(), [](const Units& a, const Units& b) { return a.begin < b.begin; });
  size_t last = 0;
  for (size_t next = 1; next < out.size(); ++next)
    if (out[next].begin <= out[last].end && space(out[next].begin) == space(out[last].begin))
      out[last].end = std::max(out[last].end, out[next].end);
    else
      out[++last] = out[next];
  out.resize(last + 1);
  return out;
}

Units ExtentCutter::space(uint64_t unit) const
{
  if (!striped_)
    return {0, everything};
  const uint64_t first = unit >> server_shift << server_shift;
  return {first, first + server_size};
}

/// Bytes that lie together lie together at each server as well.
void ExtentCutter::cut_piece(uint64_t begin, uint64_t size, std::vector<Units>& out) const
{
  const uint64_t end = begin + size;
  if (!striped_) {
    out.push_back({begin / extent_, (end - 1) / extent_ + 1});
    return;
  }
  const uint64_t stripe  = striped_->stripe_size;
  const uint64_t servers = striped_->stripe_count;
  const uint64_t first   = begin / stripe;
  const uint64_t last    = (end - 1) / stripe;
  for (uint64_t from = first; from <= std::min(last, first + servers - 1); ++from) {
    const uint64_t to      = from + (last - from) / servers * servers; // the last stripe of this server
    const uint64_t at      = from / servers * stripe + (from == first ? begin % stripe : 0);
    const uint64_t past    = to / servers * stripe + (to == last ? (end - 1) % stripe + 1 : stripe);
    const uint64_t numbers = from % servers << server_shift;
    const uint64_t unit    = std::min(at / extent_, server_size - 1);
    out.push_back({numbers + unit, numbers + std::min(std::max((past - 1) / extent_, unit) + 1, server_size)});
  }
}

// ---- ranges that may overlap
// ------------------------------------------------------------------------------------------------

namespace {
size_t class_of(const Units& units)
{
  return static_cast<size_t>(std::bit_width(units.end - units.begin)) - 1;
}
} // namespace

void OverlapIndex::add(const Units& units, uint64_t number)
{
  const size_t length = class_of(units);
  if (classes_.size() <= length)
    classes_.resize(length + 1);
  classes_[length][{units.begin, number}] = units.end;
  ends_.insert({units.end, number});
}

void OverlapIndex::remove(const Units& units, uint64_t number)
{
  classes_[class_of(units)].erase({units.begin, number});
  ends_.erase({units.end, number});
}

// ---- who waits for whom
// -----------------------------------------------------------------------------------------------

bool ExtentLock::overlap(const std::vector<Units>& some, const std::vector<Units>& others)
{
  for (size_t i = 0, k = 0; i < some.size() && k < others.size();) {
    if (some[i].overlaps(others[k]))
      return true;
    if (some[i].end <= others[k].begin)
      ++i;
    else
      ++k;
  }
  return false;
}

bool ExtentLock::stops(const Request& earlier, const Request& later)
{
  if (earlier.shared && later.shared)
    return false;
  return overlap(earlier.active && earlier.node != later.node ? earlier.held : earlier.requested, later.requested);
}

std::vector<uint64_t> ExtentLock::near(const std::vector<Units>& units, bool shared) const
{
  std::vector<uint64_t> found;
  for (const auto& one : units)
    for (size_t kind = 0; kind < (shared ? 1 : 2); ++kind)
      claims_[kind].overlapping(one, [&](uint64_t number) { found.push_back(number); });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void ExtentLock::claim(uint64_t number, const Request& request)
{
  for (const auto& units : request.claimed())
    claims_[request.shared].add(units, number);
}

void ExtentLock::unclaim(uint64_t number, const Request& request)
{
  for (const auto& units : request.claimed())
    claims_[request.shared].remove(units, number);
}

bool ExtentLock::acquire(JobId job, uint32_t node, bool shared, std::vector<Units> requested,
                         const ExtentCutter& cutter, const LockSpec& spec, ExtentSums& sums)
{
  const uint64_t number = next_++;
  numbers_[job]         = number;
  Request& request      = requests_[number];
  request.job           = job;
  request.node          = node;
  request.shared        = shared;
  request.requested     = std::move(requested);
  for (const uint64_t earlier : near(request.requested, shared))
    request.waits += stops(requests_.at(earlier), request);
  if (request.waits == 0)
    activate(request, cutter, spec, sums);
  claim(number, request);
  return request.active;
}

void ExtentLock::drop(JobId job)
{
  const auto known      = numbers_.find(job);
  const uint64_t number = known->second;
  const Request& gone   = requests_.at(number);
  unclaim(number, gone);
  for (const uint64_t other : near(gone.claimed(), gone.shared))
    if (Request& later = requests_.at(other); other > number && !later.active && stops(gone, later))
      if (--later.waits == 0)
        ready_.insert(other);
  requests_.erase(number);
  ready_.erase(number);
  numbers_.erase(known);
}

void ExtentLock::grant(const ExtentCutter& cutter, const LockSpec& spec, ExtentSums& sums, std::vector<JobId>& freed)
{
  for (const uint64_t number : ready_) {
    Request& request = requests_.at(number);
    unclaim(number, request);
    activate(request, cutter, spec, sums);
    claim(number, request);
    freed.push_back(request.job);
  }
  ready_.clear();
}

uint32_t ExtentLock::called_back(JobId job) const
{
  return requests_.at(numbers_.at(job)).called;
}

// ---- who keeps what
// ---------------------------------------------------------------------------------------------------

void ExtentLock::activate(Request& request, const ExtentCutter& cutter, const LockSpec& spec, ExtentSums& sums)
{
  const size_t before = ranges();
  request.active      = true;
  for (const auto& requested : request.requested) {
    ++sums.taken;
    Units room = cutter.space(requested.begin);
    Units kept;
    if (keeps(request, requested, kept)) {
      ++sums.kept;
      clip(request, requested, kept);
      request.held.push_back(kept);
      continue;
    }
    if (spec.grow) {
      const uint64_t units = *spec.grow / spec.extent;
      room.begin           = std::max(room.begin, requested.begin - std::min(requested.begin, units));
      room.end             = std::min(room.end, requested.end + std::min(everything - requested.end, units));
    }
    if (call_back(request, requested, room)) {
      ++request.called;
      ++sums.called_back;
    }
    clip(request, requested, room);
    give_up(request, room);
    keep(request, room, requested.begin);
    request.held.push_back(room);
  }
  // Ranges of one request may have grown into each other.
  auto& held = request.held;
  std::sort(held.begin(), held.end(), [](const Units& a, const Units& b) { return a.begin < b.begin; });
  size_t last = 0;
  for (size_t next = 1; next < held.size(); ++next)
    if (held[next].begin <= held[last].end)
      held[last].end = std::max(held[last].end, held[next].end);
    else
      held[++last] = held[next];
  held.resize(last + 1);
  if (const size_t all = ranges(); all > most_) {
    forget_oldest();
    sums.forgotten += all - ranges();
  }
  sums.ranges += ranges() - before;
}

/// The node has it still, in a way that will do.
bool ExtentLock::keeps(const Request& request, const Units& requested, Units& kept) const
{
  if (auto after = exclusive_.upper_bound(requested.begin); after != exclusive_.begin()) {
    const auto& [begin, range] = *--after;
    kept                       = {begin, range.end};
    if (range.node == request.node && kept.holds(requested))
      return true;
  }
  if (!request.shared)
    return false;
  if (auto after = shared_.upper_bound({request.node, requested.begin}); after != shared_.begin()) {
    const auto& [whose, range] = *--after;
    kept                       = {whose.second, range.end};
    return range.node == request.node && kept.holds(requested);
  }
  return false;
}

template <class DoIt> void ExtentLock::for_each_rival(const Request& request, const Units& requested, DoIt do_it) const
{
  const auto after = exclusive_.upper_bound(requested.begin);
  for (auto below = after; below != exclusive_.begin();) // the nearest that begins below, or here
    if ((--below)->second.node != request.node) {
      do_it(below->first, below->second);
      break;
    }
  for (auto above = after; above != exclusive_.end(); ++above) // those in the way, and the nearest above
    if (above->second.node != request.node) {
      do_it(above->first, above->second);
      if (above->first >= requested.end)
        break;
    }
  if (!request.shared)
    for (const auto& [whose, range] : shared_)
      if (range.node != request.node)
        do_it(whose.second, range);
}

/// True when others have to give up units. Reduces `room` to the units that may be granted: upwards to the next range
/// of another node or, if that is revoked, to the range that it had requested; downwards only over free units, as files
/// are written forwards.
bool ExtentLock::call_back(const Request& request, const Units& requested, Units& room) const
{
  bool called = false;
  for_each_rival(request, requested, [&](uint64_t begin, const Kept& range) {
    if (range.end <= requested.begin) {
      room.begin = std::max(room.begin, range.end);
    } else if (begin >= requested.end) {
      room.end = std::min(room.end, begin);
    } else {
      called = true;
      if (begin < requested.begin)
        room.begin = requested.begin;
      if (range.requested >= requested.end && range.requested < range.end)
        room.end = std::min(room.end, range.requested);
    }
  });
  return called;
}

/// Beyond the requested units, none is granted that others use or wait for.
void ExtentLock::clip(const Request& request, const Units& requested, Units& room) const
{
  for (size_t kind = 0; kind < (request.shared ? 1 : 2); ++kind) {
    claims_[kind].below(requested.begin, [&](uint64_t number, uint64_t end) {
      if (end > room.begin && requests_.at(number).node != request.node)
        room.begin = end;
      return end <= room.begin;
    });
    claims_[kind].above(requested.end, [&](uint64_t number, uint64_t begin) {
      if (begin < room.end && requests_.at(number).node != request.node)
        room.end = begin;
      return begin >= room.end;
    });
  }
}

/// Others keep nothing of it that conflicts.
void ExtentLock::give_up(const Request& request, const Units& room)
{
  auto at = exclusive_.upper_bound(room.begin);
  if (at != exclusive_.begin() && std::prev(at)->second.end > room.begin)
    --at;
  while (at != exclusive_.end() && at->first < room.end) {
    if (at->second.node == request.node) {
      ++at;
      continue;
    }
    const auto [begin, range] = *at;
    at                        = exclusive_.erase(at);
    if (begin < room.begin) {
      exclusive_[begin]     = range;
      exclusive_[begin].end = room.begin;
    }
    if (range.end > room.end)
      exclusive_[room.end] = range;
  }
  if (request.shared)
    return;
  std::vector<std::pair<uint64_t, Kept>> rests;
  for (auto other = shared_.begin(); other != shared_.end();) {
    const uint64_t begin = other->first.second;
    const Kept range     = other->second;
    if (range.node == request.node || !Units{begin, range.end}.overlaps(room)) {
      ++other;
      continue;
    }
    other = shared_.erase(other);
    if (begin < room.begin) {
      rests.emplace_back(begin, range);
      rests.back().second.end = room.begin;
    }
    if (range.end > room.end)
      rests.emplace_back(room.end, range);
  }
  for (const auto& [begin, range] : rests)
    shared_[{range.node, begin}] = range;
}

/// The node keeps it, as one with what it kept there and beside it.
void ExtentLock::keep(const Request& request, Units room, uint64_t requested)
{
  const auto join = [&](auto& ranges, const auto& key, const auto& begin_of) {
    auto at = ranges.lower_bound(key(room.begin));
    if (at != ranges.begin())
      if (const auto before = std::prev(at); before->second.node == request.node && before->second.end >= room.begin)
        at = before;
    while (at != ranges.end() && at->second.node == request.node && begin_of(at->first) <= room.end) {
      room.begin = std::min(room.begin, begin_of(at->first));
      room.end   = std::max(room.end, at->second.end);
      at         = ranges.erase(at);
    }
    ranges[key(room.begin)] = {room.end, request.node, requested, stamp_++};
  };
  if (request.shared)
    join(
        shared_,
        [&](uint64_t begin) {
          return std::pair{request.node, begin};
        },
        [](const auto& whose) { return whose.second; });
  else
    join(
        exclusive_, [](uint64_t begin) { return begin; }, [](uint64_t begin) { return begin; });
}

void ExtentLock::forget_oldest()
{
  std::vector<uint64_t> stamps;
  for (const auto& [begin, range] : exclusive_)
    stamps.push_back(range.stamp);
  for (const auto& [whose, range] : shared_)
    stamps.push_back(range.stamp);
  const auto middle = stamps.begin() + static_cast<ptrdiff_t>(stamps.size() / 2);
  std::nth_element(stamps.begin(), middle, stamps.end());
  const auto is_old = [oldest_left = *middle](const auto& kept) { return kept.second.stamp < oldest_left; };
  std::erase_if(exclusive_, is_old);
  std::erase_if(shared_, is_old);
}

std::vector<std::pair<uint32_t, Units>> ExtentLock::kept() const
{
  std::vector<std::pair<uint32_t, Units>> out;
  for (const auto& [begin, range] : exclusive_)
    out.push_back({range.node, {begin, range.end}});
  for (const auto& [whose, range] : shared_)
    out.push_back({range.node, {whose.second, range.end}});
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

bool ExtentLock::adds_up() const
{
  uint64_t end = 0;
  for (const auto& [begin, range] : exclusive_) {
    if (begin < end || range.end <= begin)
      return false;
    end = range.end;
  }
  for (const auto& [whose, range] : shared_) {
    const auto after = exclusive_.upper_bound(whose.second);
    if (after != exclusive_.begin())
      if (const auto& [begin, one] = *std::prev(after); one.node != range.node && one.end > whose.second)
        return false;
    for (auto above = after; above != exclusive_.end() && above->first < range.end; ++above)
      if (above->second.node != range.node)
        return false;
  }
  return true;
}

} // namespace iocast
