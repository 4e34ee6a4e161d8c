// SPDX-License-Identifier: Apache-2.0
//
// replay: what a trace (ops.h5, docs/run-directory.md) says that was done, done again: by as many ranks as then, by
// fewer that do the work of several one after the other within each phase, or by a multiple of them, of which each
// group does everything in directories of their own.
#include "input/error.hpp"
#include "workload/ops_file.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>

namespace iocast {
namespace {

using ops_file::Column;
using ops_file::Row;

enum class Timing : uint8_t { fast, think, start };

/// The pattern that made the operations, for its names; none when they come from elsewhere, and are numbered.
std::unique_ptr<Pattern> maker_of(const nlohmann::ordered_json& about)
{
  try {
    const auto& workload = about.at("workload");
    const auto& entry    = pattern_named(workload.at("pattern").get<std::string>());
    if (!entry.section.empty())
      return nullptr; // it is made of more than parameters
    Parameters parameters(entry.parameters);
    for (const auto& [name, value] : workload.at("parameters").items()) {
      const auto declared = std::find_if(entry.parameters.begin(), entry.parameters.end(),
                                         [&name = name](const auto& p) { return p.name == name; });
      const Unit unit     = declared == entry.parameters.end() ? Unit::text : declared->unit;
      const char* suffix  = unit == Unit::bytes       ? "B"
                            : unit == Unit::seconds   ? "s"
                            : unit == Unit::rate      ? "/s"
                            : unit == Unit::bandwidth ? "B/s"
                                                      : "";
      parameters.set(name, value.is_string() ? value.get<std::string>() : value.dump() + suffix);
    }
    const auto& placement = about.at("placement");
    return entry.make(parameters,
                      {placement.at("ranks").get<uint32_t>(), placement.at("ranks_per_node").get<uint32_t>()});
  } catch (const nlohmann::json::exception&) {
    return nullptr;
  } catch (const InputError&) {
    return nullptr; // of a later version, perhaps; the names don't matter for what is measured
  }
}

/// What a recorded rank did, as it is to be done again: its operations, and before each what the timing asks for.
class Expander {
public:
  Expander(Timing timing, double scale) : timing_(timing), scale_(scale) {}

  template <class Give> void expand(const Row& row, Give give)
  {
    const TracedOp& traced = row.traced;
    if (traced.op.kind == OpKind::phase) {
      phase_ns_ = end_ns_ = traced.start_ns;
      give(traced.op);
      return;
    }
    if (timing_ == Timing::fast) {
      give(traced.op);
      return;
    }
    if (traced.op.kind == OpKind::think)
      return; // it is part of the time between operations
    Op wait(OpKind::think, 0, 0);
    if (timing_ == Timing::start) {
      wait.flags = until;
      wait.size  = scaled(traced.start_ns - phase_ns_);
      give(wait);
    } else if (traced.start_ns > end_ns_) {
      wait.size = scaled(traced.start_ns - end_ns_);
      give(wait);
    }
    end_ns_ = traced.start_ns + traced.ns;
    give(traced.op);
  }

private:
  /// At most 73 years: whoever waits adds it to a clock's time.
  uint64_t scaled(int64_t ns) const
  {
    return static_cast<uint64_t>(
        std::llround(std::min(static_cast<double>(std::max<int64_t>(0, ns)) * scale_, 0x1p61)));
  }

