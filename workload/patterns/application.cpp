// SPDX-License-Identifier: Apache-2.0
//
// application: the general model of parallel applications. A program runs through phases; in each, every process
// accesses some files, alone or with others, and each triplet of phase, process and file has an operation, a request
// size, a degree of sequentiality, an amount of concurrency and, for shared files, an overlap in space and in time.
// Sebepou, Magoutis, Marazakis & Bilas, "A comparative experimental study of parallel file systems for large-scale data
// processing", LASCO 2008, section 2.
//
// The workload file describes it (docs/application.md); workload/application/ reads and checks the description. What is
// left here is the generator: where a rank stands is its cursor, and each request is computed from its number.
#include "input/error.hpp"
#include "workload/application/history.hpp"
#include "workload/pattern.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <sstream>

namespace iocast {
namespace {

class Application final : public Pattern {
public:
  Application(const Parameters& given, const Placement& placement)
      : plan_(Plan::read(scope_of(given), given.section(), placement))
      , done_(given.count("done"))
      , history_(plan_, done_)
      , processes_(plan_.processes)
      , ranks_(placement.ranks)
      , seed_(given.count("seed"))
      , fill_block_(given.count("fill_block"))
  {
    read_steps(given.text("phases"));
    find_groups();
  }

  const std::vector<Phase>& phases() const override { return phases_; }
  std::vector<std::string> warnings() const override { return history_.warnings(); }

  bool next(Cursor& cursor, Op& op) const override
  {
    while (cursor.phase < steps_.size()) {
      if (cursor.step == before_phase) {
        op          = {OpKind::phase, 0, cursor.phase};
        cursor.i    = 0;
        cursor.j    = 0;
        cursor.a    = 0;
        cursor.step = opening;
        return true;
      }
      if (next_in(steps_[cursor.phase], cursor, op))
        return true;
      leave(cursor, everything);
    }
    return false;
  }

  Stretch stretch(Cursor& cursor, uint32_t most) const override
  {
    const auto& step = steps_[cursor.phase];
    if (step.kind != Kind::work || cursor.step != request)
      return {};
    const Access& access = plan_.phases[step.number].accesses[cursor.a];
    if (!access.streams())
      return {};
    const Part part      = part_of(access, step, cursor.rank);
    const uint64_t bytes = access.layout->step(*part.shape);
    if (bytes == 0 || part.lanes > 1)
      return {};
    // The last request is for next(): it knows what comes then.
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(most, limit_of(access, part, cursor) - cursor.i - 1));
    cursor.i += count;
    return {count, bytes};
  }

  void cut(Cursor& cursor) const override
  {
    const auto& step = steps_[cursor.phase];
    uint32_t came    = 0;
    if (step.kind == Kind::work) {
      const auto& phase = plan_.phases[step.number];
      if (cursor.a > phase.slot_access) {
        came = everything;
      } else if (cursor.a == phase.slot_access) {
        const Access& access  = phase.accesses[cursor.a];
        const auto part       = part_of(access, step, cursor.rank);
        const uint64_t before = access.in_turn ? 0 : cursor.j * part.requests;
        came                  = static_cast<uint32_t>(std::min<uint64_t>(before + cursor.i, everything - 1));
      }
    }
    leave(cursor, came);
  }

  uint32_t group_of(uint32_t rank) const override
  {
    if (!together_)
      return 0;
    const uint32_t process = processes_.process_of(rank);
    for (const auto& group : groups_)
      if (const uint32_t index = processes_.index_in(group.set, process); index != Processes::none)
        return group.first + index / group.size;
    return ungrouped_;
  }

  Footprint footprint() const override;

  char* name_dataset(uint64_t dataset, char* out) const override
  {
    size_t i = plan_.files.size() - 1;
    while (plan_.files[i].first_dataset > dataset || plan_.files[i].datasets() == 0)
      --i;
    const auto& file = plan_.files[i];
    std::memcpy(out, file.name.data(), file.name.size());
    out += file.name.size();
    if (!file.own_directories)
      return out;
    *out++ = '_';
    return std::to_chars(out, out + 20, dataset - file.first_dataset).ptr;
  }

