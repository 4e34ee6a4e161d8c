// SPDX-License-Identifier: Apache-2.0
//
// checkpoint: accelerators compute for a while, then stop until the state of a model is written; later it is read
// back. The state is cut into shards, one for each of tensor x pipeline x data accelerators, a file each: weights (2 of
// 14 bytes a parameter, 16-bit) and the optimiser's state (12 of 14: 32-bit weights, momentum, variance). With ZeRO
// stage 3 both are spread over all accelerators; with stage 1 the weights are written by the first data-parallel
// replica alone (Rajbhandari et al., "ZeRO", SC20, section 5).
#include "input/error.hpp"
#include "workload/phased_pattern.hpp"
#include "workload/steps.hpp"
#include "workload/whole_units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace iocast {
namespace {

/// A model of MLPerf Storage's checkpointing workloads, with the parallelism that its rules prescribe.
struct Model {
  const char* name;
  double bytes;
  uint64_t tensor, pipeline, data, zero_stage;
};
constexpr std::array<Model, 4> models{{{"8B", 105e9, 1, 1, 8, 3},
                                       {"70B", 912e9, 8, 1, 8, 3},
                                       {"405B", 5.29e12, 8, 32, 2, 1},
                                       {"1T", 18e12, 8, 64, 2, 1}}};

const Model& model_named(const std::string& name)
{
  std::vector<std::string> names;
  for (const auto& model : models) {
    if (name == model.name)
      return model;
    names.emplace_back(model.name);
  }
  throw InputError(fmt::format("checkpoint knows no model '{}'. {}", name, allowed_sentence(name, names)));
}

class Checkpoint final : public PhasedPattern {
public:
  Checkpoint(const Parameters& given, const Placement& placement)
      : ranks_(placement.ranks)
      , shift_(placement.ranks_between(within("checkpoint", "node_offset", given, placement.nodes(), "nodes")) %
               placement.ranks)
      , checkpoints_(given.count("checkpoints"))
      , interval_ns_(static_cast<uint64_t>(std::llround(given.number("interval") * 1e9)))
      , block_(given.count("block"))
      , sync_(given.flag("sync"))
  {
    read_shards(given);
    using Does = PhaseOfWork::Does;
    std::vector<PhaseOfWork> all{{make_datasets, Does::makes, {"precreate"}}};
    const bool several = checkpoints_ > 1;
    for (uint32_t i = 0; i < checkpoints_; ++i)
      all.push_back({first_write + i, Does::makes, {"checkpoint", several ? i + 1 : 0}});
    for (uint32_t i = 0; i < checkpoints_; ++i)
      all.push_back(
          {static_cast<size_t>(first_write + checkpoints_ + i), Does::uses, {"restore", several ? i + 1 : 0}});
    all.push_back({remove_files, Does::removes, {"cleanup", 1}});
    all.push_back({remove_datasets, Does::removes, {"cleanup", 2}});
    choose_phases("checkpoint", given.text("phases"), all);
  }

  std::optional<Accelerators> accelerators(size_t phase) const override
  {
    if (interval_ns_ == 0 || phases()[phase].name != "checkpoint")
      return {};
    const auto count = static_cast<double>(shards_);
    return Accelerators{shards_, count * static_cast<double>(interval_ns_) * 1e-9, 1, 0, true};
  }

