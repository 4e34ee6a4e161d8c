// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "input/error.hpp"
#include "models/mechanism.hpp"
#include "models/platform.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace iocast {

inline constexpr std::array<const char*, 4> spread_names{"dataset", "object", "stripe", "round-robin"};
inline const char* const no_owner = "'{}' can't own this. {}";

inline const char* name_of(Per per)
{
  static constexpr std::array<const char*, 5> names{"system", "node", "dataset", "object", "rank"};
  return names[static_cast<size_t>(per)];
}

/// Reads a platform file, section by section: what there is (platform_stations.cpp), what keeps things in memory
/// (platform_memory.cpp), and the routes of operations (platform_routes.cpp). @throws InputError with file and line for
/// whatever makes no sense
class PlatformReader {
public:
  PlatformReader(const YamlNode& yaml, Platform& platform) : yaml_(yaml), platform_(platform)
  {
    // From the top down to the first file that has routes, those of the catalogue below it excepted. Not the one at the
    // bottom, whose names are the first of their kind: a slip in one of them is seen where a route has the right one.
    const auto operations = yaml_.has("operations") ? yaml_["operations"].files() : std::vector<std::string>{};
    auto files            = yaml_.files();
    files.pop_back();
    for (const auto& file : files) {
      if (file == platform_.file || !is_of_catalogue(file))
        own_files_.push_back(file);
      if (std::find(operations.begin(), operations.end(), file) != operations.end())
        break;
    }
  }

  void read();

  // What the values of keys name.
  uint32_t read_station(const YamlNode& yaml) const { return find_in(platform_.stations, yaml, "station"); }
  uint32_t read_instance(const YamlNode& yaml, uint32_t station) const;
  static OpKind read_op(const YamlNode& yaml);
  /// A named demand, or a law written in place.
  LawPointer read_demand(const YamlNode& yaml);
  nlohmann::ordered_json read_pieces(const PieceSteps& pieces, const YamlNode& yaml, const MechanismSpec& spec,
                                     std::vector<Step>& steps);

  static constexpr double longest_seconds = 1e6;
  static constexpr uint64_t most_pages    = 1 << 24; // of a cache that must know each
  static constexpr uint32_t most_limited  = 999'999; // servers; more are no limit (iocast/calibrate/recipe.py)
  static constexpr double most            = 4e9;     // instances, servers, slots

private:
  static bool is_of_catalogue(const std::string& file);

  static constexpr std::array<const char*, 3> times_names{"operation", "entry", "block"};
  static constexpr std::array<const char*, 4> flush_names{"all", "object", "everywhere", "elsewhere"};
  static constexpr uint32_t most_slicing = 100'000; // servers that slice time, each of which is known
  static constexpr uint32_t most_parts   = 255;     // of a request at the same time
  static constexpr size_t most_steps     = 10000;   // of a hit and a miss

  template <class Specs> static std::vector<std::string> names_of(const Specs& specs)
  {
    std::vector<std::string> names;
    for (const auto& spec : specs)
      names.push_back(spec.name);
    return names;
  }

  template <class Specs> static uint32_t find_in(const Specs& specs, const YamlNode& reference, const std::string& what)
  {
    const auto name = reference.text();
    for (uint32_t i = 0; i < specs.size(); ++i)
      if (specs[i].name == name)
        return i;
    reference.fail(fmt::format("there is no {} '{}'. {}", what, name, allowed_sentence(name, names_of(specs))));
  }

  /// Refuses `key` with this sentence, unless it is inherited from below the file that sets `decided_by`, the key that
  /// takes its effect away.
  void refuse_idle(const YamlNode& owner, const char* key, const char* decided_by, const std::string& sentence) const;
  /// Refuses words that others use for ours, with ours.
  static void refuse_foreign_words(const YamlNode& owner,
                                   const std::vector<std::pair<std::string, std::string>>& words);
  /// Refuses parts of the file that no route uses: nothing would change if they were something else.
  void check_all_used() const;
  void refuse_unused(const std::string& section, const std::string& what, const std::string& name,
                     const std::set<std::string>& used) const;
  bool is_own(const std::string& file) const
  {
    return std::find(own_files_.begin(), own_files_.end(), file) != own_files_.end();
  }

