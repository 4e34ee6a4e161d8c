// SPDX-License-Identifier: Apache-2.0
//
// An example of a mechanism: a gate that opens at regular times. Who comes to it waits until it opens next.
#include "models/mechanism.hpp"

#include <cmath>
#include <utility>

namespace iocast {

namespace {
struct GateSpec : MechanismSpec {
  double every = 0; ///< seconds
};

class Gates final : public Mechanism {
public:
  Gates(const Engine& engine, const GateSpec& spec) : Mechanism(engine, spec), spec_(spec) {}

  bool step(JobId id) override
  {
    const double now  = engine_.now();
    const double open = (std::floor(now / spec_.every) + 1) * spec_.every;
    ++passed_;
    wait_ += open - now;
    engine_.go_on(id, open);
    return false;
  }

  nlohmann::ordered_json report() override
  {
    return {{"passed", std::exchange(passed_, 0)}, {"wait", std::exchange(wait_, 0)}};
  }

private:
  const GateSpec& spec_;
  uint64_t passed_ = 0;
  double wait_     = 0;
};

const bool registered = register_mechanism({
    .section      = "gates",
    .word         = "gate",
    .summary      = "opens at regular times, for all who wait",
    .step         = "gate",
    .step_meaning = "of the step: name of the gate",
    .says         = "wait for gate {}",
    .example      = "{per: system, every: 30ms}",
    .use          = "{gate: m}",
    .keys   = {number(&GateSpec::every, {"every", "time from one opening to the next", Unit::seconds, 1e-6, 1e6})},
    .kept   = kept<GateSpec>,
    .make   = make<Gates, GateSpec>,
    .owners = {Per::system},
});
} // namespace

} // namespace iocast