  Timing timing_;
  double scale_;
  int64_t phase_ns_ = 0;
  int64_t end_ns_   = 0;
};

class Replay final : public Pattern {
public:
  Replay(const Parameters& given, const Placement& placement)
      : placement_(placement)
      , file_(found(given.text("file")))
      , trace_(ops_file::open_file(file_))
      , timing_(timing_of(given))
      , scale_(given.number("time_scale"))
      , maker_(maker_of(trace_->about()))
      , ranks_(placement.ranks)
  {
    for (const auto& phase : trace_->about().value("phases", nlohmann::ordered_json::array())) {
      if (!phase.is_object() || !phase.contains("name") || !phase["name"].is_string())
        throw InputError(
            fmt::format("The trace '{}' can't be used: its attribute 'about' has a phase without a name.", file_));
      phases_.push_back({phase["name"], phase.value("repeat", 0U)});
    }
    if (phases_.empty())
      throw InputError(fmt::format("The trace '{}' can't be used: its attribute 'about' names no phases.", file_));
    const uint32_t recorded = trace_->index().ranks();
    copies_                 = placement.ranks > recorded ? placement.ranks / recorded : 1;
    if (placement.ranks > recorded && placement.ranks % recorded != 0)
      throw InputError(fmt::format(
          "The trace '{}' has {} ranks; it can be replayed by at most as many, or by a multiple of them, not by {}.",
          file_, recorded, placement.ranks));
    known_.resize(recorded);
    for (const uint32_t group : trace_->index().group)
      groups_ = std::max(groups_, group + 1);
    look_through();
  }

  const std::vector<Phase>& phases() const override { return phases_; }

  uint32_t group_of(uint32_t rank) const override
  {
    return trace_->index().group[rank % recorded_ranks()] + copy_of(rank) * groups_;
  }

  bool next(Cursor& cursor, Op& op) const override
  {
    auto& rank = ranks_[cursor.rank];
    if (cursor.phase == 0 && cursor.step == 0)
      rank.stream = stream_of(cursor.rank);
    if (!rank.stream)
      return false;
    while (cursor.phase < phases_.size()) {
      std::string& bytes = (*rank.stream)[cursor.phase].bytes;
      if (cursor.step == 0) {
        op          = {OpKind::phase, 0, cursor.phase};
        cursor.step = 1;
        cursor.i    = 0;
        rank.codec  = {};
        return true;
      }
      if (cursor.i < bytes.size()) {
        const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
        TracedOp traced;
        cursor.i = static_cast<uint64_t>(rank.codec.decode(data + cursor.i, traced) - data);
        op       = traced.op;
        if (op.kind != OpKind::think)
          op.dataset = op.dataset * copies_ + copy_of(cursor.rank);
        return true;
      }
      if (copies_ == 1) // nobody else has this stream
        std::string().swap(bytes);
      ++cursor.phase;
      cursor.step = 0;
    }
    rank.stream.reset();
    return false;
  }

  Footprint footprint() const override { return footprint_; }

  std::vector<std::string> warnings() const override
  {
    if (placement_.ranks < recorded_ranks())
      return {fmt::format(
          "{} ranks replay what {} did: each does the work of up to {} of them, one after the other in every phase.",
          placement_.ranks, recorded_ranks(), (recorded_ranks() + placement_.ranks - 1) / placement_.ranks)};
    if (copies_ > 1)
      return {
          fmt::format("{} ranks are {} copies of the {} that were recorded, each in directories of its own: files are "
                      "shared within a copy, not among copies.",
                      placement_.ranks, copies_, recorded_ranks())};
    return {};
  }

  char* name_dataset(uint64_t dataset, char* out) const override
  {
    if (copies_ > 1) {
      *out++ = 'c';
      out    = std::to_chars(out, out + 20, dataset % copies_).ptr;
      *out++ = '_';
    }
    dataset /= copies_;
    if (maker_)
      return maker_->name_dataset(dataset, out);
    *out++ = 'd';
    return std::to_chars(out, out + 20, dataset).ptr;
  }

  char* name_object(uint64_t object, char* out) const override
  {
    if (maker_)
      return maker_->name_object(object, out);
    *out++ = 'o';
    return std::to_chars(out, out + 20, object).ptr;
  }

  char* name_object_in(uint64_t dataset, uint64_t object, char* out) const override
  {
    return maker_ ? maker_->name_object_in(dataset / copies_, object, out) : name_object(object, out);
  }

  nlohmann::ordered_json data_set() const override
  {
    return {{"ranks", placement_.ranks},
            {"trace", std::filesystem::path(file_).filename().string()},
            {"rows", trace_->index().rows()}};
  }
  nlohmann::ordered_json position_after(size_t) const override { return nlohmann::ordered_json::object(); }

private:
  struct Segment {
    OpCodec codec;
    std::string bytes;
  };
  /// What a rank has to do, by phase; datasets are those of the trace.
  using Stream = std::vector<Segment>;
  /// A stream, which all copies of a recorded rank have together, and how far this one is in reading it.
  struct Rank {
    std::shared_ptr<Stream> stream;
    OpCodec codec;
  };

