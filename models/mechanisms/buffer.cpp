// SPDX-License-Identifier: Apache-2.0
//
// What is declared of buffers; models/buffer.hpp and models/system/buffers.cpp have their course.
#include "models/platform_reader.hpp"

namespace iocast {

namespace {
void check(Named& part, const YamlNode& yaml, const Platform& platform)
{
  const auto& buffer = static_cast<const BufferSpec&>(part);
  if (buffer.station >= 0 && platform.stations[static_cast<size_t>(buffer.station)].by_stripe)
    yaml["station"].fail(fmt::format("what a buffer has of an object drains as if its stripes lay in turn; those of "
                                     "'{}' lie by chance (allocation: by-stripe)",
                                     yaml["station"].text()));
  if (const auto* station = buffer.station >= 0 ? &platform.stations[static_cast<size_t>(buffer.station)] : nullptr;
      station != nullptr && station->spread == Spread::stripe && station->stripe_size > buffer.capacity)
    yaml["capacity"].fail(fmt::format("the buffer '{}' of an instance has no room for a stripe of '{}', of {} bytes",
                                      buffer.name, station->name, station->stripe_size));
  if (buffer.unit > buffer.capacity)
    yaml["unit"].fail(fmt::format("the buffer '{}' has no room for a unit of {}; its capacity is {}", buffer.name,
                                  yaml["unit"].text(), yaml["capacity"].text()));
  if (buffer.linger > 0 && buffer.unit == 0)
    yaml["linger"].fail("only what can be part of a larger piece waits for more; say how large with 'unit'");
  if (buffer.stage_in > 0 && buffer.unit == 0)
    yaml["staged"].fail(
        fmt::format("the buffer '{}' has no 'unit', the bytes of a piece that is staged in", buffer.name));
  if (buffer.stage_in > 0 && buffer.stage_in + buffer.unit > buffer.capacity)
    yaml["staged"].fail(fmt::format("the buffer '{}' has no room for {} and a unit besides; its capacity is {} bytes, "
                                    "of each instance",
                                    buffer.name, yaml["staged"].text(), buffer.capacity));
}

/// A share of the capacity, which stands before it.
Key share(uint64_t BufferSpec::*member, Key key)
{
  key.set = [member](Named& part, double value) {
    auto& buffer   = static_cast<BufferSpec&>(part);
    buffer.*member = static_cast<uint64_t>(value * static_cast<double>(buffer.capacity));
  };
  key.get = [member](const Named& part, const Platform&, bool) {
    const auto& buffer = static_cast<const BufferSpec&>(part);
    return static_cast<double>(buffer.*member) / static_cast<double>(buffer.capacity);
  };
  return key;
}

Key granularity(Key key)
{
  key.optional = true;
  key.set      = [](Named& part, double value) {
    auto& buffer       = static_cast<BufferSpec&>(part);
    const auto granule = static_cast<uint64_t>(value);
    buffer.capacity    = (buffer.capacity + granule - 1) / granule * granule;
  };
  return key;
}

using Bytes = PieceSteps::Bytes;
const std::vector<Key> keys{
    number(&BufferSpec::capacity, {"capacity", "bytes; a piece takes room until it is drained", Unit::bytes, 1, 1e18}),
    granularity({"granularity", "bytes of which the capacity is a multiple, rounded up", Unit::bytes, 1, 1e18}),
    number(&BufferSpec::unit, {"unit",
                               "multiple of bytes up to which adjacent bytes of an object drain together; "
                               "default: each write by itself",
                               Unit::bytes, 1, 1e18, 0}),
    number(&BufferSpec::linger, {"linger",
                                 "time that less than a unit waits for more, default 0; shorter when it is "
                                 "flushed or a write waits for room",
                                 Unit::seconds, 0, PlatformReader::longest_seconds, 0}),
    share(&BufferSpec::resume, {"resume",
                                "share of the capacity at which waiting writes go on, default 1: as soon as "
                                "there is room",
                                Unit::factor, 0, 1, 1}),
    number(&BufferSpec::at_once, {"at_once", "pieces that drain at a time, default 1", Unit::count, 1, 1e6, 1}),
    steps({"drain", "steps of a piece: delays, visits, transfers, limits, and buffers that are written above this one"},
          {.piece   = "piece",
           .what    = "what a buffer drains",
           .through = "delays, visits, transfers, limits, and buffers that are written above it",
           .refused = {"flush"},
           .bytes   = Bytes::written}),
    share(&BufferSpec::above, {"above",
                               "share of the capacity that stays in it until a write waits for room or a flush for "
                               "what is there, default 0: all drains",
                               Unit::factor, 0, 0.99, 0})
        .where_set(),
    word(&BufferSpec::stage_out, {"never", "phase"},
         {"stage_out", "never (default), or phase: all that is in it drains after each phase, before the next begins"})
        .where_set(),
    number(&BufferSpec::stage_in,
           {"staged", "bytes that come into each instance before the first phase, and take room until the end",
            Unit::bytes, 1, 1e18})
        .where_set(),
    steps<BufferSpec>({"stage_in", "with staged: steps of a unit of them: delays, visits, reads from another station, "
                                   "accesses of disks, limits"},
                      {.piece   = "piece",
                       .what    = "what is staged in",
                       .through = "delays, visits, disks, transfers and limits",
                       .refused = {"buffer", "flush", "cache", "forget"},
                       .bytes   = Bytes::staged},
                      &BufferSpec::stage_in_steps, &BufferSpec::stage_in_json)
        .needing({"staged"}),
};

const bool registered = register_mechanism({
    .section = "buffers",
    .word    = "buffer",
    .summary = "memory that takes writes at once and drains in the background; at the step (of create, append or "
               "pwrite) the operation waits for room, large writes in turn, and goes on. Reads ignore it",
    .keys    = keys,
    .kept    = kept_in<BufferSpec, &Platform::buffers>,
    .check   = check,
    .order   = 5,
    .listed  = true,
});
} // namespace

} // namespace iocast