  Footprint footprint() const override
  {
    const Amount made    = makes_data() ? checkpoints_ : 0;
    const Amount read    = runs(first_write + checkpoints_) ? checkpoints_ : 0;
    const Amount removed = runs(remove_files) ? checkpoints_ : 0;
    Amount blocks        = 0;
    Amount bytes         = 0;
    Footprint result;
    for (const auto& [shards, size] : {std::pair{weighty_, heavy_}, std::pair{shards_ - weighty_, light_}}) {
      blocks = blocks + Amount(shards) * ((size + block_ - 1) / block_);
      bytes  = bytes + Amount(shards) * size;
      if (shards > 0)
        result.largest_size = std::max(result.largest_size, std::min(block_, size));
    }
    const uint64_t waits = makes_data() && interval_ns_ > 0 ? 2 * checkpoints_ * ranks_ : 0;
    result.operations    = {{OpKind::mkdir, made},
                            {OpKind::open, (made + read) * shards_},
                            {OpKind::pwrite, made * blocks},
                            {OpKind::pread, read * blocks},
                            {OpKind::fsync, sync_ ? made * shards_ : Amount(0)},
                            {OpKind::close, (made + read) * shards_},
                            {OpKind::think, waits},
                            {OpKind::unlink, removed * shards_},
                            {OpKind::rmdir, removed}};
    std::erase_if(result.operations, [](const auto& one) { return one.second == 0; });
    result.bytes_written = made * bytes;
    result.bytes_read    = read * bytes;
    result.peak_objects  = Amount(checkpoints_) * shards_;
    result.peak_bytes    = Amount(checkpoints_) * bytes;
    result.steps         = waits > 0;
    return result;
  }

  std::vector<std::string> warnings() const override
  {
    if (ranks_ == shards_)
      return {};
    return {fmt::format("The model is cut into {} shards and there are {} ranks: {}.", shards_, ranks_,
                        ranks_ < shards_ ? "a rank writes several, one after the other" : "some ranks write nothing")};
  }

  char* name_dataset(uint64_t dataset, char* out) const override
  {
    std::memcpy(out, "checkpoint-", 11);
    return std::to_chars(out + 11, out + 31, dataset).ptr;
  }
  char* name_object(uint64_t object, char* out) const override
  {
    std::memcpy(out, "shard-", 6);
    return std::to_chars(out + 6, out + 26, object).ptr;
  }

  nlohmann::ordered_json data_set() const override
  {
    return {{"checkpoints", checkpoints_},
            {"shards", shards_},
            {"with_weights", weighty_},
            {"larger", heavy_},
            {"smaller", light_}};
  }

private:
  enum Which : size_t { make_datasets, remove_files, remove_datasets, first_write };
  enum At : uint16_t { begin = 1, computing, shard, accesses, syncing, closing };

  void read_shards(const Parameters& given)
  {
    const Model& model = model_named(given.text("model"));
    const auto or_of = [&](const char* name, uint64_t own) { return given.count(name) == 0 ? own : given.count(name); };
    const double bytes    = given.number("size") == 0 ? model.bytes : given.number("size");
    const uint64_t stage  = or_of("zero_stage", model.zero_stage);
    const uint64_t groups = or_of("tensor", model.tensor) * or_of("pipeline", model.pipeline);
    shards_               = groups * or_of("data", model.data);
    if (stage != 1 && stage != 3)
      throw InputError(fmt::format("checkpoint knows the ZeRO stages 1 and 3 and no {}.", stage));
    weighty_           = stage == 3 ? shards_ : groups;
    const auto share   = [](double amount, uint64_t parts) { return amount / static_cast<double>(parts); };
    const double state = share(bytes * 12 / 14, shards_);
    const auto align   = given.count("align");
    heavy_             = in_whole_units(state + share(bytes * 2 / 14, weighty_), align);
    light_             = in_whole_units(state, align);
  }

  /// Accelerators are numbered with the tensor-parallel ones fastest, the data-parallel replicas slowest.
  uint64_t size_of(uint64_t shard) const { return shard < weighty_ ? heavy_ : light_; }

  bool next_in(size_t which, Cursor& cursor, Op& op) const override
  {
    if (which == make_datasets || which == remove_datasets) {
      if (cursor.rank != 0 || cursor.i == checkpoints_)
        return false;
      op = {which == make_datasets ? OpKind::mkdir : OpKind::rmdir, cursor.i++, 0};
      return true;
    }
    if (which == remove_files) {
      const uint64_t number = cursor.i * ranks_ + cursor.rank;
      if (number >= shards_ * checkpoints_)
        return false;
      op = {OpKind::unlink, number / shards_, number % shards_};
      ++cursor.i;
      return true;
    }
    const bool writes         = which < first_write + checkpoints_;
    const uint64_t checkpoint = which - first_write - (writes ? 0 : checkpoints_);
    if (cursor.step == begin || cursor.step == computing) {
      const bool first = cursor.step == begin;
      cursor.step      = first ? computing : shard;
      if (writes && interval_ns_ > 0) {
        op = first ? hand_over(0, 1, interval_ns_, StepTimes::no_step) : hand_over(1, 1, 0, 1);
        return true;
      }
      cursor.step = shard;
    }
    return next_of_shard(checkpoint, writes, cursor, op);
  }