  /// A path, or the name of a trace that comes with iocast.
  static std::string found(const std::string& file)
  {
    if (file.empty())
      throw InputError("replay needs a trace: set file to an ops.h5 that --trace or iocast import made.");
    std::error_code ignored;
    if (file.find('/') == std::string::npos && !std::filesystem::exists(file, ignored))
      if (const auto own = std::filesystem::path(data_directory("workload/traces")) / file;
          std::filesystem::exists(own, ignored))
        return own.string();
    return file;
  }

  static Timing timing_of(const Parameters& given)
  {
    const std::vector<std::string> names{"fast", "think", "start"};
    const auto& text  = given.text("timing");
    const auto chosen = std::find(names.begin(), names.end(), text);
    if (chosen == names.end())
      throw InputError(fmt::format("The timing of a replay can't be '{}'. {}", text, allowed_sentence(text, names)));
    const auto timing = static_cast<Timing>(chosen - names.begin());
    if (timing != Timing::fast &&
        (given.number("rate") > 0 || given.number("waiting_factor") > 0 || given.number("think_time") > 0))
      throw InputError(fmt::format("timing={} takes the times of a replay from its trace; leave out rate, "
                                   "waiting_factor and think_time, or say timing=fast.",
                                   text));
    return timing;
  }

  uint32_t recorded_ranks() const { return trace_->index().ranks(); }
  uint32_t copy_of(uint32_t rank) const { return rank / recorded_ranks(); }
  /// Calls act(recorded rank) for those whose work this rank does.
  template <class Act> void for_recorded(uint32_t rank, Act act) const
  {
    for (uint64_t recorded = rank % recorded_ranks(); recorded < recorded_ranks(); recorded += placement_.ranks)
      act(static_cast<uint32_t>(recorded));
  }

  [[noreturn]] void wrong_phase(uint32_t rank) const
  {
    throw InputError(fmt::format("The trace '{}' can't be used: rank {} doesn't go through its {} phases in order.",
                                 file_, rank, phases_.size()));
  }

  std::shared_ptr<Stream> stream_of(uint32_t number) const
  {
    if (copies_ == 1)
      return load(number);
    auto& known = known_[number % recorded_ranks()];
    if (!known)
      known = load(number);
    return known;
  }

  std::shared_ptr<Stream> load(uint32_t number) const
  {
    auto stream = std::make_shared<Stream>(phases_.size());
    for_recorded(number, [&](uint32_t recorded) {
      Expander expander(timing_, scale_);
      Segment* phase = nullptr;
      trace_->visit(trace_->index().first_row[recorded], trace_->index().first_row[recorded + 1], [&](const Row& row) {
        expander.expand(row, [&](const Op& op) {
          if (op.kind == OpKind::phase) {
            phase = &(*stream)[op.object]; // look_through() has seen that there is one
            return;
          }
          const size_t used = phase->bytes.size();
          phase->bytes.resize(used + OpCodec::most_bytes);
          auto* begin = reinterpret_cast<unsigned char*>(phase->bytes.data());
          phase->bytes.resize(static_cast<size_t>(phase->codec.encode({op, 0, 0, 0}, begin + used) - begin));
        });
      });
    });
    return stream;
  }

