// SPDX-License-Identifier: Apache-2.0
//
// mix: several workloads at the same time, each on ranks and in a directory of its own, as jobs share a production
// system. Phase i of every member runs at the same time; a member with fewer phases waits for the others.
#include "input/error.hpp"
#include "workload/random.hpp"
#include "workload/workload.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace iocast {
namespace {

struct Member {
  std::string name;
  std::string workload;
  double share     = 0; ///< of the ranks without a requested number
  double requested = 0; ///< ranks; 0: by share
  std::vector<std::string> settings;

  uint32_t ranks = 0;
  std::string pattern_name;
  uint32_t first_group = 0;
  bool makes_data      = false;
  bool removes_data    = false;
  std::unique_ptr<Pattern> pattern;
};

/// Dataset numbers: the member's in the low bits, above them its own dataset's number + 1, or 0 for the directory that
/// holds them.
constexpr int member_bits      = 6;
constexpr uint64_t member_mask = (1 << member_bits) - 1;
constexpr size_t longest_name  = 32;

class Mix final : public Pattern {
public:
  Mix(const Parameters& given, const Placement& placement)
      : placement_(placement), layout_(given.text("layout")), ranks_(placement.ranks)
  {
    if (placement.cyclic)
      throw InputError("A mix lays its members' ranks out by itself, in blocks of nodes or interleaved; leave out "
                       "--placement cyclic.");
    if (layout_ != "blocks" && layout_ != "interleaved")
      throw InputError(fmt::format("The layout of a mix can't be '{}'. {}", layout_,
                                   allowed_sentence(layout_, std::vector<std::string>{"blocks", "interleaved"})));
    read_members(given);
    share_ranks();
    place_ranks();
    for (auto& member : members_)
      if (member.ranks > 0)
        make(member, given.text("phases"), given.count("seed"));
    plan_phases();
  }

  const std::vector<Phase>& phases() const override { return phases_; }

  const Arrivals& arrivals_of(uint32_t rank) const override
  {
    const auto& own = member_of(rank).pattern->arrivals_of(ranks_[rank].local);
    return own == Arrivals{} ? Pattern::arrivals_of(rank) : own;
  }

  uint32_t group_of(uint32_t rank) const override
  {
    const auto& member = member_of(rank);
    return member.first_group + member.pattern->group_of(ranks_[rank].local);
  }

  bool next(Cursor& cursor, Op& op) const override
  {
    const Rank rank    = ranks_[cursor.rank];
    const auto& member = member_of(cursor.rank);
    if (sets_up_ && is_fresh(cursor)) {
      cursor.step = setting_up;
      op          = {OpKind::phase, 0, 0};
      return true;
    }
    if (cursor.step == setting_up && rank.local == 0 && member.makes_data) {
      cursor.step = set_up;
      op          = {OpKind::mkdir, rank.member, 0};
      return true;
    }
    if (cursor.step == setting_up || cursor.step == set_up)
      cursor.step = 0;
    if (is_members(cursor)) {
      if (as_member(cursor, [&] { return member.pattern->next(cursor, op); })) {
        if (op.kind == OpKind::phase)
          op.object += static_cast<uint64_t>(sets_up_);
        else
          op.dataset = (op.dataset + 1) << member_bits | rank.member;
        return true;
      }
      cursor.step = static_cast<uint16_t>(beyond + static_cast<size_t>(sets_up_) + member.pattern->phases().size());
    }
    if (cursor.step < beyond + phases_.size()) { // of the other members
      op = {OpKind::phase, 0, static_cast<uint64_t>(cursor.step++ - beyond)};
      return true;
    }
    if (cursor.step != torn_down && rank.local == 0 && member.removes_data) {
      cursor.step = torn_down;
      op          = {OpKind::rmdir, rank.member, 0};
      return true;
    }
    return false;
  }

  void cut(Cursor& cursor) const override
  {
    const auto& member = member_of(cursor.rank);
    if (is_members(cursor))
      as_member(cursor, [&] { return member.pattern->cut(cursor), true; });
  }

  // A phase with a time limit is one member's alone.
  uint64_t reached(const Cursor& cursor) const override
  {
    uint64_t result = 0;
    Cursor copy     = cursor;
    if (is_members(cursor))
      as_member(copy, [&] { return result = member_of(cursor.rank).pattern->reached(copy), true; });
    return result;
  }
  void agree(Cursor& cursor, uint64_t furthest) const override
  {
    const auto& member = member_of(cursor.rank);
    if (is_members(cursor))
      as_member(cursor, [&] { return member.pattern->agree(cursor, furthest), true; });
  }

