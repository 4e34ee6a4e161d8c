// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "profile/recorder.hpp"
#include "real/name.hpp"
#include "real/stopwatch.hpp"
#include "workload/op_stream.hpp"
#include "workload/pattern.hpp"

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace iocast {

/// An operation, and when its parts ended.
struct Request {
  explicit Request(const Pattern& pattern) : name(pattern) {}
  Op op;
  Stopwatch watch;
  int64_t intended_ns = TimedOp::not_intended; ///< since the start of the phase
  Name name;
};

/// What comes: the operations of one rank. They are formed by the dozen and recorded by the dozen: a system call leaves
/// little of pattern and histograms in the CPU's caches, and fetching them back once serves many operations.
class Lookahead {
public:
  Lookahead(const Pattern& pattern, uint32_t rank);

  /// The next operation of this phase, formed or not.
  bool take(Op& op);
  /// Takes the OpKind::phase that the stream stands before; the number of the phase, or nothing at the end.
  std::optional<size_t> next_phase();

  /// The next operations with their names, when all before are recorded: as many as there is room for, but none behind
  /// the first of a stretch of accesses where these are issued in one go. Where the rank is cut short after that,
  /// look_back() is to follow. @return false at the end of the phase
  bool form(bool streams);
  bool has_next() const { return answered_ < formed_; }
  /// Nothing is formed behind the next.
  bool is_last() const { return answered_ + 1 == formed_; }
  Request& next() { return requests_[answered_]; }
  /// The next was answered.
  void answer() { ++answered_; }
  /// Beyond an operation that is not to be recorded, or was already; those before it are.
  void pass() { recorded_ = ++answered_; }
  /// Those that are answered, once each.
  std::span<const Request> unrecorded();
  /// The cursor stands behind the last operation that was issued, and before the end of the phase unless that was.
  void look_back();
  /// Nothing is formed; next() may be anything.
  void forget() { recorded_ = answered_ = formed_ = 0; }

  Cursor& cursor() { return cursor_; }
  const Cursor& cursor() const { return cursor_; }
  /// Stands this number of operations behind `from`.
  void go_to(const Cursor& from, size_t operations);

private:
  static constexpr size_t most_requests = 32;

  const Pattern& pattern_;
  Cursor cursor_;
  std::optional<size_t> next_phase_; ///< the number of the phase that the stream stands before
  std::vector<Request> requests_;
  size_t recorded_ = 0; ///< number of recorded ones, the first of requests_; the next up to `answered_` are answered,
                        ///< and those up to `formed_` are not issued yet
  size_t answered_ = 0;
  size_t formed_   = 0;
  Cursor formed_from_; ///< before the first of requests_
  bool over_ = false;  ///< the phase has no more than they are
};

} // namespace iocast
