// SPDX-License-Identifier: Apache-2.0
//
// A token bucket: what quotas of cloud storage and rate limits of servers (Lustre's NRS TBF) let through. The bucket is
// not counted down; it is known when it will be full again, and so when each request passes: the generic cell rate
// algorithm (ITU-T I.371, annex A), in which requests pass in order of arrival.
#include "models/mechanism.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace iocast {

namespace {
struct BucketSpec : MechanismSpec {
  double rate        = 0; ///< tokens a second, one of each request; 0: these are not counted
  double burst       = 1; ///< tokens of a full bucket
  double bandwidth   = 0; ///< bytes a second; 0: these are not counted
  double burst_bytes = 0; ///< of a full bucket
};

/// Tokens of one sort in one bucket.
struct Level {
  double full_at = 0; ///< seconds

  /// The first moment from `now` on at which there are as many tokens, or the bucket is full.
  double passes_at(double now, double tokens, double rate, double burst) const
  {
    return std::max(now, full_at - std::max(0.0, burst - tokens) / rate);
  }
  void take(double now, double tokens, double rate) { full_at = std::max(now, full_at) + tokens / rate; }
};

class Buckets final : public Mechanism {
public:
  Buckets(const Engine& engine, const BucketSpec& spec)
      : Mechanism(engine, spec)
      , spec_(spec)
      , requests_(engine.instances())
      , bytes_(engine.instances())
      , last_(engine.instances())
  {
  }

  bool step(JobId id) override
  {
    const double now = engine_.now();
    Level& requests  = requests_[engine_.instance_of(id)];
    Level& bytes     = bytes_[engine_.instance_of(id)];
    const auto moved = static_cast<double>(engine_.op(id).bytes());
    double passes    = std::max(now, last_[engine_.instance_of(id)]); // nobody overtakes
    if (spec_.rate > 0)
      passes = requests.passes_at(passes, 1, spec_.rate, spec_.burst);
    if (spec_.bandwidth > 0 && moved > 0)
      passes = bytes.passes_at(passes, moved, spec_.bandwidth, spec_.burst_bytes);
    if (spec_.rate > 0)
      requests.take(passes, 1, spec_.rate);
    if (spec_.bandwidth > 0)
      bytes.take(passes, moved, spec_.bandwidth);
    last_[engine_.instance_of(id)] = passes;
    ++sums_.passed;
    if (passes <= now)
      return true;
    ++sums_.waited;
    sums_.wait += passes - now;
    engine_.go_on(id, passes);
    return false;
  }

  nlohmann::ordered_json report() override
  {
    const Sums of = std::exchange(sums_, {});
    return {{"passed", of.passed}, {"waited", of.waited}, {"wait", of.wait}};
  }

private:
  struct Sums {
    uint64_t passed = 0; ///< or will, of those that came
    uint64_t waited = 0;
    double wait     = 0; ///< seconds
  };

  const BucketSpec& spec_;
  std::vector<Level> requests_; ///< by instance
  std::vector<Level> bytes_;    ///< likewise
  std::vector<double> last_;    ///< likewise: when the last one passes, in seconds
  Sums sums_;                   ///< since the last report
};

void check(Named& spec, const YamlNode& yaml, const Platform&)
{
  const auto& bucket = static_cast<const BucketSpec&>(spec);
  if (bucket.rate == 0 && bucket.bandwidth == 0)
    yaml.fail(fmt::format("the bucket '{}' lets everything through; give it a 'rate' of requests or a 'bandwidth'",
                          bucket.name));
  for (const auto& [burst, of] : {std::pair{"burst", "rate"}, std::pair{"burst_bytes", "bandwidth"}})
    if (const auto given = yaml.find(burst); given && !yaml.has(of))
      given->fail(fmt::format("'{}' is of a bucket with a '{}'", burst, of));
}

const std::vector<Key> keys{
    number(&BucketSpec::rate, {"rate", "requests a second", Unit::rate, 1e-9, 1e15, 0}),
    number(&BucketSpec::burst, {"burst", "with rate: requests that a full bucket lets through at once, default 1",
                                Unit::count, 1, 1e15, 1}),
    number(&BucketSpec::bandwidth, {"bandwidth", "bytes a second", Unit::bandwidth, 1e-9, 1e18, 0}),
    number(&BucketSpec::burst_bytes,
           {"burst_bytes",
            "with bandwidth: bytes that a full bucket lets through at once, default none. A request of more "
            "passes when the bucket is full, and those behind it wait the longer",
            Unit::bytes, 1, 1e18, 0}),
};

const bool registered = register_mechanism({
    .section = "buckets",
    .word    = "bucket",
    .summary = "a token bucket: a rate of requests, or of bytes, and how much may pass at once after a pause. A step "
               "waits for its tokens in order of arrival. A bucket is full at first",
    .step    = "bucket",
    .step_meaning   = "of the step: name of the bucket; the node's or the server's own",
    .says           = "pass bucket {}",
    .example        = "{per: system, rate: 300/s, burst: 20, bandwidth: 1MB/s, burst_bytes: 200KiB}",
    .use            = "{bucket: m}",
    .keys           = keys,
    .kept           = kept<BucketSpec>,
    .make           = make<Buckets, BucketSpec>,
    .check          = check,
    .by_bytes       = [](const MechanismSpec& spec) { return static_cast<const BucketSpec&>(spec).bandwidth > 0; },
    .by_bytes_alone = [](const MechanismSpec& spec) { return static_cast<const BucketSpec&>(spec).rate == 0; },
});
} // namespace

} // namespace iocast
