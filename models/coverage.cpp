// SPDX-License-Identifier: Apache-2.0
#include "models/coverage.hpp"

#include "input/error.hpp"
#include "input/error_code.hpp"
#include "models/mechanism.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace iocast {

namespace {
constexpr double in_memory     = 0.1; // a share of a phase's bytes above which what is still in buffers shapes its rate
const std::string no_server    = "no-server"; // kind of a finding
constexpr double rounding      = 1 + 1e-9;
constexpr uint64_t large_bytes = 1 << 16; // of an operation: what moves them takes time on any system

std::string bytes_text(double bytes)
{
  static constexpr std::array<const char*, 6> units{"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < units.size(); ++unit)
    bytes /= 1000;
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

std::string rate_text(double rate)
{
  return rate < 1e3   ? fmt::format("{:.3g}/s", rate)
         : rate < 1e6 ? fmt::format("{:.3g} k/s", rate / 1e3)
                      : fmt::format("{:.3g} M/s", rate / 1e6);
}

bool takes_time(const LawPointer& law)
{
  return law && law->mean() > 0;
}

/// Goes through steps, and through what drains, fills and fetches for them.
class Walk {
public:
  explicit Walk(const Platform& platform) : platform_(platform) {}

  void through(const std::vector<Step>& steps)
  {
    for (const auto& step : steps)
      at(step);
  }

  Reach result()
  {
    auto& stations = reach_.data_stations;
    std::sort(stations.begin(), stations.end());
    stations.erase(std::unique(stations.begin(), stations.end()), stations.end());
    return reach_;
  }

private:
  void at(const Step& step)
  {
    switch (step.kind) {
      case Step::Kind::delay:
        reach_.timed = reach_.timed || takes_time(step.law);
        break;
      case Step::Kind::visit:
        visit(step);
        break;
      case Step::Kind::seize:
        reach_.server = reach_.server || platform_.limits[step.target].per == Per::system;
        break;
      case Step::Kind::transfer: {
        const auto& network = platform_.network;
        const auto& station = platform_.stations[step.target];
        const bool sent     = platform_.ways[step.way].network;
        const bool limited =
            station.disk.exists() || (sent && (!network.is_uniform() || network.node_bandwidth > 0 ||
                                               network.server_bandwidth > 0 || network.backbone_bandwidth > 0));
        reach_.timed    = reach_.timed || limited || network.latency > 0;
        reach_.by_bytes = reach_.by_bytes || limited;
        if (station.per == Per::node)
          break;
        reach_.server = true;
        reach_.data_stations.push_back(step.target);
        break;
      }
      case Step::Kind::enter: {
        const auto& buffer = platform_.buffers[step.target];
        reach_.buffered    = reach_.buffered || buffer.of_nodes();
        reach_.server      = reach_.server || !buffer.of_nodes();
        reach_.by_bytes    = true;
        beside(buffer.steps);
        break;
      }
      case Step::Kind::flush: // waits for what drains
        reach_.timed  = true;
        reach_.server = true;
        break;
      case Step::Kind::use: {
        const auto& mechanism    = *platform_.mechanisms[step.target];
        const bool of_the_system = std::any_of(mechanism.steps.begin(), mechanism.steps.end(), [this](const Step& one) {
          return one.kind == Step::Kind::visit && platform_.stations[one.target].per == Per::system;
        });
        reach_.timed             = true;
        reach_.server            = reach_.server || of_the_system || !mechanism.of_nodes();
        reach_.by_bytes =
            reach_.by_bytes || (mechanism.kind->by_bytes != nullptr && mechanism.kind->by_bytes(mechanism));
        break;
      }
      case Step::Kind::look: {
        const auto& cache = platform_.caches[step.target];
        if (step.forgets)
          break;
        reach_.by_bytes = reach_.by_bytes || cache.page > 0;
        beside(cache.steps);
        break;
      }
      default:
        break;
    }
  }

  void visit(const Step& step)
  {
    const auto& station = platform_.stations[step.target];
    const bool lock     = step.lock >= 0 && step.lock_share > 0;
    const bool works    = takes_time(step.law) || step.bandwidth > 0 || lock;
    reach_.timed        = reach_.timed || works;
    reach_.by_bytes     = reach_.by_bytes || step.bandwidth > 0;
    if (station.per == Per::node || !works)
      return;
    reach_.server = true;
    if (step.bandwidth > 0)
      reach_.data_stations.push_back(step.target);
  }

  /// Where bytes go that nobody waits for.
  void beside(const std::vector<Step>& steps)
  {
    for (const auto& step : steps)
      if (step.kind == Step::Kind::transfer ||
          (step.kind == Step::Kind::visit && step.bandwidth > 0 && platform_.stations[step.target].per == Per::system))
        reach_.data_stations.push_back(step.target);
  }

  const Platform& platform_;
  Reach reach_;
};
} // namespace

Reach reach_of(const Platform& platform, OpKind kind)
{
  Walk walk(platform);
  walk.through(platform.routes[static_cast<size_t>(kind)].steps);
  return walk.result();
}

bool is_alone(const Reach& reach, OpKind kind)
{
  return reach.timed && !reach.server && !reach.buffered && kind != OpKind::close;
}

Coverage::Coverage(const Platform& platform, const Pattern& pattern, const Placement& placement)
    : platform_(platform), pattern_(pattern), placement_(placement)
{
  bool timed = false;
  std::string names;
  for (const auto& [kind, count] : pattern.footprint().operations) {
    if (count == 0 || kind == OpKind::think)
      continue;
    reach_[static_cast<size_t>(kind)] = reach_of(platform, kind);
    timed                             = timed || reach_[static_cast<size_t>(kind)].timed;
    names += (names.empty() ? "" : ", ") + std::string(name_of(kind));
  }
  if (!timed && !names.empty())
    throw InputError(fmt::format("The platform '{}' models nothing of this workload: no step of its routes for {} "
                                 "takes any time, so that there is no rate to tell. Give the routes steps with "
                                 "demands, delays or transfers.",
                                 platform.file, names));
  refuse_alone();
}

void Coverage::refuse_alone() const
{
  if (placement_.nodes() < 2)
    return;
  std::vector<std::string_view> alone;
  std::string where;
  for (const auto& [kind, count] : pattern_.footprint().operations) {
    const auto k = static_cast<size_t>(kind);
    if (count == 0 || kind == OpKind::think || !is_alone(reach_[k], kind) || platform_.serves.node_local[k])
      continue;
    if (alone.empty())
      where = platform_.routes[k].where;
    alone.push_back(name_of(kind));
  }
  if (!alone.empty())
    throw Coded<InputError>(
        error_code::nothing_shared,
        fmt::format("{}: on the platform '{}' these operations visit nothing that client nodes share: {}. Each further "
                    "node would do as much as the first, without bound. Give their routes a server; or, where each "
                    "node works by itself, write serves: {{node_local: [{}]}} in the platform's file. One node is "
                    "simulated as it is.",
                    where.empty() ? platform_.file : where, platform_.name, fmt::join(alone, ", "),
                    fmt::join(alone, ", ")));
}

bool Coverage::visits_no_server(OpKind kind) const
{
  const auto& reach = reach_[static_cast<size_t>(kind)];
  return !reach.server && !reach.buffered && kind != OpKind::close;
}

void Coverage::refuse_unbounded(const FinishedPhase& phase, OpKind kind, double rate, double bytes) const
{
  const auto k      = static_cast<size_t>(kind);
  const auto& bound = platform_.serves;
  const auto refuse = [&](const std::string& found, const std::string& most, const char* key) {
    throw InputError(fmt::format(
        "{}: in the phase '{}' {} has {} on the platform '{}', whose file declares {} as the most that it serves "
        "(serves.bounds.{}.{}): no such answer is given. Ask for fewer clients, or declare another bound.",
        bound.where[k], pattern_.phases()[phase.number].name, name_of(kind), found, platform_.name, most, name_of(kind),
        key));
  };
  if (bound.most[k] > 0 && rate > bound.most[k] * rounding)
    refuse(rate_text(rate), rate_text(bound.most[k]), "rate");
  if (bound.most_bytes[k] > 0 && bytes > bound.most_bytes[k] * rounding)
    refuse(bytes_text(bytes) + "/s", bytes_text(bound.most_bytes[k]) + "/s", "bytes");
}

void Coverage::add(const FinishedPhase& phase, const std::vector<BufferSums>& buffers_before)
{
  const double seconds = phase.end - phase.start;
  if (!(seconds > 0))
    return;
  uint64_t entered = 0;
  double stayed    = 0;
  std::string names;
  for (size_t i = 0; i < platform_.buffers.size(); ++i)
    if (platform_.buffers[i].of_nodes()) {
      entered += phase.buffers[i].entered - buffers_before[i].entered;
      stayed += static_cast<double>(phase.buffers[i].held) - static_cast<double>(buffers_before[i].held);
      names += (names.empty() ? "'" : ", '") + platform_.buffers[i].name + "'";
    }
  const bool stays = entered > 0 && stayed > in_memory * static_cast<double>(entered);
  for (size_t k = 1; k < op_count; ++k) {
    const auto kind = static_cast<OpKind>(k);
    if (kind == OpKind::think || !phase.recorder.has(kind))
      continue;
    const auto count  = static_cast<double>(phase.recorder.of_kind(kind).whole.count());
    const auto bytes  = static_cast<double>(phase.bytes[k]);
    const auto& reach = reach_[k];
    if (count == 0)
      continue;
    const std::string name = std::string(name_of(kind));
    if (reach.buffered && stays && bytes > 0) {
      note("held-in-memory", phase, kind, {{"bytes", entered}, {"bytes_held", stayed}},
           fmt::format("Of {} that {} wrote in the phase '{{}}', {} were still in the buffers {} of the client nodes "
                       "at its end: the phase's rate is that of memory, not of the servers.",
                       bytes_text(static_cast<double>(entered)), name, bytes_text(stayed), names));
      continue;
    }
    refuse_unbounded(phase, kind, count / seconds, bytes / seconds);
    if (visits_no_server(kind) && placement_.nodes() > 1)
      note(no_server, phase, kind, {{"rate", count / seconds}}, {});
    if (bytes == 0)
      continue;
    if (!reach.by_bytes && bytes / count >= static_cast<double>(large_bytes))
      note("no-bytes", phase, kind, {{"bytes_per_second", bytes / seconds}},
           fmt::format("In the phase '{{}}' {} takes as long for any number of bytes: no step of its route on the "
                       "platform '{}' has a bandwidth or is a transfer, so {}/s mean nothing.",
                       name, platform_.name, bytes_text(bytes / seconds)));
    if (!is_access(kind) || reach.data_stations.empty())
      continue;
    for (const auto whole : {OpKind::create, OpKind::read}) {
      if (!platform_.routes[static_cast<size_t>(whole)].served)
        continue;
      const auto others = reach_of(platform_, whole).data_stations;
      const bool shares = others.empty() || std::any_of(others.begin(), others.end(), [&](uint32_t station) {
                            return std::find(reach.data_stations.begin(), reach.data_stations.end(), station) !=
                                   reach.data_stations.end();
                          });
      if (!shares) {
        note("other-servers", phase, kind,
             {{"station", platform_.stations[reach.data_stations.front()].name},
              {"instead_of", platform_.stations[others.front()].name}},
             fmt::format("In the phase '{{}}' {} moves its bytes to or from the station '{}', where whole objects ({}) "
                         "go to '{}': on the platform '{}' it bypasses the latter.",
                         name, platform_.stations[reach.data_stations.front()].name, name_of(whole),
                         platform_.stations[others.front()].name, platform_.name));
        break;
      }
    }
  }
}

void Coverage::note(const std::string& kind, const FinishedPhase& phase, OpKind operation,
                    const nlohmann::ordered_json& more, const std::string& sentence)
{
  const auto& of = pattern_.phases()[phase.number];
  nlohmann::ordered_json finding{
      {"kind", kind}, {"phase", of.name}, {"repeat", of.repeat}, {"operation", name_of(operation)}};
  finding.update(more);
  const std::string about = kind == no_server ? kind : kind + " " + std::string(name_of(operation));
  findings_.push_back(std::move(finding));
  about_.push_back(about);
  if (kind == no_server)
    return;
  const auto known =
      std::find_if(sentences_.begin(), sentences_.end(), [&](const Sentence& one) { return one.about == about; });
  if (known == sentences_.end())
    sentences_.push_back({about, fmt::format(fmt::runtime(sentence), of.name), 1});
  else
    ++known->phases;
}

void Coverage::add_bound(const std::string& kind, const std::string& of, uint64_t count, const std::string& sentence)
{
  if (count == 0)
    return;
  findings_.push_back({{"kind", kind}, {"of", of}, {"count", count}});
  about_.push_back(kind + " " + of);
  sentences_.push_back({about_.back(), sentence, 1});
}

nlohmann::ordered_json Coverage::findings() const
{
  // The sentence of operations without a server stands before the others.
  const size_t before = std::find(about_.begin(), about_.end(), no_server) == about_.end() ? 0 : 1;
  auto found          = findings_;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto its =
        std::find_if(sentences_.begin(), sentences_.end(), [&](const Sentence& one) { return one.about == about_[i]; });
    const bool alone     = its == sentences_.end();
    found[i]["sentence"] = alone ? 0 : before + static_cast<size_t>(its - sentences_.begin());
  }
  return found;
}

std::vector<std::string> Coverage::sentences() const
{
  std::vector<std::string> all;
  std::vector<std::string> alone;
  const nlohmann::ordered_json* fastest = nullptr;
  for (const auto& finding : findings_)
    if (finding["kind"] == no_server) {
      if (const auto name = finding["operation"].get<std::string>();
          std::find(alone.begin(), alone.end(), name) == alone.end())
        alone.push_back(name);
      if (fastest == nullptr || (*fastest)["rate"] < finding["rate"])
        fastest = &finding;
    }
  if (fastest != nullptr)
    all.push_back(fmt::format("On the platform '{}' these operations visit nothing that client nodes share: {}. Their "
                              "rates grow with the nodes without bound; {} of the phase '{}' has {} here.",
                              platform_.name, fmt::join(alone, ", "), (*fastest)["operation"].get<std::string>(),
                              (*fastest)["phase"].get<std::string>(), rate_text((*fastest)["rate"].get<double>())));
  for (const auto& one : sentences_)
    all.push_back(one.phases == 1 ? one.text
                                  : fmt::format("{} The same holds in {} more phase{}.", one.text, one.phases - 1,
                                                one.phases == 2 ? "" : "s"));
  return all;
}

} // namespace iocast