  nlohmann::ordered_json data_set() const override
  {
    nlohmann::ordered_json json{{"ranks", ranks_}, {"outstanding", processes_.lanes()}};
    for (const auto& file : plan_.files)
      json["files " + file.name] =
          fmt::format("{} for each of {} groups of {} processes, the last of {}, {} in a directory of {}, filled with "
                      "{} and {} bytes",
                      file.count, file.groups, file.per_group, file.last_group, file.made ? "made" : "not made",
                      file.own_directories ? "each group" : "all", file.filled_bytes[0], file.filled_bytes[1]);
    return json;
  }

  nlohmann::ordered_json position_after(size_t phase) const override
  {
    const auto& step = steps_[phase];
    uint64_t done    = done_;
    if (step.kind == Kind::work || step.kind == Kind::remove_old)
      done += step.number + (step.kind == Kind::work && step.last_wave ? 1 : 0);
    return {{"done", done}};
  }

private:
  enum class Kind : uint8_t { make_directories, prepare, remove_old, work, cleanup, remove_directories };
  /// Where a rank stands within an access. `opening` is the first.
  enum Stand : uint16_t { before_phase = 0, opening, request, second_half, thinking, syncing, closing, finished };
  static constexpr uint32_t everything = std::numeric_limits<uint32_t>::max();

  /// A phase of the pattern.
  struct Step {
    Kind kind;
    size_t number  = 0; ///< of the planned phase
    uint32_t wave  = 0; ///< of processes that take turns
    bool last_wave = true;
  };

  /// A rank's part in an access.
  struct Part {
    bool any                   = false;
    uint32_t group             = 0;
    uint32_t q                 = 0; ///< place in the group ...
    uint32_t processes         = 1; ///< ... of this number
    uint32_t lane              = 0;
    uint32_t lanes             = 1;
    uint64_t requests          = 0; ///< to each file
    const Layout::Shape* shape = nullptr;
  };

  /// A rank among those of the processes that share the files of a class.
  struct Member {
    bool any        = false;
    uint32_t group  = 0;
    uint64_t number = 0;
    uint64_t of     = 1;
  };

  static Scope scope_of(const Parameters& given)
  {
    Scope scope;
    for (const auto& parameter : given.declared())
      if (parameter.unit == Unit::text)
        scope.set(parameter.name, given.text(parameter.name));
      else if (parameter.unit == Unit::flag)
        scope.set(parameter.name, given.flag(parameter.name) ? "true" : "false");
      else
        scope.set(parameter.name, given.number(parameter.name), parameter.unit);
    return scope;
  }

