// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/job.hpp"
#include "models/ring.hpp"
#include "workload/random.hpp"

#include <unordered_map>
#include <utility>

namespace iocast {

inline uint64_t object_key(uint64_t dataset, uint64_t object)
{
  return mix(mix(dataset) ^ object);
}
inline uint64_t object_key(const Op& op)
{
  return object_key(op.dataset, op.object);
}

/// Adjacent bytes of an object in a buffer, which leave it together.
struct Extent {
  uint64_t dataset = 0;
  uint64_t object  = 0;
  uint64_t offset  = 0; ///< bytes
  uint64_t size    = 0; ///< bytes
  double since     = 0; ///< when the first of them came
  uint64_t serial  = 0; ///< in the order of turns
  uint64_t epoch   = 0;

  Op as_write() const { return Op(OpKind::pwrite, dataset, object, size, offset); }
};

/// Pieces that are to drain. An object has its pieces drained in the order in which they came; objects take turns, a
/// piece each, as the files of a stage-out or of a kernel's write-back do.
class Turns {
public:
  bool empty() const { return turns_.empty(); }
  void push_back(const Extent& piece)
  {
    const auto [behind, first] = behind_.try_emplace(object_key(piece.dataset, piece.object));
    (first ? turns_ : behind->second).push_back(piece);
  }
  const Extent& front() const { return turns_.front(); }
  /// @param serial the next turn of the object comes in this place of the order
  Extent pop_front(uint64_t serial)
  {
    const Extent piece = turns_.front();
    turns_.pop_front();
    const auto behind = behind_.find(object_key(piece.dataset, piece.object));
    if (behind->second.empty()) {
      behind_.erase(behind);
      return piece;
    }
    turns_.push_back(behind->second.front()).serial = serial;
    behind->second.pop_front();
    return piece;
  }

private:
  Ring<Extent> turns_;                                ///< a piece of each object
  std::unordered_map<uint64_t, Ring<Extent>> behind_; ///< by object_key() of each of them, its other pieces
};

} // namespace iocast
