// SPDX-License-Identifier: Apache-2.0
//
// neighbours: each rank makes some objects, then reads those of the next rank.
#include "workload/pattern.hpp"

#include <charconv>

namespace iocast {
namespace {

class Neighbours final : public Pattern {
public:
  Neighbours(const Parameters& given, const Placement& placement)
      : ranks_(placement.ranks), objects_(given.count("objects")), size_(given.count("object_size"))
  {
  }

  const std::vector<Phase>& phases() const override { return phases_; }

  // cursor.i counts the operations of a phase: 0 is its beginning, then come one for each object and, in two phases,
  // one for the dataset. Whatever a rank asks for is computed from that number.
  bool next(Cursor& cursor, Op& op) const override
  {
    for (; cursor.phase < phases_.size(); ++cursor.phase, cursor.i = 0) {
      const uint64_t i = cursor.i++;
      if (i == 0) {
        op = {OpKind::phase, 0, cursor.phase};
        return true;
      }
      if (cursor.phase == 0 && i <= objects_ + 1) { // the dataset first
        op = i == 1 ? Op{OpKind::mkdir, cursor.rank, 0} : Op{OpKind::create, cursor.rank, i - 2, size_};
        return true;
      }
      if (cursor.phase == 1 && i <= objects_) {
        op = {OpKind::read, (cursor.rank + 1) % ranks_, i - 1, size_};
        return true;
      }
      if (cursor.phase == 2 && i <= objects_ + 1) { // the dataset last
        op = i <= objects_ ? Op{OpKind::unlink, cursor.rank, i - 1} : Op{OpKind::rmdir, cursor.rank, 0};
        return true;
      }
    }
    return false;
  }

  Footprint footprint() const override
  {
    const uint64_t all = ranks_ * objects_;
    return {{{OpKind::mkdir, ranks_},
             {OpKind::create, all},
             {OpKind::read, all},
             {OpKind::unlink, all},
             {OpKind::rmdir, ranks_}},
            all * size_,
            all * size_,
            all,
            all * size_,
            size_};
  }

  char* name_dataset(uint64_t dataset, char* out) const override { return std::to_chars(out, out + 20, dataset).ptr; }
  char* name_object(uint64_t object, char* out) const override { return std::to_chars(out, out + 20, object).ptr; }

  // Always whole, from precreate to cleanup: there is nothing that a later run could go on with.
  nlohmann::ordered_json data_set() const override
  {
    return {{"ranks", ranks_}, {"objects", objects_}, {"object_size", size_}};
  }
  nlohmann::ordered_json position_after(size_t) const override { return nlohmann::ordered_json::object(); }

private:
  uint64_t ranks_;
  uint64_t objects_;
  uint64_t size_;
  std::vector<Phase> phases_{{"precreate"}, {"benchmark"}, {"cleanup"}};
};

const bool registered = register_pattern({"neighbours",
                                          "each rank reads the objects of the next rank",
                                          "an example",
                                          {{"objects", Unit::count, "100", "objects of each rank", 1, 1e9},
                                           {"object_size", Unit::bytes, "4KiB", "size of each", 0, 1e12}},
                                          {"objects=3 object_size=5B"},
                                          [](const Parameters& given, const Placement& placement) {
                                            return std::make_unique<Neighbours>(given, placement);
                                          }});

} // namespace
} // namespace iocast