  void read_steps(const std::string& wanted)
  {
    static const std::vector<std::string> names{"precreate", "benchmark", "cleanup"};
    std::istringstream list(wanted);
    size_t last = 0;
    for (std::string name; std::getline(list, name, ',');) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end())
        throw InputError(fmt::format("An application has no part '{}'. {}", name, allowed_sentence(name, names)));
      const auto place = static_cast<size_t>(found - names.begin());
      if (!steps_.empty() && place <= last)
        throw InputError(fmt::format(
            "The parts of an application run in the order precreate, benchmark, cleanup, not '{}'.", wanted));
      last = place;
      if (place == 0)
        add_precreate();
      else if (place == 1)
        add_benchmark();
      else
        add_cleanup();
    }
    if (steps_.empty())
      throw InputError("An application runs at least one of its parts: precreate, benchmark or cleanup.");
    if (steps_.size() > std::numeric_limits<uint16_t>::max())
      throw InputError(fmt::format("There would be {} phases, with each turn of processes as one; {} are the most.",
                                   steps_.size(), std::numeric_limits<uint16_t>::max()));
  }

  void add(Step step, Phase phase)
  {
    steps_.push_back(step);
    phases_.push_back(std::move(phase));
  }

  void add_precreate()
  {
    if (done_ > 0)
      throw InputError("Files can't be precreated after phases of the benchmark are done; leave done=0.");
    add({Kind::make_directories}, {"precreate-directories"});
    if (std::any_of(plan_.files.begin(), plan_.files.end(),
                    [](const auto& file) { return file.made && file.groups > 0; }))
      add({Kind::prepare}, {"precreate"});
  }

  void add_benchmark()
  {
    for (size_t i = 0; i < plan_.phases.size(); ++i) {
      const auto& phase = plan_.phases[i];
      uint32_t waves    = 1;
      if (phase.at_once > 0)
        for (const auto& access : phase.accesses)
          waves =
              std::max(waves, static_cast<uint32_t>((uint64_t{access.by_size} + phase.at_once - 1) / phase.at_once));
      if (!phase.removes.empty())
        add({Kind::remove_old, i}, {"remove-old"});
      for (uint32_t wave = 0; wave < waves && steps_.size() <= std::numeric_limits<uint16_t>::max(); ++wave)
        add({Kind::work, i, wave, wave + 1 == waves}, {phase.name, 0, phase.most_seconds});
    }
    benchmarks_ = true;
    number_repeats();
  }

  /// Phases of one name, be they repeats or turns of a phase, are distinguished by their number.
  void number_repeats()
  {
    std::map<std::string, std::pair<uint32_t, uint32_t>> seen;
    for (const auto& phase : phases_)
      ++seen[phase.name].first;
    for (auto& phase : phases_)
      if (auto& [total, number] = seen[phase.name]; total > 1)
        phase.repeat = ++number;
  }

  void add_cleanup()
  {
    const bool any = std::any_of(plan_.files.begin(), plan_.files.end(),
                                 [&](const auto& file) { return file.groups > 0 && left(file); });
    if (any)
      add({Kind::cleanup}, {"cleanup"});
    add({Kind::remove_directories}, {"cleanup-directories"});
  }

  /// Whether cleanup finds the files.
  bool left(const FileClass& file) const
  {
    const auto number = static_cast<size_t>(&file - plan_.files.data());
    return benchmarks_ ? history_.exists_after(number) : history_.exists_before(number);
  }

  void leave(Cursor& cursor, uint32_t came) const
  {
    if (const auto& step = steps_[cursor.phase]; step.kind == Kind::work) {
      const int slot = plan_.phases[step.number].slot;
      if (slot >= 0)
        (slot == 0 ? cursor.b : cursor.c) = came;
    }
    ++cursor.phase;
    cursor.step = before_phase;
  }

  bool next_in(const Step& step, Cursor& cursor, Op& op) const
  {
    switch (step.kind) {
      case Kind::make_directories:
        return next_directory(OpKind::mkdir, cursor, op);
      case Kind::prepare:
        return next_prepare(cursor, op);
      case Kind::work:
        return next_work(step, cursor, op);
      case Kind::remove_old:
      case Kind::cleanup:
        return next_unlink(step, cursor, op);
      case Kind::remove_directories:
        return next_directory(OpKind::rmdir, cursor, op);
    }
    return false;
  }

  Member member_of(const FileClass& file, uint32_t rank) const
  {
    const uint32_t process = processes_.process_of(rank);
    const uint32_t index   = processes_.index_in(file.set, process);
    if (index == Processes::none)
      return {};
    const uint32_t group = index / file.per_group;
    const uint32_t from  = group * file.per_group;
    const uint32_t size  = group + 1 == file.groups ? file.last_group : file.per_group;
    return {true, group, uint64_t{index - from} * processes_.lanes() + processes_.lane_of(rank),
            processes_.ranks_of(file.set, from, size)};
  }

  /// The first rank of a group makes its directory, the very first one a common directory.
  bool next_directory(OpKind kind, Cursor& cursor, Op& op) const
  {
    while (cursor.a < plan_.files.size()) {
      const auto& file = plan_.files[cursor.a++];
      if (file.groups == 0)
        continue;
      const Member member = member_of(file, cursor.rank);
      if (member.any && member.number == 0 && (file.own_directories || member.group == 0)) {
        op = {kind, file.dataset_of(member.group), 0};
        return true;
      }
    }
    return false;
  }

  /// The ranks of a group fill each of its files together, each a stretch of blocks.
  bool next_prepare(Cursor& cursor, Op& op) const
  {
    for (; cursor.a < plan_.files.size(); ++cursor.a, cursor.j = 0, cursor.step = opening) {
      const auto& file = plan_.files[cursor.a];
      if (!file.made || file.groups == 0)
        continue;
      const Member member = member_of(file, cursor.rank);
      if (!member.any)
        continue;
      const uint64_t bytes  = file.filled_bytes[member.group + 1 == file.groups ? 1 : 0];
      const uint64_t blocks = (bytes + fill_block_ - 1) / fill_block_;
      const uint64_t from   = share(blocks, member.number, member.of);
      const uint64_t to     = share(blocks, member.number + 1, member.of);
      for (; cursor.j < file.count; ++cursor.j, cursor.step = opening) {
        const bool mine = bytes > 0 ? from < to : cursor.j % member.of == member.number;
        if (!mine)
          continue;
        const uint64_t dataset = file.dataset_of(member.group);
        const uint64_t object  = file.object_of(member.group, cursor.j);
        if (cursor.step == opening) {
          op          = {OpKind::open, dataset, object};
          op.flags    = for_writing | make_it;
          cursor.i    = from;
          cursor.step = request;
          return true;
        }
        if (cursor.step == request && cursor.i < to) {
          const uint64_t at = cursor.i++ * fill_block_;
          op                = {OpKind::pwrite, dataset, object, std::min(fill_block_, bytes - at), at};
          return true;
        }
        if (cursor.step == request) {
          op          = {OpKind::close, dataset, object};
          cursor.step = closing;
          return true;
        }
      }
    }
    return false;
  }

  static uint64_t share(uint64_t all, uint64_t number, uint64_t of)
  {
    return all / of * number + all % of * number / of;
  }

  /// Whether files of the class are removed in a step.
  bool goes(const Step& step, const FileClass& file) const
  {
    if (step.kind == Kind::cleanup)
      return left(file);
    const auto& removes = plan_.phases[step.number].removes;
    return step.kind == Kind::remove_old &&
           std::find(removes.begin(), removes.end(), &file - plan_.files.data()) != removes.end();
  }

  bool next_unlink(const Step& step, Cursor& cursor, Op& op) const
  {
    for (; cursor.a < plan_.files.size(); ++cursor.a, cursor.i = 0) {
      const auto& file = plan_.files[cursor.a];
      if (file.groups == 0 || !goes(step, file))
        continue;
      const Member member = member_of(file, cursor.rank);
      if (!member.any)
        continue;
      if (const uint64_t number = member.number + cursor.i * member.of; number < file.count) {
        op = {OpKind::unlink, file.dataset_of(member.group), file.object_of(member.group, number)};
        ++cursor.i;
        return true;
      }
    }
    return false;
  }

  Part part_of(const Access& access, const Step& step, uint32_t rank) const
  {
    if (access.by_size == 0)
      return {};
    const uint32_t process = processes_.process_of(rank);
    uint32_t index         = processes_.index_in(access.by, process);
    if (index == Processes::none)
      return {};
    if (const uint32_t at_once = plan_.phases[step.number].at_once; at_once > 0 && index / at_once != step.wave)
      return {};
    Part part;
    part.any = true;
    if (access.shift != 0) {
      const uint64_t shifted = uint64_t{index} + access.shift;
      index                  = static_cast<uint32_t>(shifted < access.by_size ? shifted : shifted - access.by_size);
    }
    part.group = access.per_group == 1 ? index : index / access.per_group;
    part.q     = index - part.group * access.per_group;
    part.processes =
        part.group + 1 == access.groups ? access.by_size - part.group * access.per_group : access.per_group;
    part.shape = &access.shapes[part.group + 1 == access.groups ? 1 : 0];
    if (access.layout)
      part.requests = access.layout->requests() * access.passes;
    if (processes_.lanes() > 1) {
      part.lane     = processes_.lane_of(rank);
      part.lanes    = processes_.lanes_of(process);
      part.requests = (part.requests + part.lanes - 1 - part.lane) / part.lanes;
    }
    return part;
  }

  bool next_work(const Step& step, Cursor& cursor, Op& op) const
  {
    const auto& phase = plan_.phases[step.number];
    while (cursor.a < phase.accesses.size()) {
      const Access& access = phase.accesses[cursor.a];
      const Part part      = part_of(access, step, cursor.rank);
      if (part.any &&
          (access.moves_data() ? next_request(access, part, cursor, op) : next_whole(access, part, cursor, op)))
        return true;
      ++cursor.a;
      cursor.i    = 0;
      cursor.j    = 0;
      cursor.step = opening;
    }
    return false;
  }

  /// Of accesses that touch no data: the files of a group are dealt out among its processes for removing, each asks
  /// about all.
  bool next_whole(const Access& access, const Part& part, Cursor& cursor, Op& op) const
  {
    const auto& file      = plan_.files[access.file];
    const bool removes    = access.operation == Operation::remove;
    const uint64_t of     = removes ? part.processes : 1;
    const uint64_t number = (removes ? part.q : 0) + cursor.i * of;
    if (part.lane != 0 || number >= file.count)
      return false;
    op = {removes ? OpKind::unlink : OpKind::stat, file.dataset_of(part.group), file.object_of(part.group, number)};
    ++cursor.i;
    return true;
  }

  bool next_request(const Access& access, const Part& part, Cursor& cursor, Op& op) const;
  uint64_t limit_of(const Access& access, const Part& part, const Cursor& cursor) const;
  void settle(const Access& access, uint64_t limit, uint64_t each, Cursor& cursor) const;
  void make_request(const Access& access, const Part& part, uint64_t file, uint64_t number, bool second, Op& op) const;
  uint64_t place_in_order(const Access& access, const Part& part, uint64_t seed, uint64_t k, uint64_t pass) const;
  void count_access(const Access& access, std::map<OpKind, uint64_t>& operations, Footprint& result) const;
  void find_groups();

  struct Group {
    uint32_t set;
    uint32_t size;  ///< processes
    uint32_t first; ///< number
  };

  Plan plan_;
  uint64_t done_;
  History history_;
  const Processes& processes_;
  uint32_t ranks_;
  uint64_t seed_;
  uint64_t fill_block_;
  std::vector<Step> steps_;
  std::vector<Phase> phases_;
  bool benchmarks_ = false;
  bool together_   = false;
  std::vector<Group> groups_;
  uint32_t ungrouped_ = 0;
};