  Footprint footprint() const override
  {
    std::array<uint64_t, op_count> counted{};
    Footprint result;
    for (const auto& member : members_) {
      if (member.ranks == 0)
        continue;
      const auto part = member.pattern->footprint();
      for (const auto& [kind, count] : part.operations)
        counted[static_cast<size_t>(kind)] += count;
      counted[static_cast<size_t>(OpKind::mkdir)] += member.makes_data;
      counted[static_cast<size_t>(OpKind::rmdir)] += member.removes_data;
      result.bytes_written += part.bytes_written;
      result.bytes_read += part.bytes_read;
      result.peak_objects += part.peak_objects;
      result.peak_bytes += part.peak_bytes;
      result.largest_size = std::max(result.largest_size, part.largest_size);
      result.collective   = result.collective || part.collective;
    }
    for (size_t kind = 1; kind < op_count; ++kind)
      if (counted[kind] > 0)
        result.operations.emplace_back(static_cast<OpKind>(kind), counted[kind]);
    return result;
  }

  std::vector<std::string> warnings() const override
  {
    std::vector<std::string> result;
    for (const auto& member : members_)
      if (member.ranks == 0)
        result.push_back(fmt::format("The mix's member '{}' does nothing: {} ranks are too few for its share.",
                                     member.name, placement_.ranks));
      else
        for (const auto& warning : member.pattern->warnings())
          result.push_back(fmt::format("In the mix's member '{}': {}", member.name, warning));
    return result;
  }

  char* name_dataset(uint64_t dataset, char* out) const override
  {
    const auto& member = members_[dataset & member_mask];
    out                = std::copy(member.name.begin(), member.name.end(), out);
    if (dataset >> member_bits == 0)
      return out;
    *out++ = '/';
    return member.pattern->name_dataset((dataset >> member_bits) - 1, out);
  }

  char* name_object(uint64_t object, char* out) const override { return std::to_chars(out, out + 20, object).ptr; }

  char* name_object_in(uint64_t dataset, uint64_t object, char* out) const override
  {
    if (dataset >> member_bits == 0)
      return name_object(object, out); // the directory itself, where no object lies
    return members_[dataset & member_mask].pattern->name_object_in((dataset >> member_bits) - 1, object, out);
  }

  nlohmann::ordered_json data_set() const override
  {
    nlohmann::ordered_json json{{"layout", layout_}};
    for (const auto& member : members_)
      if (member.ranks > 0)
        json[member.name] = {
            {"pattern", member.pattern_name}, {"ranks", member.ranks}, {"data_set", member.pattern->data_set()}};
    return json;
  }

  nlohmann::ordered_json position_after(size_t phase) const override
  {
    auto json = nlohmann::ordered_json::object();
    for (const auto& member : members_) {
      if (member.ranks == 0 || phase < static_cast<size_t>(sets_up_))
        continue;
      const auto position =
          member.pattern->position_after(std::min(phase - sets_up_, member.pattern->phases().size() - 1));
      for (const auto& [name, value] : position.items()) // as texts, which is what nested parameters are
        json[member.name + "." + name] = value.is_string() ? value.get<std::string>() : value.dump();
    }
    return json;
  }

private:
  /// Where a rank belongs.
  struct Rank {
    uint32_t local = 0; ///< number among the member's ranks
    uint8_t member = 0;
  };
  /// Cursor::step before the member's first operation, when the members' directories are made, and after its last:
  /// `beyond` and how many phases of the mix have begun. All else in the cursor, which may be set back to where it was,
  /// is the member's.
  static constexpr uint16_t beyond     = 1 << 15;
  static constexpr uint16_t torn_down  = UINT16_MAX;
  static constexpr uint16_t set_up     = UINT16_MAX - 1;
  static constexpr uint16_t setting_up = UINT16_MAX - 2;

  static bool is_members(const Cursor& cursor) { return cursor.step < beyond; }
  static bool is_fresh(const Cursor& cursor)
  {
    return cursor.phase == 0 && cursor.step == 0 && cursor.i == 0 && cursor.j == 0 && cursor.a == 0 && cursor.b == 0 &&
           cursor.c == 0;
  }

  const Member& member_of(uint32_t rank) const { return members_[ranks_[rank].member]; }

  template <class Act> bool as_member(Cursor& cursor, Act act) const
  {
    const uint32_t rank = std::exchange(cursor.rank, ranks_[cursor.rank].local);
    const bool result   = act();
    cursor.rank         = rank;
    return result;
  }

