// SPDX-License-Identifier: Apache-2.0
#include "workload/application/plan.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fnmatch.h>

namespace iocast {

namespace {
constexpr size_t most_phases = 60000; ///< Cursor::phase has 16 bits

void refuse_odd_name(const YamlNode& where, const std::string& what, const std::string& name)
{
  auto odd = [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.'; };
  if (name.empty() || name.size() > 60 || std::any_of(name.begin(), name.end(), odd) || name.front() == '.')
    where.fail(fmt::format("'{}' is no name for a {}; use at most 60 letters, digits, '-', '_' and '.'", name, what));
}

/// A name of phases to run: as in a shell, `*` stands for anything.
bool matches(const std::string& wanted, const std::string& name)
{
  return wanted == "all" || fnmatch(wanted.c_str(), name.c_str(), 0) == 0;
}

class Builder {
public:
  Builder(Scope scope, const Placement& placement, Plan& plan)
      : scope_(std::move(scope)), placement_(placement), plan_(plan)
  {
  }

  void read(const YamlNode& section)
  {
    for (const auto& [name, node] : section["files"].entries())
      read_file(name, node);
    if (plan_.files.empty())
      section["files"].fail("an application has at least one file");
    every_access_  = section.find("every_access");
    const auto run = section.find("run");
    if (run)
      wanted_ = scope_.list(*run);
    read_phases(section["phases"]);
    for (const auto& wanted : wanted_)
      if (std::none_of(names_.begin(), names_.end(), [&](const auto& name) { return matches(wanted, name); }))
        run->fail(fmt::format("there is no phase '{}'. {}", wanted, allowed_sentence(wanted, names_)));
    if (plan_.phases.empty())
      section["phases"].fail("an application has at least one phase");
  }

private:
  void read_file(const std::string& name, const YamlNode& node)
  {
    node.allow_only({"of", "per", "count", "directory", "prepare", "may_overlap"});
    refuse_odd_name(node, "file", name);
    FileClass file{name, node};
    if (const auto set = node.find("of"))
      file.set = plan_.processes.set_named(scope_, *set);
    const auto per   = node["per"];
    const auto words = scope_.text(per);
    if (words == "process")
      file.per = 1;
    else if (words == "node")
      file.per = std::max(1U, placement_.ranks_per_node / plan_.processes.lanes());
    else if (words != "all")
      file.per = static_cast<uint32_t>(scope_.whole(per, Unit::count, 1, 4e9));
    if (const auto count = node.find("count"))
      file.count = static_cast<uint32_t>(scope_.whole(*count, Unit::count, 1, 1e9));
    if (const auto directory = node.find("directory"))
      file.own_directories = scope_.choice(*directory, {"one", "each"}) == 1;
    if (const auto prepare = node.find("prepare"))
      file.prepare = static_cast<FileClass::Prepare>(scope_.choice(*prepare, {"automatic", "always", "never"}));
    if (const auto overlap = node.find("may_overlap"))
      file.may_overlap = scope_.choice(*overlap, {"false", "true"}) == 1;
    const uint32_t size = plan_.processes.sets()[file.set].size;
    if (size > 0) {
      file.per_group  = file.per == 0 ? size : std::min(file.per, size);
      file.groups     = (size + file.per_group - 1) / file.per_group;
      file.last_group = size - (file.groups - 1) * file.per_group;
    }
    file.first_dataset = plan_.files.empty() ? 0 : plan_.files.back().first_dataset + plan_.files.back().datasets();
    if (file.files() > 1'000'000'000'000ULL)
      node.fail(fmt::format("{} files are too many to number", file.files()));
    plan_.files.push_back(file);
  }

  void read_phases(const YamlNode& list)
  {
    for (const auto& node : list.items())
      if (node.find("phases"))
        read_group(node);
      else
        read_phase(node);
  }

  /// Phases that are repeated together, one after the other each time, or over the values of names.
  void read_group(const YamlNode& node)
  {
    node.allow_only({"for", "repeat", "phases"});
    uint64_t repeats = 1;
    if (const auto repeat = node.find("repeat"))
      repeats = scope_.whole(*repeat, Unit::count, 1, most_phases);
    const auto loops = node.find("for");
    for (uint64_t i = 0; i < repeats; ++i) {
      const size_t before = plan_.phases.size();
      if (loops)
        loop(loops->entries(), 0, node["phases"]);
      else
        read_phases(node["phases"]);
      if (plan_.phases.size() == before)
        break; // none of them is wanted
    }
  }

  /// One name after the other over all of its values, the last one fastest.
  void loop(const std::vector<std::pair<std::string, YamlNode>>& loops, size_t depth, const YamlNode& phases)
  {
    if (depth == loops.size())
      return read_phases(phases);
    const auto& [name, values] = loops[depth];
    const Scope outside        = scope_;
    const auto all             = outside.list(values);
    for (const auto& value : all) {
      scope_.set(name, value);
      if (all.size() > 1)
        loops_.emplace_back(name, value);
      loop(loops, depth + 1, phases);
      if (all.size() > 1)
        loops_.pop_back();
    }
    scope_ = outside;
  }

  /// What the phases of several values of a loop would have in common is followed by the value: write-64KiB,
  /// write-1MiB.
  std::string distinguished(const std::string& name, const std::string& written) const
  {
    std::string result = name;
    for (const auto& [variable, value] : loops_)
      if (written.find("$" + variable) == std::string::npos)
        result += "-" + value;
    return result;
  }

  void read_phase(const YamlNode& node)
  {
    static const std::vector<std::string> own{"name", "repeat", "most_seconds", "at_once", "accesses"};
    const auto name = scope_.text(node["name"]);
    PlannedPhase phase{distinguished(name, node["name"].text()), node};
    refuse_odd_name(node["name"], "phase", phase.name);
    for (const auto& known : {name, phase.name})
      if (std::find(names_.begin(), names_.end(), known) == names_.end())
        names_.push_back(known);
    if (!is_wanted(name) && !is_wanted(phase.name))
      return;
    uint64_t repeats = 1;
    if (const auto repeat = node.find("repeat"))
      repeats = scope_.whole(*repeat, Unit::count, 1, most_phases);
    if (const auto limit = node.find("most_seconds"))
      phase.most_seconds = scope_.number(*limit, Unit::seconds, 0, 1e9);
    if (const auto at_once = node.find("at_once"))
      phase.at_once = static_cast<uint32_t>(scope_.whole(*at_once, Unit::count, 0, 4e9));
    if (phase.at_once > 0 && phase.most_seconds > 0)
      node["at_once"].fail("processes that take turns can't have a time limit");
    if (const auto accesses = node.find("accesses")) {
      node.allow_only(own);
      for (const auto& access : accesses->items())
        phase.accesses.push_back(read_access(access, {}));
    } else {
      phase.accesses.push_back(read_access(node, own));
    }
    for (const auto& access : phase.accesses)
      if (access.together != Access::Together::nothing && (phase.at_once > 0 || phase.most_seconds > 0))
        access.where.fail("what processes do together has no time limit and no 'at_once'");
      else if (access.operation == Operation::remove && phase.most_seconds > 0)
        access.where.fail("removing files has no time limit: nobody would know which are left");
      else if (access.new_files && phase.most_seconds > 0)
        access.where.fail("files that are made in a phase with a time limit can't be new: they are made before it, so "
                          "that it is known which there are");
    for (uint64_t i = 0; i < repeats; ++i)
      plan_.phases.push_back(phase);
    if (plan_.phases.size() > most_phases)
      node.fail(fmt::format("there would be more than {} phases", most_phases));
  }

  bool is_wanted(const std::string& name) const
  {
    return wanted_.empty() ||
           std::any_of(wanted_.begin(), wanted_.end(), [&](const auto& wanted) { return matches(wanted, name); });
  }

  Access read_access(const YamlNode& given, std::vector<std::string> allowed)
  {
    const YamlNode node = every_access_ ? given.over(*every_access_, "") : given;
    for (const char* key : {"file", "by", "shift", "operation", "read_share", "order", "passes", "open", "fsync",
                            "think", "in_turn", "new", "together"})
      allowed.emplace_back(key);
    allowed.insert(allowed.end(), Layout::keys().begin(), Layout::keys().end());
    node.allow_only(allowed);
    std::vector<std::string> files;
    for (const auto& file : plan_.files)
      files.push_back(file.name);
    Access access{node};
    access.file      = static_cast<uint32_t>(scope_.choice(node["file"], files));
    const auto& file = plan_.files[access.file];
    access.operation = static_cast<Operation>(scope_.choice(
        node["operation"], {"write", "read", "read-then-write", "write-then-read", "mixed", "remove", "stat"}));
    access.by        = file.set;
    if (const auto by = node.find("by"))
      access.by = plan_.processes.set_named(scope_, *by);
    access.by_size = plan_.processes.sets()[access.by].size;
    if (const auto shift = node.find("shift"); shift && access.by_size > 0) {
      const uint64_t processes = scope_.whole(*shift, Unit::count, 0, 9e15);
      if (processes > access.by_size)
        shift->fail(fmt::format("a shift of {} reaches beyond the {} processes there are; it is at most that",
                                processes, access.by_size));
      access.shift = static_cast<uint32_t>(processes % access.by_size);
    }
    if (access.by_size > 0)
      join_groups(access, file);
    if (access.operation != Operation::remove && access.operation != Operation::stat)
      read_requests(access);
    return access;
  }

  void join_groups(Access& access, const FileClass& file)
  {
    access.per_group = file.per == 0 ? access.by_size : std::min(file.per, access.by_size);
    access.groups    = (access.by_size + access.per_group - 1) / access.per_group;
    if (access.groups != file.groups)
      access.where.fail(fmt::format(
          "{} processes of the set '{}' would use {} groups of the files '{}', but there are {}: the set '{}' has {} "
          "processes",
          access.by_size, plan_.processes.sets()[access.by].name, access.groups, file.name, file.groups,
          plan_.processes.sets()[file.set].name, plan_.processes.sets()[file.set].size));
  }

  void read_requests(Access& access)
  {
    const YamlNode& node = access.where;
    access.layout.emplace(scope_, node);
    const uint64_t n = access.layout->requests();
    if (access.by_size > 0) {
      const uint32_t last = access.by_size - (access.groups - 1) * access.per_group;
      access.shapes[1]    = access.layout->shape(last);
      access.shapes[0]    = access.groups > 1 ? access.layout->shape(access.per_group) : access.shapes[1];
    }
    if (const auto passes = node.find("passes"))
      access.passes = scope_.whole(*passes, Unit::count, 1, 1e9);
    if (static_cast<double>(n) * static_cast<double>(access.passes) > 4e15)
      node.fail("a process can't have more than 4e15 requests");
    if (const auto order = node.find("order"))
      read_order(access, *order);
    access.shuffle = Permutation(n);
    if (const auto fresh = node.find("new"))
      access.new_files = scope_.choice(*fresh, {"false", "true"}) == 1;
    if (access.new_files && access.operation != Operation::write && access.operation != Operation::write_then_read)
      node["new"].fail("only what is written first can be new");
    if (const auto open = node.find("open")) {
      const size_t choice = scope_.choice(*open, {"once", "pass", "request"});
      access.session      = choice == 0 ? 0 : choice == 1 ? n : 1;
      if (choice == 1 && plan_.processes.lanes() > 1)
        open->fail("a process with several requests outstanding has no moment between two passes; open once or for "
                   "each request");
    }
    if (const auto fsync = node.find("fsync")) {
      const auto text = scope_.text(*fsync);
      if (text != "end" && text != "never")
        access.fsync_every = scope_.whole(*fsync, Unit::count, 1, 1e15);
      access.fsync_at_end = text != "never";
      if (access.operation == Operation::read) { // has nothing to sync
        access.fsync_every  = 0;
        access.fsync_at_end = false;
      }
    }
    if (const auto think = node.find("think"))
      access.think_ns = static_cast<uint64_t>(std::llround(scope_.number(*think, Unit::seconds, 0, 1e6) * 1e9));
    if (const auto turn = node.find("in_turn"))
      access.in_turn = scope_.choice(*turn, {"false", "true"}) == 1;
    if (access.in_turn && access.session != 0)
      node["in_turn"].fail("files that are used in turn stay open: leave 'open' out");
    if (access.in_turn && plan_.files[access.file].count > 64)
      node["in_turn"].fail(
          fmt::format("a process can't have {} files open at once; 64 are the most", plan_.files[access.file].count));
    if (access.operation == Operation::mixed)
      access.read_share =
          static_cast<uint64_t>(std::llround(scope_.number(node["read_share"], Unit::factor, 0, 1) * 0x1p32));
    if (access.operation == Operation::mixed && access.layout->draws_sizes())
      node.fail("mixed reads and writes need one request size, but random-strided has many");
    if (access.operation == Operation::mixed && n * access.passes >= uint64_t{1} << 31)
      node.fail("a mixed access has fewer than 2^31 requests");
    if (const auto together = node.find("together"))
      read_together(access, *together);
  }

  void read_order(Access& access, const YamlNode& order)
  {
    if (order.is_map()) {
      order.allow_only({"every"});
      access.order = Access::Order::every;
      access.every = std::min(scope_.whole(order["every"], Unit::count, 1), access.layout->requests());
      return;
    }
    const size_t choice = scope_.choice(order, {"forward", "backward", "random"});
    access.order = choice == 0 ? Access::Order::forward : choice == 1 ? Access::Order::backward : Access::Order::random;
  }

  void read_together(Access& access, const YamlNode& together)
  {
    access.together = static_cast<Access::Together>(scope_.choice(together, {"nothing", "opening", "all"}));
    if (access.together == Access::Together::nothing)
      return;
    if (plan_.processes.lanes() > 1)
      together.fail("a process with several requests outstanding does nothing together with others");
    if (access.shift != 0 && access.groups > 1)
      together.fail("processes that use each other's files do nothing together; leave 'shift' out");
    if (access.together == Access::Together::all && access.operation == Operation::mixed)
      together.fail("processes that do everything together can't read and write at once");
  }

  Scope scope_;
  Placement placement_;
  Plan& plan_;
  std::vector<std::string> wanted_; ///< phases to run; none: all
  std::vector<std::pair<std::string, std::string>>
      loops_;                            ///< those of several values that are being gone through, and their values
  std::vector<std::string> names_;       ///< of all phases
  std::optional<YamlNode> every_access_; ///< what accesses have that don't say otherwise
};
} // namespace

bool Access::same_requests(const Access& other) const
{
  return file == other.file && same_processes(other) && layout == other.layout && order == other.order &&
         every == other.every && passes == other.passes && in_turn == other.in_turn;
}

Plan Plan::read(Scope scope, const YamlNode& section, const Placement& placement)
{
  section.allow_only({"processes", "files", "every_access", "phases", "run"});
  scope.set("ranks", placement.ranks, Unit::count);
  scope.set("nodes", placement.nodes(), Unit::count);
  scope.set("ranks_per_node", placement.ranks_per_node, Unit::count);
  Plan plan{Processes(scope, section.find("processes"), placement), {}, {}};
  scope.set("processes", plan.processes.count(), Unit::count);
  Builder(std::move(scope), placement, plan).read(section);
  return plan;
}

} // namespace iocast