/// Requests of the round that the cursor is in: all to one file, or in turn to all.
uint64_t Application::limit_of(const Access& access, const Part& part, const Cursor& cursor) const
{
  const uint64_t round = access.in_turn ? part.requests * plan_.files[access.file].count : part.requests;
  if (access.follows < 0)
    return round;
  const uint32_t came = access.follows == 0 ? cursor.b : cursor.c;
  if (came == everything)
    return round;
  const uint64_t before = access.in_turn ? 0 : cursor.j * part.requests;
  return came > before ? std::min(round, came - before) : 0;
}

bool Application::next_request(const Access& access, const Part& part, Cursor& cursor, Op& op) const
{
  const auto& file     = plan_.files[access.file];
  const uint64_t count = file.count;
  const uint64_t limit = limit_of(access, part, cursor);
  const uint8_t alike  = access.together != Access::Together::nothing ? shared : 0;
  auto about           = [&](OpKind kind, uint64_t number) {
    op       = {kind, file.dataset_of(part.group), file.object_of(part.group, number)};
    op.flags = alike;
  };
  switch (cursor.step) {
    case opening:
      if (cursor.j == count || limit == 0)
        return false;
      about(OpKind::open, cursor.j);
      op.flags |= (access.writes() ? for_writing : 0) | (access.makes ? make_it : 0);
      if (access.in_turn && ++cursor.j < count)
        return true;
      if (access.in_turn)
        cursor.j = 0;
      cursor.step = request;
      return true;
    case request:
      make_request(access, part, cursor.j, cursor.i, false, op);
      if (access.operation == Operation::read_then_write || access.operation == Operation::write_then_read) {
        cursor.step = second_half;
        return true;
      }
      break;
    case second_half:
      make_request(access, part, cursor.j, cursor.i, true, op);
      break;
    case thinking:
      op = {OpKind::think, 0, 0, access.think_ns};
      settle(access, limit, part.requests, cursor);
      return true;
    case syncing: {
      const bool last = cursor.i == limit;
      about(OpKind::fsync, access.in_turn && !last ? (cursor.i - 1) % count : cursor.j);
      const bool ends = last || (access.session != 0 && cursor.i % access.session == 0);
      cursor.step     = ends ? closing : request;
      return true;
    }
    case closing:
      about(OpKind::close, cursor.j);
      if (access.in_turn) {
        cursor.step = ++cursor.j == count ? finished : access.fsync_at_end ? syncing : closing;
      } else {
        cursor.step = opening;
        if (cursor.i == limit) {
          cursor.i = 0;
          ++cursor.j;
        }
      }
      return true;
    default:
      return false;
  }
  ++cursor.i;
  if (access.think_ns > 0)
    cursor.step = thinking;
  else
    settle(access, limit, part.requests, cursor);
  return true;
}

