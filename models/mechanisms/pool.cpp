// SPDX-License-Identifier: Apache-2.0
//
// A pool: objects made in advance, of which operations take one. The making of a batch is a piece.
#include "input/error.hpp"
#include "models/platform_reader.hpp"
#include "models/ring.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace iocast {

namespace {
struct PoolSpec : MechanismSpec {
  uint32_t size  = 0; ///< objects of an instance, at first and at most
  uint32_t low   = 0; ///< when no more are left, batches are made until no further one fits
  uint32_t batch = 0; ///< objects
};

struct PoolSums {
  uint64_t taken  = 0;
  uint64_t made   = 0;
  uint64_t waited = 0; ///< takers that found it empty
  double wait     = 0; ///< their seconds
};

/// One instance: who takes an object, who waits for one, how many are being made.
struct Pool {
  struct Taker {
    JobId job    = nobody;
    double since = 0;
  };

  uint32_t left;
  uint32_t making = 0; ///< batches
  bool filling    = false;
  uint64_t taken  = 0;
  uint64_t made   = 0;
  Ring<Taker> waiting{};

  /// True when the making of a batch begins now. Once no more than `low` are left it goes on until no further batch
  /// fits.
  bool next_batch(const PoolSpec& spec)
  {
    if (left <= spec.low)
      filling = true;
    if (filling && left + uint64_t{making} * spec.batch + spec.batch > spec.size)
      filling = false;
    if (!filling || making == spec.at_once)
      return false;
    ++making;
    return true;
  }

  /// What was there at first and was made, less what was taken, is there; nobody waits for what is there, or for what
  /// nobody makes.
  bool adds_up(const PoolSpec& spec) const
  {
    return spec.size + made - taken == left && left <= spec.size && (waiting.empty() || (left == 0 && making > 0));
  }
};

class Pools final : public Mechanism {
public:
  Pools(const Engine& engine, const PoolSpec& spec) : Mechanism(engine, spec), spec_(spec)
  {
    for (uint32_t i = 0; i < engine.instances(); ++i)
      pools_.push_back({spec.size});
  }

  bool step(JobId id) override
  {
    const uint32_t instance = engine_.instance_of(id);
    Pool& pool              = pools_[instance];
    const bool there        = pool.left > 0;
    if (there)
      take(pool);
    else
      pool.waiting.push_back({id, engine_.now()});
    lowest_ = std::min(lowest_, pool.left);
    refill(instance);
    return there;
  }

  /// A batch is there, for those who wait: first come, first.
  void out(const Piece& piece) override
  {
    Pool& pool = pools_[piece.instance];
    --pool.making;
    pool.made += spec_.batch;
    pool.left += spec_.batch;
    sums_.made += spec_.batch;
    for (; pool.left > 0 && !pool.waiting.empty(); pool.waiting.pop_front()) {
      take(pool);
      ++sums_.waited;
      sums_.wait += engine_.now() - pool.waiting.front().since;
      freed_.push_back(pool.waiting.front().job);
    }
    engine_.go_on(freed_);
    refill(piece.instance);
  }

  bool is_busy() const override
  {
    return std::any_of(pools_.begin(), pools_.end(), [](const Pool& pool) { return pool.making > 0; });
  }

  void check() const override
  {
    if (!std::all_of(pools_.begin(), pools_.end(), [this](const Pool& pool) { return pool.adds_up(spec_); }))
      throw RunError(fmt::format("What is left in the pool '{}' is not what was made less what was taken; this is an "
                                 "error of the simulator.",
                                 spec_.name));
  }

  nlohmann::ordered_json report() override
  {
    uint64_t left = 0;
    for (const auto& pool : pools_)
      left += pool.left;
    const PoolSums before = std::exchange(before_, sums_);
    return {{"taken", sums_.taken - before.taken},
            {"made", sums_.made - before.made},
            {"left", left},
            {"lowest", lowest_},
            {"waited", sums_.waited - before.waited},
            {"wait", sums_.wait - before.wait}};
  }

private:
  void take(Pool& pool)
  {
    --pool.left;
    ++pool.taken;
    ++sums_.taken;
  }

  /// All batches begin that can.
  void refill(uint32_t instance)
  {
    while (pools_[instance].next_batch(spec_)) {
      Op nothing; // each batch is made elsewhere, where stations are spread by object
      nothing.dataset = instance;
      nothing.object  = engine_.pieces();
      engine_.begin(*this, instance, spec_.of_nodes() ? instance : nobody, nothing);
    }
  }

  const PoolSpec& spec_;
  std::vector<Pool> pools_;
  PoolSums sums_; ///< of all instances, since the start
  PoolSums before_;
  uint32_t lowest_ = spec_.size; ///< left in one instance, since the start
  std::vector<JobId> freed_;
};

void check(Named& spec, const YamlNode& yaml, const Platform&)
{
  const auto& pool = static_cast<const PoolSpec&>(spec);
  if (pool.batch > pool.size)
    yaml["batch"].fail(fmt::format("the pool '{}' has no room for a batch of {}; its size is {}", pool.name,
                                   yaml["batch"].text(), yaml["size"].text()));
  if (pool.low > pool.size - pool.batch)
    yaml["low"].fail(fmt::format("when {} are left a batch of {} has no room in the pool '{}', whose size is {}; the "
                                 "most is {}",
                                 pool.low, pool.batch, pool.name, pool.size, pool.size - pool.batch));
}

double room_for_a_batch(const Named& spec)
{
  const auto& pool = static_cast<const PoolSpec&>(spec);
  return std::max(0.0, static_cast<double>(pool.size) - pool.batch);
}

const std::vector<Key> keys{
    number(&PoolSpec::size, {"size", "objects, at first and at most", Unit::count, 1, 1e9}),
    number(&PoolSpec::low,
           {"low",
            "number of objects at which batches start, until no further one fits; default size - batch: as "
            "soon as one fits",
            Unit::count,
            0,
            1e9,
            {},
            room_for_a_batch,
            "size - batch"}),
    number(&PoolSpec::batch, {"batch", "objects made together", Unit::count, 1, 1e9}),
    number(&PoolSpec::at_once, {"at_once", "batches that are made at a time, default 1", Unit::count, 1, 1e6, 1}),
    steps({"refill", "steps of a batch: delays, visits and limits"}, {"batch", "a batch of a pool"}),
};

const bool registered = register_mechanism({
    .section = "pools",
    .word    = "pool",
    .summary =
        "objects made in advance. A step takes one, and waits in order of arrival when there is none. Batches are "
        "made in the background. A pool is full at first",
    .step         = "take",
    .step_meaning = "of the step: name of the pool; the node's or the server's own",
    .says         = "take one of pool {}",
    .example      = "{per: system, size: 20, low: 5, batch: 5, at_once: 1, refill: [{station: s, demand: 20ms}]}",
    .use          = "{take: m}",
    .keys         = keys,
    .kept         = kept<PoolSpec>,
    .make         = make<Pools, PoolSpec>,
    .directories  = false, // which are no objects
    .check        = check,
});
} // namespace

} // namespace iocast
