// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/job.hpp"
#include "models/platform.hpp"
#include "models/ring.hpp"

#include <algorithm>
#include <vector>

namespace iocast {

/// What pools did, over all of a name.
struct PoolSums {
  uint64_t taken  = 0;
  uint64_t made   = 0;
  uint64_t left   = 0;          ///< at this moment
  uint64_t lowest = UINT64_MAX; ///< that was left in one instance
  uint64_t waited = 0;          ///< takers that found it empty
  double wait     = 0;          ///< their seconds
};

/// Objects made in advance: who takes one, who waits for one, how many are being made. What happens in time is the
/// system's business, which asks for next_batch() after every call that isn't const.
class Pool {
public:
  Pool(const PoolSpec& spec, PoolSums& sums) : spec_(&spec), sums_(&sums), left_(spec.size) {}

  /// True when there was one; otherwise the job waits and will be returned by a made().
  bool take(JobId job, double now)
  {
    if (left_ == 0) {
      waiting_.push_back({job, now});
      sums_->lowest = 0;
      return false;
    }
    --left_;
    ++taken_;
    ++sums_->taken;
    sums_->lowest = std::min<uint64_t>(sums_->lowest, left_);
    return true;
  }

  /// True when the making of a batch begins now. Once no more than `low` are left it goes on until no further batch
  /// fits.
  bool next_batch()
  {
    if (left_ <= spec_->low)
      filling_ = true;
    if (filling_ && left_ + uint64_t{making_} * spec_->batch + spec_->batch > spec_->size)
      filling_ = false;
    if (!filling_ || making_ == spec_->at_once)
      return false;
    ++making_;
    return true;
  }

  /// A batch is there. Jobs that waited are appended to `freed`, first come, first.
  void made(double now, std::vector<JobId>& freed)
  {
    --making_;
    made_ += spec_->batch;
    left_ += spec_->batch;
    sums_->made += spec_->batch;
    for (; left_ > 0 && !waiting_.empty(); waiting_.pop_front()) {
      --left_;
      ++taken_;
      ++sums_->taken;
      ++sums_->waited;
      sums_->wait += now - waiting_.front().since;
      freed.push_back(waiting_.front().job);
    }
  }

  uint32_t left() const { return left_; }
  bool is_making() const { return making_ > 0; }
  /// What was there at first and was made, less what was taken, is there; nobody waits for what is there, or for what
  /// nobody makes.
  bool adds_up() const
  {
    return spec_->size + made_ - taken_ == left_ && left_ <= spec_->size &&
           (waiting_.empty() || (left_ == 0 && making_ > 0));
  }

private:
  struct Taker {
    JobId job    = nobody;
    double since = 0;
  };

  const PoolSpec* spec_;
  PoolSums* sums_;
  uint32_t left_;
  uint32_t making_ = 0; ///< batches
  bool filling_    = false;
  uint64_t taken_  = 0;
  uint64_t made_   = 0;
  Ring<Taker> waiting_;
};

/// All instances of a pool of the platform.
struct Pools {
  const PoolSpec* spec;
  std::vector<Pool> instances;
  PoolSums sums;
  uint64_t batches = 0; ///< that ever were

  Pools(const PoolSpec& pool, uint32_t count) : spec(&pool)
  {
    for (uint32_t i = 0; i < count; ++i)
      instances.emplace_back(pool, sums);
  }
  Pools(const Pools&)            = delete; // its instances point into it
  Pools& operator=(const Pools&) = delete;
};

} // namespace iocast