/// A request is done: what comes next?
void Application::settle(const Access& access, uint64_t limit, uint64_t each, Cursor& cursor) const
{
  const bool last = cursor.i == limit;
  if (access.in_turn) {
    const uint64_t done = (cursor.i - 1) / plan_.files[access.file].count + 1; // to this file
    const bool due      = access.fsync_every != 0 && done % access.fsync_every == 0 && done < each;
    cursor.step         = (last ? access.fsync_at_end : due) ? syncing : last ? closing : request;
    return;
  }
  const bool ends = last || (access.session != 0 && cursor.i % access.session == 0);
  const bool due  = ends ? access.fsync_at_end : access.fsync_every != 0 && cursor.i % access.fsync_every == 0;
  cursor.step     = due ? syncing : ends ? closing : request;
}

uint64_t Application::place_in_order(const Access& access, const Part& part, uint64_t seed, uint64_t k,
                                     uint64_t pass) const
{
  const uint64_t n = access.layout->requests();
  switch (access.order) {
    case Access::Order::forward:
      return k;
    case Access::Order::backward:
      return n - 1 - k;
    case Access::Order::every: { // down the columns of a table with `every` columns, filled row by row
      const uint64_t rows = n / access.every;
      const uint64_t more = n % access.every; // columns that are longer by one
      if (k < more * (rows + 1))
        return k % (rows + 1) * access.every + k / (rows + 1);
      const uint64_t rest = k - more * (rows + 1);
      return rest % rows * access.every + more + rest / rows;
    }
    case Access::Order::random:
      return access.shuffle(k, random_words(seed, Stream::application, part.q, pass));
  }
  return k;
}