  void read_members(const Parameters& given)
  {
    for (const auto& [name, text] : given.nested()) {
      const auto dot         = name.find('.');
      const std::string who  = name.substr(0, dot);
      const std::string what = name.substr(dot + 1);
      if (who.empty() || who.size() > longest_name ||
          who.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
              std::string::npos)
        throw InputError(fmt::format("'{}' is no name for a member of a mix: 1 to {} letters, digits, '-' and '_'.",
                                     who, longest_name));
      auto member = std::find_if(members_.begin(), members_.end(), [&](const auto& m) { return m.name == who; });
      if (member == members_.end()) {
        if (members_.size() > member_mask)
          throw InputError(fmt::format("A mix has at most {} members.", member_mask + 1));
        member       = members_.emplace(members_.end());
        member->name = who;
      }
      if (what == "workload")
        member->workload = text;
      else if (what == "share" || what == "ranks")
        (what == "share" ? member->share : member->requested) =
            number(name, text, what == "share" ? Unit::factor : Unit::count);
      else
        member->settings.push_back(fmt::format("{}={}", what, text));
    }
    if (members_.empty())
      throw InputError(
          "A mix needs members; name them by their workloads, such as --set small.workload=md-workbench --set "
          "mail.workload=postmark.");
    for (const auto& member : members_)
      if (member.workload.empty())
        throw InputError(fmt::format("The mix's member '{0}' has no workload; set {0}.workload.", member.name));
      else if (member.share > 0 && member.requested > 0)
        throw InputError(fmt::format(
            "The mix's member '{0}' has a share and a number of ranks; set {0}.share or {0}.ranks.", member.name));
  }

  static double number(const std::string& name, const std::string& text, Unit unit)
  {
    try {
      if (const double value = parse_quantity(text, unit); value > 0)
        return value;
    } catch (const InputError& error) {
      throw InputError(fmt::format("The parameter '{}' can't be set: {}.", name, error.what()));
    }
    throw InputError(fmt::format("The parameter '{}' can't be {}; it is above 0.", name, text));
  }

  /// Numbers of ranks first; the rest by shares, rounded so that they add up and nobody goes without as long as there
  /// is one for each.
  void share_ranks()
  {
    double rest   = placement_.ranks;
    double shares = 0;
    uint32_t few  = 0; ///< members by share
    for (auto& member : members_) {
      if (member.requested > 0) {
        rest -= member.requested;
        member.ranks = static_cast<uint32_t>(std::min(member.requested, 4e9));
      } else {
        member.share = member.share > 0 ? member.share : 1;
        shares += member.share;
        ++few;
      }
    }
    if (rest < 0 || (rest > 0 && few == 0))
      throw InputError(fmt::format("The members of the mix ask for {:.0f} ranks in all, but there are {}; {}.",
                                   placement_.ranks - rest, placement_.ranks,
                                   few == 0 ? "give one of them a share instead of a number of ranks, or start as many"
                                            : "start more, or ask for fewer"));
    auto left = static_cast<uint32_t>(rest);
    // Largest remainder: each rank goes to the member with the largest unserved share.
    const uint32_t sure = left >= few ? 1 : 0;
    for (auto& member : members_)
      if (member.requested == 0) {
        member.ranks = std::max(sure, static_cast<uint32_t>(std::floor(rest * member.share / shares)));
        left -= std::min(left, member.ranks);
      }
    uint64_t total = 0;
    for (const auto& member : members_)
      total += member.ranks;
    auto lacks   = [&](const Member& m) { return m.requested > 0 ? -1e18 : rest * m.share / shares - m.ranks; };
    auto by_lack = [&](const Member& a, const Member& b) { return lacks(a) < lacks(b); };
    for (; total < placement_.ranks; ++total)
      ++std::max_element(members_.begin(), members_.end(), by_lack)->ranks;
    for (; total > placement_.ranks; --total) {
      auto most = std::max_element(members_.begin(), members_.end(), [](const Member& a, const Member& b) {
        return (a.requested > 0 ? 0 : a.ranks) < (b.requested > 0 ? 0 : b.ranks);
      });
      --most->ranks;
    }
  }

  void place_ranks()
  {
    std::vector<uint32_t> given(members_.size());
    uint64_t which = 0;
    for (uint32_t rank = 0; rank < placement_.ranks; ++rank) {
      if (layout_ == "blocks") {
        while (given[which] == members_[which].ranks)
          ++which;
      } else { // whoever is most behind an even spread
        double most = -1;
        for (size_t m = 0; m < members_.size(); ++m)
          if (const double behind = static_cast<double>(members_[m].ranks) * (rank + 1.0) / placement_.ranks - given[m];
              behind > most) {
            most  = behind;
            which = m;
          }
      }
      ranks_[rank].member = static_cast<uint8_t>(which);
      ranks_[rank].local  = given[which]++;
    }
  }

  /// Members draw different numbers, also where they run the same workload.
  static uint64_t seed_of(const Member& member, uint64_t seed)
  {
    for (const char c : member.name)
      seed = iocast::mix(seed ^ static_cast<unsigned char>(c));
    return seed;
  }

