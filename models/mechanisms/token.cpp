// SPDX-License-Identifier: Apache-2.0
//
// A token that is with one node at a time, as GPFS's token manager and GFS2's glocks have it. All requests of that node
// use it at the same time. A lock with a `hand_over` is for one request at a time, within one visit, and its way takes
// a time of nobody's; a token is used over many steps, and its move is work: of servers of tokens, and of the node that
// gives it up.
#include "input/error.hpp"
#include "models/buffer.hpp"
#include "models/platform_reader.hpp"
#include "models/ring.hpp"

#include <fmt/format.h>
#include <map>
#include <unordered_map>
#include <utility>

namespace iocast {

namespace {
struct TokenSpec : MechanismSpec {
  TokenSpec() { at_once = 0; }
};

struct Waiter {
  JobId job;
  double since;
};

struct Token {
  uint32_t node  = nobody; ///< that has it, or had it last
  uint32_t users = 0;      ///< requests of that node
  bool moves     = false;
  Ring<uint32_t> turns{};                            ///< nodes that want it, as they came
  std::map<uint32_t, std::vector<Waiter>> waiting{}; ///< by node
};

class Tokens final : public Mechanism {
public:
  Tokens(const Engine& engine, const MechanismSpec& spec) : Mechanism(engine, spec) {}

  /// Who comes while other nodes wait, waits for its node's next turn.
  bool step(JobId id) override
  {
    Token& token        = of(engine_.op(id));
    const uint32_t node = engine_.node(id);
    ++sums_.used;
    if (token.node == nobody)
      token.node = node;
    if (token.node == node && token.turns.empty()) {
      ++token.users;
      return true;
    }
    auto& waiters = token.waiting[node];
    if (waiters.empty())
      token.turns.push_back(node);
    waiters.push_back({id, engine_.now()});
    move_unused(token, engine_.op(id));
    return false;
  }

  void leave(JobId id) override
  {
    Token& token = of(engine_.op(id));
    --token.users;
    move_unused(token, engine_.op(id));
  }

  /// It is there: all of the node that wait use it.
  void out(const Piece& piece) override
  {
    Token& token = of(piece.bytes);
    token.moves  = false;
    token.node   = token.turns.front();
    token.turns.pop_front();
    --moving_;
    const auto waiters = token.waiting.extract(token.node);
    for (const auto& waiter : waiters.mapped()) {
      ++token.users;
      ++sums_.waited;
      sums_.wait += engine_.now() - waiter.since;
      arrived_.push_back(waiter.job);
    }
    engine_.go_on(arrived_);
  }

  bool is_busy() const override { return moving_ > 0; }

  void check() const override
  {
    for (const auto& [key, token] : tokens_)
      if (token.users > 0 || !token.waiting.empty() || !token.turns.empty())
        throw RunError(fmt::format("{} requests still use the token '{}' at the end of a phase, and those of {} nodes "
                                   "wait for it; this is an error of the simulator.",
                                   token.users, spec().name, token.waiting.size()));
  }

  nlohmann::ordered_json report() override
  {
    const Sums did = std::exchange(sums_, {});
    return {{"used", did.used}, {"moved", did.moved}, {"waited", did.waited}, {"wait", did.wait}};
  }

private:
  struct Sums {
    uint64_t used   = 0; ///< times
    uint64_t moved  = 0;
    uint64_t waited = 0; ///< requests
    double wait     = 0; ///< their seconds
  };

  Token& of(const Op& op)
  {
    return tokens_[spec().per == Per::object ? object_key(op) : spec().per == Per::dataset ? op.dataset : 0];
  }

  void move_unused(Token& token, const Op& op)
  {
    if (token.users > 0 || token.moves || token.turns.empty())
      return;
    token.moves = true;
    ++moving_;
    ++sums_.moved;
    engine_.begin(*this, 0, token.node, op);
  }

  std::unordered_map<uint64_t, Token> tokens_;
  uint64_t moving_ = 0;
  Sums sums_; ///< since the last report
  std::vector<JobId> arrived_;
};

const bool registered = register_mechanism({
    .section = "tokens",
    .word    = "token",
    .summary =
        "a token that one node has at a time: all its requests use it together while they go through `steps`. It "
        "moves to the next node that waits when nobody uses it any more. The first node that uses one has it at "
        "once",
    .step         = "token",
    .step_meaning = "of the step: name of the token, that of the operation's dataset or object; with `steps`",
    .says         = "with token {}:",
    .example      = "{per: system, move: [{station: s, demand: 2ms}]}",
    .use          = "{token: m, steps: [{station: s, demand: 1ms}]}",
    .keys         = {steps(
        {"move", "steps of a move: delays, visits and limits; at stations of nodes those of the node that has it"},
        {.piece = "move", .what = "a move of a token", .of_a_node = true})},
    .kept         = kept<TokenSpec>,
    .make         = make<Tokens, MechanismSpec>,
    .owners       = {Per::dataset, Per::object, Per::system},
    .encloses     = true,
});
} // namespace

} // namespace iocast