  void read_stations();
  /// Who accesses in a collective access.
  void read_collective(const YamlNode& yaml);
  /// Where an object's bytes lie.
  void read_stripes(const YamlNode& yaml, StationSpec& station) const;
  /// What weighted allocation goes by.
  static void read_free(const YamlNode& yaml, StationSpec& station);
  /// A measured table in the place of a law.
  static void read_speeds(const YamlNode& yaml, StationSpec& station);
  /// Which work is served before which.
  static void read_priority(const YamlNode& yaml, StationSpec& station);
  static void read_disk(const YamlNode& yaml, StationSpec& station);
  static void read_rpc(const YamlNode& yaml, StationSpec& station);
  /// Copies or shards of an instance's objects at others.
  static void read_redundancy(const YamlNode& yaml, StationSpec& station);
  void read_serves(); // serves.cpp
  /// Pieces are no operations; those of a buffer or cache of no node have no node.
  void check_beside_step(const YamlNode& item, const Step& step) const;
  void check_nodeless_step(const YamlNode& item, const Step& step, const std::string& nodeless) const;
  /// Who waits for a buffer must not hold what the buffer needs to drain, nor what a mechanism needs for
  /// its pieces.
  void check_not_held(const YamlNode& reference, const MechanismSpec& spec, const std::vector<uint32_t>& held) const;
  void read_mechanisms(); // this and the next are in mechanism.cpp
  void read_owner(const MechanismKind& kind, const YamlNode& yaml, MechanismSpec& spec) const;
  void read_keys(const MechanismKind& kind, const YamlNode& yaml, Named& part);
  /// By what the routes show.
  void check_mechanisms() const;
  /// That whose step this is, or none.
  static const MechanismKind* mechanism_of(const YamlNode& item);
  nlohmann::ordered_json read_use(const MechanismKind& kind, const YamlNode& item, std::vector<Step>& out,
                                  const std::vector<uint32_t>& held);
  void read_network();
  void read_topology(const YamlNode& network);
  void read_places(const YamlNode& network, const std::string& topology, const std::string& place);
  /// Only what bytes go to has a place in the network.
  void check_places() const;

  static std::string unknown_op(const std::string& name);
  /// What a platform calls the kinds of work of its clients.
  static std::vector<std::string> op_list();
  static void set_law(Step& step, LawPointer law);
  nlohmann::ordered_json demand_json(const YamlNode& yaml, const LawPointer& law);
  nlohmann::ordered_json read_steps(const YamlNode& list, std::vector<Step>& out, std::vector<uint32_t> held);
  /// Bytes to or from a station, its disk included.
  nlohmann::ordered_json read_transfer(const YamlNode& item, const YamlNode& transfer, std::vector<Step>& out);
  /// Bytes at the disk of a station.
  nlohmann::ordered_json read_disk_access(const YamlNode& item, const YamlNode& access, std::vector<Step>& out);
  uint16_t number_of(const Way& way);
  /// Of a transfer or train: the ways of the shards that move with it, if the station has some.
  Step shards_of(const Step& step);
  /// Steps for those who had to call the lock of the visit back.
  nlohmann::ordered_json read_recall(const YamlNode& yaml, const Step& visit, std::vector<Step>& out,
                                     const std::vector<uint32_t>& held);
  /// One that has none of the keys by which steps differ.
  [[noreturn]] static void refuse_step(const YamlNode& item);
  /// Steps that follow if the step before them had to call something back.
  nlohmann::ordered_json read_called_back(const YamlNode& yaml, std::vector<Step>& out,
                                          const std::vector<uint32_t>& held);
  /// A look at a cache, the steps of a hit, a jump over the others, and the steps of a miss.
  nlohmann::ordered_json read_look(const YamlNode& item, const YamlNode& cache, std::vector<Step>& out,
                                   const std::vector<uint32_t>& held);
  std::string read_forget_of(const YamlNode& of, Step& step);
  static bool moves_bytes(OpKind kind);
  /// Refuses mechanisms that count bytes alone where all operations that use them move none: nothing would change.
  void refuse_without_bytes() const;
  void check_has_object(const YamlNode& cache) const;
  /// Parts where an access has bytes, whatever it is.
  void read_spanned(const YamlNode& yaml, Step& step) const;
  void read_operations();
  static void add_marker(Route& route, Step::Kind kind);
  static std::string part_list(std::span<const std::string_view> parts);
  /// Making and removing a dataset costs what its object operation costs, less the data.
  void lend_route(OpKind to, OpKind from);