  /// `i` is the number of the rank's shard, `j` of the access to it.
  bool next_of_shard(uint64_t checkpoint, bool writes, Cursor& cursor, Op& op) const
  {
    const uint64_t writer = writes ? cursor.rank : (cursor.rank + ranks_ - shift_) % ranks_;
    const uint64_t number = cursor.i * ranks_ + writer;
    if (number >= shards_)
      return false;
    const uint64_t size = size_of(number);
    op                  = {OpKind::close, checkpoint, number};
    switch (cursor.step) {
      case shard:
        op.kind     = OpKind::open;
        op.flags    = writes ? for_writing | make_it : 0;
        cursor.step = accesses;
        cursor.j    = 0;
        return true;
      case accesses: {
        const uint64_t at = cursor.j++ * block_;
        op = {writes ? OpKind::pwrite : OpKind::pread, checkpoint, number, std::min(block_, size - at), at};
        if (at + op.size == size)
          cursor.step = writes && sync_ ? syncing : closing;
        return true;
      }
      case syncing:
        op.kind     = OpKind::fsync;
        cursor.step = closing;
        return true;
      default:
        cursor.step = shard;
        ++cursor.i;
        return true;
    }
  }

  uint64_t ranks_;
  uint64_t shift_; ///< ranks between who writes a shard and who reads it
  uint64_t checkpoints_;
  uint64_t interval_ns_;
  uint64_t block_;
  bool sync_;
  uint64_t shards_  = 0; ///< accelerators
  uint64_t weighty_ = 0; ///< shards with weights, which come first
  uint64_t heavy_   = 0; ///< bytes of each of them
  uint64_t light_   = 0; ///< bytes of each other one
};

const bool registered = register_pattern(
    {"checkpoint",
     "accelerators compute, stop until the state of a model is written, shard by shard, and later read it back",
     "MLPerf Storage 2.0, checkpointing of Llama 3: sizes, parallelism and ZeRO stages of its rules",
     {{"model", Unit::text, "8B", "8B, 70B, 405B or 1T: size of the state and parallelism", 0, 0},
      {"size", Unit::bytes, "0B", "bytes of a checkpoint; 0B: as the model has", 0, 1e18},
      {"tensor", Unit::count, "0", "tensor parallelism; 0: as the model has", 0, 1e6},
      {"pipeline", Unit::count, "0", "pipeline parallelism; 0: as the model has", 0, 1e6},
      {"data", Unit::count, "0", "data parallelism; 0: as the model has", 0, 1e6},
      {"zero_stage", Unit::count, "0",
       "3: weights and optimiser are spread over all; 1: one replica writes the weights; 0: as the model has", 0, 3},
      {"checkpoints", Unit::count, "1", "checkpoints that are written, and read back", 1, 10000},
      {"interval", Unit::seconds, "0s", "computation before each checkpoint", 0, 1e6},
      {"block", Unit::bytes, "64MiB", "bytes of an access", 1, 1e12},
      {"align", Unit::bytes, "1B", meaning_of_align, 1, 1e9},
      {"node_offset", Unit::count, "0", "nodes between who wrote a shard and who reads it; 0: the same rank", 0, 1e9},
      {"sync", Unit::flag, "true", "fsync before the close of a shard"},
      {"phases", Unit::text, "all", "which of precreate, checkpoint, restore, cleanup to run"}},
     {"size=1MB tensor=2 pipeline=3 data=2 zero_stage=1 checkpoints=2 interval=1ms block=30kB",
      "size=100kB tensor=1 pipeline=1 data=5 zero_stage=3 block=7kB node_offset=1 sync=false"},
     [](const Parameters& given, const Placement& placement) {
       return std::make_unique<Checkpoint>(given, placement);
     }});

} // namespace
} // namespace iocast