void Application::make_request(const Access& access, const Part& part, uint64_t file, uint64_t number, bool second,
                               Op& op) const
{
  const auto& files = plan_.files[access.file];
  if (access.in_turn) {
    file = number % files.count;
    number /= files.count;
  }
  const uint64_t object = files.object_of(part.group, file);
  const uint64_t drawn  = part.lanes == 1 ? number : number * part.lanes + part.lane;
  const uint64_t n      = access.layout->requests();
  const uint64_t pass   = access.passes == 1 ? 0 : drawn / n;
  // Every file has draws of its own.
  const uint64_t seed = seed_ ^ (object + 1) * 0x9e3779b97f4a7c15 ^ (access.file + uint64_t{1}) * 0xc2b2ae3d27d4eb4f;
  const uint64_t k    = place_in_order(access, part, seed, access.passes == 1 ? drawn : drawn % n, pass);
  const Place place   = access.layout->place(*part.shape, part.q, k, seed, drawn);

  bool reads = false;
  switch (access.operation) {
    case Operation::read:
      reads = true;
      break;
    case Operation::read_then_write:
      reads = !second;
      break;
    case Operation::write_then_read:
      reads = second;
      break;
    case Operation::mixed:
      reads = (drawn + 1) * access.read_share >> 32 != drawn * access.read_share >> 32;
      break;
    default:
      break;
  }
  op        = {reads ? OpKind::pread : OpKind::pwrite, files.dataset_of(part.group), object, place.size, place.offset};
  op.count  = place.count;
  op.stride = place.stride;
  op.flags  = access.together == Access::Together::all ? collective : 0;
}

Footprint Application::footprint() const
{
  std::map<OpKind, uint64_t> operations;
  Footprint result;
  for (const auto& step : steps_) {
    if (step.kind == Kind::work) {
      if (step.last_wave)
        for (const auto& access : plan_.phases[step.number].accesses)
          if (access.by_size > 0)
            count_access(access, operations, result);
      continue;
    }
    for (const auto& file : plan_.files) {
      if (step.kind == Kind::make_directories || step.kind == Kind::remove_directories)
        operations[step.kind == Kind::make_directories ? OpKind::mkdir : OpKind::rmdir] += file.datasets();
      if (goes(step, file))
        operations[OpKind::unlink] += file.files();
      if (step.kind != Kind::prepare || !file.made || file.groups == 0)
        continue;
      std::array<uint64_t, 2> opens{1, 1};
      std::array<uint64_t, 2> writes{};
      for (size_t kind = 0; kind < 2; ++kind) {
        const uint32_t from  = kind == 0 ? 0 : (file.groups - 1) * file.per_group;
        const uint64_t ranks = processes_.ranks_of(file.set, from, kind == 0 ? file.per_group : file.last_group);
        writes[kind]         = (file.filled_bytes[kind] + fill_block_ - 1) / fill_block_;
        opens[kind]          = writes[kind] > 0 ? std::min(writes[kind], ranks) : 1;
        result.largest_size  = std::max(result.largest_size, std::min(fill_block_, file.filled_bytes[kind]));
      }
      operations[OpKind::open] += file.total(opens);
      operations[OpKind::close] += file.total(opens);
      operations[OpKind::pwrite] += file.total(writes);
      result.bytes_written += file.total(file.filled_bytes);
    }
  }
  for (const auto& [kind, count] : operations)
    if (count > 0)
      result.operations.emplace_back(kind, count);
  const auto peak     = benchmarks_ ? history_.peak() : history_.peak_before();
  result.peak_objects = peak.first;
  result.peak_bytes   = peak.second;
  return result;
}