  void make(Member& member, const std::string& phases, uint64_t seed)
  {
    try {
      auto settings       = member.settings;
      const auto workload = open_workload(member.workload, {});
      const auto& known   = workload.parameters.declared();
      if (!phases.empty() &&
          std::any_of(known.begin(), known.end(), [](const auto& parameter) { return parameter.name == "phases"; }))
        settings.push_back("phases=" + phases);
      const double per_node =
          layout_ == "blocks"
              ? placement_.ranks_per_node
              : std::ceil(static_cast<double>(placement_.ranks_per_node) * member.ranks / placement_.ranks);
      member.pattern = open_workload(member.workload, settings, seed_of(member, seed))
                           .make({member.ranks, std::min(member.ranks, static_cast<uint32_t>(per_node))});
      member.pattern_name = workload.pattern->name;
    } catch (const InputError& error) {
      throw InputError(fmt::format("In the mix's member '{}': {}", member.name, error.what()));
    }
    for (const auto& [kind, count] : member.pattern->footprint().operations) {
      member.makes_data   = member.makes_data || (kind == OpKind::mkdir && count > 0);
      member.removes_data = member.removes_data || (kind == OpKind::rmdir && count > 0);
    }
    sets_up_           = sets_up_ || member.makes_data;
    tears_down_        = tears_down_ || member.removes_data;
    member.first_group = groups_;
    for (uint32_t rank = 0; rank < member.ranks; ++rank)
      groups_ = std::max(groups_, member.first_group + member.pattern->group_of(rank) + 1);
  }

  void plan_phases()
  {
    if (sets_up_)
      phases_.push_back({"setup"});
    for (size_t number = 0;; ++number) {
      std::vector<std::string> names;
      Phase phase;
      size_t taking_part = 0;
      for (const auto& member : members_) {
        if (member.ranks == 0 || number >= member.pattern->phases().size())
          continue;
        const auto& part = member.pattern->phases()[number];
        if (std::find(names.begin(), names.end(), part.name) == names.end())
          names.push_back(part.name);
        phase.repeat       = std::max(phase.repeat, part.repeat);
        phase.most_seconds = std::max(phase.most_seconds, part.most_seconds);
        ++taking_part;
      }
      if (names.empty())
        break;
      if (phase.most_seconds > 0 && taking_part > 1)
        throw InputError(fmt::format("In a mix, the phase '{}' can't have a time limit: it would end for all members, "
                                     "not only for the one that asks for it.",
                                     fmt::join(names, "+")));
      phase.name = fmt::format("{}", fmt::join(names, "+"));
      phases_.push_back(phase);
    }
    if (tears_down_)
      phases_.push_back({"teardown"});
    if (phases_.size() >= beyond / 2)
      throw InputError(
          fmt::format("A mix can't have more than {} phases; let its members repeat theirs less often.", beyond / 2));
  }

  Placement placement_;
  std::string layout_;
  std::vector<Member> members_;
  std::vector<Phase> phases_;
  uint32_t groups_ = 0;
  bool sets_up_    = false;
  bool tears_down_ = false;
  std::vector<Rank> ranks_;
};

const bool registered = register_pattern(
    {"mix",
     "several workloads at the same time, each on ranks and in a directory of its own, as jobs share a production "
     "system",
     "Lockwood et al., \"A year in the life of a parallel file system\", SC18, for how much jobs disturb each other",
     {{"MEMBER.PARAMETER", Unit::text, "",
       "of each member, under a name of its own: its workload, its share of the ranks or its number of ranks, and any "
       "setting of the workload"},
      {"layout", Unit::text, "blocks",
       "blocks: neighbouring ranks belong to one member; interleaved: each node has some of every member"},
      {"seed", Unit::count, "0",
       "of all that is drawn; by default that of the run. Each member draws numbers of its own, unless its own seed is "
       "set",
       0, 9e15},
      {"phases", Unit::text, "",
       "which phases every member runs that lets them be chosen; empty: what each says itself"}},
     {"a.workload=md-workbench a.datasets=2 a.objects=4 a.iterations=3 a.share=2 b.workload=postmark b.number=4 "
      "b.transactions=9 b.subdirectories=2",
      "layout=interleaved a.workload=operation-mix a.files=4 a.operations=12 a.readdir=1 b.workload=md-workbench "
      "b.datasets=1 b.objects=3 "
      "b.iterations=2 b.repeats=3 c.workload=postmark c.number=3 c.transactions=5 c.read=0B c.write=0B",
      "a.workload=md-workbench a.datasets=2 a.objects=4 a.iterations=3 a.most_seconds=1s"},
     [](const Parameters& given, const Placement& placement) { return std::make_unique<Mix>(given, placement); }});

} // namespace
} // namespace iocast
