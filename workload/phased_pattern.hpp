// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/pattern.hpp"

#include <string>
#include <vector>

namespace iocast {

/// A phase of a PhasedPattern.
struct PhaseOfWork {
  enum class Does : uint8_t {
    makes, ///< makes what others need; those that do run all in one run
    uses,
    removes
  };
  size_t which; ///< the pattern's own number for it
  Does does;
  Phase phase; ///< phases that follow each other under one name are chosen together
};

/// A pattern of which a run may choose phases: all, or some of them in their order, so that what one run made can be
/// used and removed by later ones. In the cursor `step`, `i` and `j` belong to the phase: 1, 0 and 0 at its start. `a`,
/// `b` and `c` last from phase to phase; there a pattern remembers how far a phase came, operation by operation, in
/// case it is cut.
class PhasedPattern : public Pattern {
public:
  const std::vector<Phase>& phases() const final { return phases_; }
  bool next(Cursor& cursor, Op& op) const final;
  void cut(Cursor& cursor) const final;
  nlohmann::ordered_json position_after(size_t) const override { return nlohmann::ordered_json::object(); }
  std::string making_phases() const override { return making_phases_; }

protected:
  /// To be called by the constructor. `wanted` is "all" or names apart by commas.
  /// @throws InputError: unknown names, wrong order, making phases torn apart, a making phase with a time limit whose
  /// data no phase of this run removes (a later run couldn't know how much there is)
  void choose_phases(const std::string& pattern, const std::string& wanted, const std::vector<PhaseOfWork>& all);

  /// Whether phase `which` is part of this run.
  bool runs(size_t which) const;
  /// Whether this run makes its data itself; else an earlier one made them whole.
  bool makes_data() const { return makes_; }

  /// The next operation of phase `which`; false when there is none. Neither `phase` nor `step` 0 may be set.
  virtual bool next_in(size_t which, Cursor& cursor, Op& op) const = 0;

private:
  std::vector<Phase> phases_;
  std::vector<size_t> which_;
  bool makes_ = false;
  std::string making_phases_;
};

/// An object that is opened, accessed and closed.
struct Opened {
  uint64_t dataset = 0;
  uint64_t object  = 0;
  uint8_t flags    = 0;     ///< OpFlag of the open; `shared` goes for fsync and close too
  bool sync        = false; ///< fsync before the close
};

/// The next operation of a phase that opens one object, makes accesses as long as `access(op)` returns true, and closes
/// it. Uses steps 1 to 4 and ends in step 5.
template <class Access> bool next_on(const Opened& object, Cursor& cursor, Op& op, Access access)
{
  auto about = [&](OpKind kind, uint8_t flags, uint16_t step) {
    op          = {kind, object.dataset, object.object};
    op.flags    = flags;
    cursor.step = step;
    return true;
  };
  const uint8_t together = object.flags & OpFlag::shared;
  switch (cursor.step) {
    case 1:
      return about(OpKind::open, object.flags, 2);
    case 2:
      if (access(op))
        return true;
      if (object.sync)
        return about(OpKind::fsync, together, 4);
      [[fallthrough]];
    case 4:
      return about(OpKind::close, together, 5);
    default:
      return false;
  }
}

/// Where share `part` of `parts` nearly equal contiguous shares of `total` begins: floor(total * part / parts).
constexpr uint64_t share_start(uint64_t total, uint64_t part, uint64_t parts)
{
  return total / parts * part + total % parts * part / parts;
}

} // namespace iocast