void Application::count_access(const Access& access, std::map<OpKind, uint64_t>& operations, Footprint& result) const
{
  const auto& file = plan_.files[access.file];
  if (!access.moves_data()) {
    operations[access.operation == Operation::remove ? OpKind::unlink : OpKind::stat] +=
        access.operation == Operation::remove ? file.files() : uint64_t{access.by_size} * file.count;
    return;
  }
  result.collective  = result.collective || access.together == Access::Together::all;
  const uint64_t all = access.layout->requests() * access.passes; // of a process to a file
  uint64_t opens     = 0;
  uint64_t syncs     = 0;
  auto count_lanes   = [&](uint64_t processes, uint32_t lanes) {
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      const uint64_t requests = (all + lanes - 1 - lane) / lanes;
      const uint64_t session  = access.session == 0 ? requests : access.session;
      if (requests == 0)
        continue;
      opens += processes * ((requests + session - 1) / session);
      auto syncs_of = [&](uint64_t n) {
        return access.fsync_every == 0 ? uint64_t{n > 0} : (n + access.fsync_every - 1) / access.fsync_every;
      };
      if (access.fsync_at_end)
        syncs += processes * (requests / session * syncs_of(session) + syncs_of(requests % session));
    }
  };
  count_lanes(access.by_size - 1, processes_.lanes());
  count_lanes(1, processes_.lanes_of(processes_.process_at(access.by, access.by_size - 1)));

  const uint64_t requests = uint64_t{access.by_size} * file.count * all;
  uint64_t reads          = 0;
  uint64_t writes         = 0;
  if (access.operation == Operation::mixed) {
    reads  = uint64_t{access.by_size} * file.count * (all * access.read_share >> 32);
    writes = requests - reads;
  } else {
    reads  = access.operation == Operation::write ? 0 : requests;
    writes = access.operation == Operation::read ? 0 : requests;
  }
  operations[OpKind::open] += opens * file.count;
  operations[OpKind::close] += opens * file.count;
  operations[OpKind::fsync] += syncs * file.count;
  operations[OpKind::pread] += reads;
  operations[OpKind::pwrite] += writes;
  operations[OpKind::think] += access.think_ns > 0 ? requests : 0;
  result.bytes_read += reads * access.layout->request_bytes();
  result.bytes_written += writes * access.layout->request_bytes();
  for (const auto& shape : access.shapes)
    result.largest_size = std::max(result.largest_size, access.layout->largest_request(shape));
}

/// Who does what together: one division of the processes into groups for the whole workload.
void Application::find_groups()
{
  for (const auto& phase : plan_.phases)
    for (const auto& access : phase.accesses) {
      if (access.together == Access::Together::nothing || access.by_size == 0)
        continue;
      for (const auto& group : groups_)
        if ((group.set == access.by) != (group.size == access.per_group) ||
            (group.set != access.by && (group.set == 0 || access.by == 0)))
          access.where.fail("what is done together in a workload has one division of the processes into groups, but "
                            "this one differs from that "
                            "of an earlier access");
      if (std::none_of(groups_.begin(), groups_.end(), [&](const Group& group) { return group.set == access.by; })) {
        groups_.push_back({access.by, access.per_group, ungrouped_});
        ungrouped_ += access.groups;
      }
    }
  together_ = !groups_.empty();
}