  /// Counts what there is to do, and refuses what can't be done.
  void look_through()
  {
    std::vector<Column> needed{Column::kind, Column::flags, Column::count, Column::object, Column::size};
    if (timing_ != Timing::fast)
      needed.insert(needed.end(), {Column::start_ns, Column::duration_ns});
    std::array<uint64_t, op_count> counted{};
    bool joint = false;
    for (uint32_t rank = 0; rank < recorded_ranks(); ++rank) {
      Expander expander(timing_, scale_);
      uint64_t phases = 0;
      int64_t objects = 0;
      int64_t most    = 0;
      trace_->visit(
          trace_->index().first_row[rank], trace_->index().first_row[rank + 1],
          [&](const Row& row) {
            expander.expand(row, [&](const Op& op) {
              if (op.kind == OpKind::phase ? op.object != phases++ : phases == 0)
                wrong_phase(rank);
              ++counted[static_cast<size_t>(op.kind)];
              joint                 = joint || (op.kind != OpKind::think && op.flags & (shared | collective));
              footprint_.collective = footprint_.collective || (op.kind != OpKind::think && op.flags & collective);
              if (op.kind == OpKind::create || op.kind == OpKind::append || op.kind == OpKind::pwrite)
                footprint_.bytes_written += op.bytes();
              if (op.kind == OpKind::read || op.kind == OpKind::pread)
                footprint_.bytes_read += op.bytes();
              if (op.kind >= OpKind::create && op.kind != OpKind::think && op.kind != OpKind::readdir)
                footprint_.largest_size = std::max(footprint_.largest_size, op.bytes());
              objects += op.kind == OpKind::create || (op.kind == OpKind::open && op.flags & make_it) ? 1
                         : op.kind == OpKind::unlink                                                  ? -1
                                                                                                      : 0;
              most = std::max(most, objects);
            });
          },
          needed);
      if (phases != phases_.size())
        wrong_phase(rank);
      footprint_.peak_objects += static_cast<uint64_t>(most);
    }
    if (joint && placement_.ranks < recorded_ranks())
      throw InputError(fmt::format("The trace '{}' has operations that all ranks of a group do together; it can only "
                                   "be replayed by its {} ranks or a multiple "
                                   "of them, not by {}.",
                                   file_, recorded_ranks(), placement_.ranks));
    if (timing_ == Timing::start && placement_.ranks < recorded_ranks())
      throw InputError(fmt::format("The trace '{}' has {} ranks; with timing=start it can't be replayed by {}, which "
                                   "would be late for everything.",
                                   file_, recorded_ranks(), placement_.ranks));
    const auto& about       = trace_->about();
    footprint_.peak_objects = about.value("peak_objects", footprint_.peak_objects) * copies_;
    footprint_.peak_bytes   = about.value("peak_bytes", footprint_.bytes_written) * copies_;
    footprint_.bytes_written *= copies_;
    footprint_.bytes_read *= copies_;
    for (size_t kind = 1; kind < op_count; ++kind)
      if (counted[kind] > 0)
        footprint_.operations.emplace_back(static_cast<OpKind>(kind), counted[kind] * copies_);
  }

  Placement placement_;
  std::string file_;
  std::unique_ptr<const ops_file::Reader> trace_;
  Timing timing_;
  double scale_;
  std::unique_ptr<Pattern> maker_;
  std::vector<Phase> phases_;
  uint32_t groups_ = 0;
  uint64_t copies_ = 1;
  Footprint footprint_;
  mutable std::vector<Rank> ranks_;                    ///< those under way have a stream
  mutable std::vector<std::shared_ptr<Stream>> known_; ///< of recorded ranks, for all their copies
};

const bool registered = register_pattern(
    {"replay",
     "what a trace says that was done, done again: as fast as it can be, with the recorded pauses, or at the recorded "
     "times",
     "Anderson et al., \"Buttress: a toolkit for flexible and high fidelity I/O benchmarking\", FAST 2004, for what "
     "timing matters for",
     {{"file", Unit::text, "", "the trace: an ops.h5 of a run with --trace or of iocast import"},
      {"timing", Unit::text, "fast",
       "fast: each operation when the one before has ended; think: after the pause that was recorded between them; "
       "start: at its recorded time, as an open loop"},
      {"time_scale", Unit::factor, "1", "recorded pauses and times are multiplied by this", 0, 1e6}},
     {"file=example.h5", "file=example.h5 timing=think time_scale=0.01"},
     [](const Parameters& given, const Placement& placement) { return std::make_unique<Replay>(given, placement); }});

} // namespace
} // namespace iocast
