// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/huge.hpp"
#include "workload/op.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace iocast {

using JobId            = uint32_t;
constexpr JobId nobody = UINT32_MAX;

/// One request on its way through the platform: what its present visit needs, in one cache line. A client has one job,
/// which it uses again for each of its operations; work of others has jobs numbered after the clients'.
struct alignas(64) Job {
  uint32_t instance     = 0; ///< of the station being visited; of a striped visit, how many stripes are still to end
  uint16_t at           = 0; ///< step of the route
  OpKind kind           = OpKind::phase;
  uint8_t parts_done    = 0;
  uint16_t draws        = 0; ///< random numbers used by this operation
  bool locked : 1       = false;
  bool in_timeslice : 1 = false;   ///< a visit to a timeslice station is going on
  bool preempted : 1    = false;   ///< there, and has `work` seconds of its slice still to come
  bool joined : 1       = false;   ///< all ranks of the group have done what they do together
  bool beside : 1       = false;   ///< its steps are those of others' work or of a piece, not of an operation
  bool piece : 1        = false;   ///< of a buffer's drain, of a mechanism or of a cache's fetch
  bool recalled : 1     = false;   ///< the lock of its last visit, or what its last step forgot, had to be called back
  bool evicted : 1      = false;   ///< its last look at a cache had something else evicted
  bool waited : 1       = false;   ///< at a cache for what is on its way, and looks again
  uint32_t operations   = 0;       ///< that the client has done; a number for random numbers, which may start again
  std::array<uint32_t, 3> words{}; ///< random ones for the next draws
  uint32_t owner = nobody; ///< of a client's job its node, of a piece that of its buffer; of a stripe's job the job
                           ///< that it is a part of; of others' work nobody
  double since     = 0;    ///< start of its present state: waiting, stalled, ...
  double requested = 0;    ///< start of the visit
  double work      = 0;    ///< service of the visit, seconds at speed 1
  double demand    = 0;    ///< what of it is still to get
};
static_assert(sizeof(Job) == 64);

/// One server of a timeslice station, and who holds it.
struct Core {
  static constexpr double none = std::numeric_limits<double>::infinity();

  JobId job          = nobody;
  float pace         = 1;    ///< speed of the present stretch of work
  double slice_end   = 0;    ///< when the job must give way to those who wait
  double stretch_end = 0;    ///< when the present stretch ends
  double event       = none; ///< when the earliest event comes that looks whether it has
};

/// For every job the one behind it in the one queue that it can be in. Apart from the jobs, because queues of a million
/// sleeping clients would otherwise fetch a cold cache line for each link.
using Links = HugeVector<JobId>;

/// First come, first served, of any length: a ring of numbers, so that a look at those who come next costs no cold
/// cache line.
class LongQueue {
public:
  bool empty() const { return length_ == 0; }
  uint32_t length() const { return length_; }
  JobId front() const { return ahead(0); }
  /// The job at `place` (0: the next), or nobody.
  JobId ahead(uint32_t place) const { return place < length_ ? ring_[at(place)] : nobody; }
  void push_back(JobId job)
  {
    grow_if_full();
    ring_[at(length_++)] = job;
  }
  void push_front(JobId job)
  {
    grow_if_full();
    head_        = at(size_ - 1);
    ring_[head_] = job;
    ++length_;
  }
  JobId pop_front()
  {
    if (length_ == 0)
      return nobody;
    const JobId job = ring_[head_];
    head_           = at(1);
    --length_;
    return job;
  }

private:
  uint32_t at(uint32_t place) const { return (head_ + place) & (size_ - 1); }
  void grow_if_full()
  {
    if (length_ < size_)
      return;
    const uint32_t size = std::max<uint32_t>(8, 2 * size_);
    // In place where that can be: a queue of a million would be there twice otherwise.
    auto* larger = static_cast<JobId*>(std::realloc(ring_.get(), size * sizeof(JobId)));
    if (larger == nullptr)
      throw std::bad_alloc();
    static_cast<void>(ring_.release());
    ring_.reset(larger);
    std::copy_n(larger, head_, larger + size_); // those who stand before the head come last
    size_ = size;
  }

  struct Free {
    void operator()(JobId* ring) const { std::free(ring); }
  };
  std::unique_ptr<JobId[], Free> ring_; ///< no vector: there may be one of these on each of 100,000 nodes
  uint32_t size_   = 0;                 ///< of the ring, a power of two, or zero
  uint32_t head_   = 0;
  uint32_t length_ = 0;
};

/// First come, first served, of few jobs each: links instead of memory of its own, as there may be millions of such
/// queues.
class JobQueue {
public:
  bool empty() const { return head_ == nobody; }
  JobId front() const { return head_; }
  uint32_t length() const { return length_; }
  void push_back(Links& links, JobId job)
  {
    ++length_;
    links[job] = nobody;
    if (head_ == nobody)
      head_ = job;
    else
      links[tail_] = job;
    tail_ = job;
  }
  void push_front(Links& links, JobId job)
  {
    ++length_;
    links[job] = head_;
    if (head_ == nobody)
      tail_ = job;
    head_ = job;
  }
  JobId pop_front(Links& links)
  {
    const JobId job = head_;
    if (job != nobody) {
      --length_;
      head_ = links[job];
    }
    return job;
  }
  JobId pop_back(Links& links)
  {
    const JobId job = head_ == nobody ? nobody : tail_;
    if (job != nobody)
      remove(links, job);
    return job;
  }
  /// Takes the job out, wherever it stands; false when it is not there.
  bool remove(Links& links, JobId job)
  {
    JobId before = nobody;
    JobId at     = head_;
    while (at != nobody && at != job) {
      before = at;
      at     = links[at];
    }
    if (at == nobody)
      return false;
    (before == nobody ? head_ : links[before]) = links[job];
    if (tail_ == job)
      tail_ = before;
    --length_;
    return true;
  }

private:
  JobId head_      = nobody;
  JobId tail_      = nobody;
  uint32_t length_ = 0;
};

} // namespace iocast