constexpr const char* example = R"(
schema_version: 1
pattern: application
parameters:
  block_size: {default: 1MiB, meaning: bytes of a request}
  per_process: {default: 64MiB, meaning: bytes that a process reads or writes of each file in a pass}
  sharing: {default: all, meaning: "who shares a file: process (nobody), node, all, or a number of processes"}
  files: {default: 1, meaning: files of each group of processes that share them}
  directory: {default: one, meaning: "one for all files, or each group has its own"}
  layout: {default: segmented,
           meaning: "sequential, segmented, strided, nested-strided, random-strided, mesh or random"}
  in_a_row: {default: 1, meaning: requests in a row between two strides}
  inner: {default: 1, meaning: blocks of a request that is nested-strided}
  overlap: {default: 0B, meaning: bytes that neighbours in a segmented file share}
  zipf: {default: 0, unit: factor, meaning: "exponent of the popularity of random blocks, 0: all alike"}
  order: {default: forward, meaning: "forward, backward or random"}
  passes: {default: 1, meaning: how often each process goes over its requests}
  repeat: {default: 1, meaning: how often each phase runs}
  run: {default: "write,read", meaning: "which phases: write, re-write, read, update, mixed, stat, remove, or all"}
  read_share: {default: 0.5, meaning: share of reads in the phase mixed}
  shift: {default: 0, meaning: distance from a process to the one whose data it reads}
  outstanding: {default: 1, meaning: requests that a process has under way}
  at_once: {default: 0, meaning: "processes that write at the same time, 0: all"}
  in_turn: {default: false, meaning: a process uses its files in turn}
  together: {default: nothing, meaning: "what the processes of a file do together: nothing, opening, all"}
  open: {default: once, meaning: "when files are opened and closed: once, pass or request"}
  fsync: {default: end, meaning: "never, at the end, or a number of writes"}
  think: {default: 0s, meaning: pause after each request}
  most_seconds: {default: 0s, meaning: "ends each phase of reading or writing after so long, 0: when all is done"}
application:
  processes: {outstanding: $outstanding}
  files:
    data: {per: $sharing, count: $files, directory: $directory, may_overlap: true}
  run: $run
  every_access:
    file: data
    layout: $layout
    size: $block_size
    requests: $per_process / $block_size / $inner
    in_a_row: $in_a_row
    inner: $inner
    overlap: $overlap
    zipf: $zipf
    order: $order
    passes: $passes
    read_share: $read_share
    in_turn: $in_turn
    together: $together
    open: $open
    fsync: $fsync
    think: $think
  phases:
    - {name: write, operation: write, repeat: $repeat, most_seconds: $most_seconds, at_once: $at_once}
    - {name: re-write, operation: write, repeat: $repeat, most_seconds: $most_seconds, at_once: $at_once}
    - {name: read, operation: read, shift: $shift, repeat: $repeat, most_seconds: $most_seconds}
    - {name: update, operation: read-then-write, repeat: $repeat, most_seconds: $most_seconds}
    - {name: mixed, operation: mixed, repeat: $repeat, most_seconds: $most_seconds}
    - {name: stat, operation: stat, repeat: $repeat}
    - {name: remove, operation: remove}
)";

const bool registered = register_pattern(
    {"application",
     "phases x processes x files: operation, request size, sequentiality, concurrency and sharing of each are free",
     "Sebepou, Magoutis, Marazakis & Bilas 2008, section 2",
     {{"seed", Unit::count, "0", "seed of random orders, sizes and places", 0, 9e15},
      {"fill_block", Unit::bytes, "1MiB", "bytes of a write that fills files before the benchmark", 1, 1e12},
      {"done", Unit::count, "0",
       "phases of the benchmark that earlier runs carried out on these files; runs set it themselves", 0, 9e15},
      {"phases", Unit::text, "precreate,benchmark,cleanup", "which parts to run, in this order"}},
     {"block_size=3kB per_process=18kB run=write,re-write,read,stat,remove fsync=2 open=pass passes=2 sharing=2 "
      "files=3 layout=strided in_a_row=3",
      "block_size=1kB per_process=12kB layout=nested-strided inner=3 together=all",
      "block_size=1kB per_process=5kB run=update,mixed layout=mesh order=random think=1us",
      "block_size=1kB per_process=7kB layout=random-strided sharing=node run=write,re-write,read,update at_once=2 "
      "outstanding=3",
      "block_size=1kB per_process=7kB layout=strided sharing=node run=all read_share=0.3 at_once=2 outstanding=3",
      "block_size=2kB per_process=8kB sharing=process files=5 in_turn=true run=all shift=1 directory=each "
      "order=backward fsync=3",
      "block_size=2kB per_process=8kB overlap=1kB repeat=2 together=opening",
      "block_size=1kB per_process=4kB most_seconds=10s",
      "block_size=1kB per_process=4kB layout=random run=all open=request",
      "block_size=1kB per_process=9kB layout=random zipf=1.2 run=all",
      "block_size=1kB per_process=4kB layout=sequential waiting_factor=0.5"},
     [](const Parameters& given, const Placement& placement) {
       return std::make_unique<Application>(given, placement);
     },
     "application",
     example});

} // namespace
} // namespace iocast
