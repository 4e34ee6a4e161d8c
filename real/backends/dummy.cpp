// SPDX-License-Identifier: Apache-2.0
//
// dummy: stores nothing. Its delays and failures are set by options: for tests, for the cost of the
// benchmark itself, and for looking at operation streams.
#include "input/error.hpp"
#include "real/backend.hpp"

#include <cerrno>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace iocast {
namespace {

class Dummy final : public Backend {
public:
  Dummy(const Parameters& given, const Client& client)
      : delay_ns_(static_cast<int64_t>(std::llround(given.number("delay") * 1e9)))
      , stall_ns_(static_cast<int64_t>(std::llround(given.number("stall") * 1e9)))
      , stall_every_(given.count("stall_every"))
      , abort_after_(given.count("abort_after"))
      , aborts_(given.number("abort_rank") == client.rank)
  {
    read_failures(given.text("fail"));
    if (const double rank = given.number("fail_rank"); rank >= 0 && rank != client.rank)
      fail_every_ = 0;
  }

  void connect() override
  {
    if (aborts_ && abort_after_ == 0)
      abort_now();
  }

  int mkdir(const Name&) override { return answer(OpKind::mkdir); }
  int stat(const Name&, uint64_t&) override { return answer(OpKind::stat); }
  int unlink(const Name&) override { return answer(OpKind::unlink); }
  int rmdir(const Name&) override { return answer(OpKind::rmdir); }
  int create(const Name&, uint64_t, Stopwatch& watch) override { return answer_in_parts(OpKind::create, watch); }
  int read(const Name&, uint64_t, Stopwatch& watch) override { return answer_in_parts(OpKind::read, watch); }
  int append(const Name&, uint64_t, Stopwatch& watch) override { return answer_in_parts(OpKind::append, watch); }
  bool serves(OpKind) const override { return true; }
  int readdir(const Name&, uint64_t&) override { return answer(OpKind::readdir); }
  int open(const Name&, uint8_t, Slot) override { return answer(OpKind::open); }
  int pwrite(Slot, const Op&) override { return answer(OpKind::pwrite); }
  int pread(Slot, const Op&) override { return answer(OpKind::pread); }
  int fsync(Slot) override { return answer(OpKind::fsync); }
  int close(Slot) override { return answer(OpKind::close); }

private:
  /// "create:100": every hundredth create.
  void read_failures(const std::string& text)
  {
    if (text.empty())
      return;
    const auto colon = text.find(':');
    const auto kind  = op_named(text.substr(0, colon));
    double every     = 0;
    if (colon != std::string::npos && kind && *kind != OpKind::phase && *kind != OpKind::think)
      every = parse_quantity(text.substr(colon + 1), Unit::count);
    if (every < 1)
      throw InputError(
          fmt::format("--dummy.fail can't be '{}'; it takes an operation and a number, such as create:100, which "
                      "makes every 100th create fail. Allowed: {}.",
                      text, fmt::join(op_names.begin() + 1, op_names.end() - 1, ", ")));
    fail_kind_  = *kind;
    fail_every_ = static_cast<uint64_t>(every);
  }

  int answer(OpKind kind)
  {
    if (delay_ns_ > 0)
      sleep_until(now_ns() + delay_ns_);
    ++calls_;
    if (stall_every_ > 0 && calls_ % stall_every_ == 0)
      sleep_until(now_ns() + stall_ns_);
    if (aborts_ && calls_ == abort_after_)
      abort_now();
    return fail_every_ > 0 && kind == fail_kind_ && ++of_fail_kind_ % fail_every_ == 0 ? EIO : 0;
  }

  /// The whole delay is in the first part.
  int answer_in_parts(OpKind kind, Stopwatch& watch)
  {
    const int error = answer(kind);
    for (size_t part = 0; part < parts_of(kind).size(); ++part)
      watch.lap();
    return error;
  }

  [[noreturn]] void abort_now() const
  {
    throw RunError(fmt::format("The dummy backend gives up after {} operations (--dummy.abort_after).", abort_after_));
  }

  int64_t delay_ns_;
  int64_t stall_ns_;
  uint64_t stall_every_;
  uint64_t abort_after_;
  bool aborts_;
  OpKind fail_kind_      = OpKind::phase;
  uint64_t fail_every_   = 0;
  uint64_t of_fail_kind_ = 0;
  uint64_t calls_        = 0;
};

const bool registered = register_backend(
    {"dummy",
     "stores nothing; delays and failures are set by options",
     {{"delay", Unit::seconds, "0s", "how long each operation sleeps", 0, 3600},
      {"stall", Unit::seconds, "0s", "how much longer every stall_every-th operation of each rank takes", 0, 3600},
      {"stall_every", Unit::count, "0", "see stall; 0 for none", 0, 9e15},
      {"fail", Unit::text, "", "OPERATION:N makes every N-th such operation of each rank fail with an I/O error"},
      {"fail_rank", Unit::count, "-1", "the only rank on which --dummy.fail holds; -1 for all", -1, 4e9},
      {"abort_rank", Unit::count, "-1", "a rank that can't go on after abort_after operations; -1 for none", -1, 4e9},
      {"abort_after", Unit::count, "0", "see abort_rank; 0 fails at the start", 0, 9e15}},
     {},
     "",
     [](const Parameters& given, const Client& client) { return std::make_unique<Dummy>(given, client); },
     false});

} // namespace
} // namespace iocast