  const YamlNode& yaml_;
  Platform& platform_;
  std::map<std::string, LawPointer> demands_;
  std::set<std::string> used_demands_;
  std::vector<std::string> own_files_; ///< those whose parts must be used: of the files that extend another, the
                                       ///< platform's, and those below it that nobody above gives other routes
  OpKind op_                     = OpKind::phase; ///< whose route is read
  const MechanismSpec* piece_of_ = nullptr;       ///< whose pieces' steps are read
  const PieceSteps* pieces_      = nullptr;       ///< likewise
  std::vector<uint32_t> enclosed_;                ///< mechanisms whose steps enclose those that are read

  bool reads_route() const { return pieces_ == nullptr; }
  /// What a name names: of its own kind a piece's steps have only what is written above.
  std::string earlier(const char* what) const
  {
    return (piece_of_ != nullptr && piece_of_->kind->word == what ? "earlier " : "") + std::string(what);
  }
};

/// The key whose value names a station.
template <class Spec, class Number> Key station(Number Spec::*member, Key key)
{
  return value(
      "name", member, std::move(key),
      [](auto& reader, auto&, auto& yaml) { return static_cast<Number>(reader.read_station(yaml)); },
      [](Number at, const Platform& platform, bool) {
        return at == static_cast<Number>(-1) ? nlohmann::ordered_json()
                                             : nlohmann::ordered_json(platform.stations[static_cast<size_t>(at)].name);
      });
}

/// The key whose value is a law or the name of a demand.
template <class Spec> Key demand(LawPointer Spec::*member, Key key)
{
  return value(
      "demand", member, std::move(key), [](auto& reader, auto&, auto& yaml) { return reader.read_demand(yaml); },
      [](const LawPointer& law, const Platform&, bool quantiles) {
        return law ? law_to_json(*law, quantiles) : nlohmann::ordered_json();
      });
}

/// The key whose list of steps its pieces go through.
template <class Spec = MechanismSpec>
Key steps(Key key, const PieceSteps& pieces, std::vector<Step> Spec::*member = &MechanismSpec::steps,
          nlohmann::ordered_json Spec::*json = &MechanismSpec::steps_json)
{
  key.pieces = pieces;
  return value(
      "steps", json, std::move(key),
      [=](auto& reader, Spec& spec, auto& yaml) { return reader.read_pieces(pieces, yaml, spec, spec.*member); },
      [](const auto& read, const Platform& platform, bool quantiles) { return platform.settled(read, quantiles); });
}

/// Which of these words it is. The refusal names it, and then those that are allowed.
inline size_t place_of(const YamlNode& yaml, const std::vector<std::string>& words, const std::string& refusal)
{
  const auto text  = yaml.text();
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end())
    yaml.fail(fmt::format(fmt::runtime(refusal), text, allowed_sentence(text, words)));
  return static_cast<size_t>(found - words.begin());
}

/// The key whose value is one of these words, which stand for the member's values from 0 on.
template <class Spec, class Word>
Key word(Word Spec::*member, const std::vector<std::string>& words, Key key,
         const std::string& refusal = "it can't be '{}'. {}")
{
  key.usual    = words.front();
  key.optional = true;
  return value(
      "word", member, std::move(key),
      [=](auto&, auto&, auto& yaml) { return static_cast<Word>(place_of(yaml, words, refusal)); },
      [=](Word is, auto&, bool) { return nlohmann::ordered_json(words[static_cast<size_t>(is)]); });
}

/// Refuses what is away for so long that the next time comes before it is back.
template <class Spec> void refuse_endless(const Spec& spec, const YamlNode& yaml)
{
  if (spec.every > 0 && spec.length >= spec.every)
    yaml["length"].fail(fmt::format("a {} of {} every {} would never end", spec.kind->word, yaml["length"].text(),
                                    yaml["every"].text()));
}

} // namespace iocast
