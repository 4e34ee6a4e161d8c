// SPDX-License-Identifier: Apache-2.0
//
// What is declared of stalls; models/stall.hpp has their course.
#include "models/platform_reader.hpp"

namespace iocast {

namespace {
using Operations = decltype(StallSpec::operations);

Operations read_operations(PlatformReader& reader, StallSpec&, const YamlNode& yaml)
{
  Operations operations{};
  for (const auto& operation : yaml.items())
    operations[static_cast<size_t>(reader.read_op(operation))] = true;
  return operations;
}

nlohmann::ordered_json names_of(const Operations& operations, const Platform&, bool)
{
  auto names = nlohmann::ordered_json::array();
  for (size_t k = 0; k < op_count; ++k)
    if (operations[k])
      names.push_back(op_names[k]);
  return names;
}

void check(Named& spec, const YamlNode& yaml, const Platform&)
{
  refuse_endless(static_cast<const StallSpec&>(spec), yaml);
}

constexpr double longest = PlatformReader::longest_seconds;
const std::vector<Key> keys{
    station(&StallSpec::station, {"station", "name of the station"}),
    number(&StallSpec::every, {"every", "time between the starts of two stalls", Unit::seconds, 1e-6, longest}),
    number(&StallSpec::length, {"length", "mean length", Unit::seconds, 0, longest}),
    number(&StallSpec::sigma, {"sigma", "of the lognormal length", Unit::factor, 0, 3, 0}),
    value("list", &StallSpec::operations, {"operations", "the class"}, read_operations, names_of),
    number(&StallSpec::per_change,
           {"per_change",
            "time by which the mean length grows for each operation of the class since the last stall began",
            Unit::seconds, 0, 1, 0})
        .where_set(),
    number(&StallSpec::absorbed,
           {"absorbed", "with per_change: operations that do not count, default 0", Unit::factor, 0, 1e15, 0})
        .needing({"per_change"}),
};

const bool registered = register_mechanism({
    .section   = "stalls",
    .word      = "stall",
    .summary   = "a class of operations does not start service at a station, at regular intervals",
    .keys      = keys,
    .kept      = kept_in<StallSpec, &Platform::stalls>,
    .owners    = {},
    .in_routes = false,
    .check     = check,
    .order     = 1,
    .listed    = true,
});
} // namespace

} // namespace iocast
