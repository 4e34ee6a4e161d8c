// SPDX-License-Identifier: Apache-2.0
#include "input/error.hpp"
#include "input/units.hpp"
#include "input/yaml.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace iocast {
namespace {

std::string message_of(const std::function<void()>& action)
{
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Units, SizesAreToldAsPeopleSayThem)
{
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(3901), "3.8 KiB");
  EXPECT_EQ(format_size(8 << 20), "8.0 MiB");
  EXPECT_EQ(format_size(1.5 * 0x1p40), "1.5 TiB");
}

TEST(Units, MeanWhatTheFieldMeans)
{
  EXPECT_EQ(parse_quantity("3901B", Unit::bytes), 3901);
  EXPECT_EQ(parse_quantity("4KiB", Unit::bytes), 4096);
  EXPECT_EQ(parse_quantity("4k", Unit::bytes), 4096); // as IOR has it
  EXPECT_EQ(parse_quantity("4kB", Unit::bytes), 4000);
  for (int thousandths = 1; thousandths < 10000; ++thousandths) // whole, however it is written
    for (const auto& [name, scale] : {std::pair{"kB", 1}, {"MB", 1000}, {"GB", 1000000}})
      ASSERT_EQ(parse_quantity(fmt::format("{}.{:03}{}", thousandths / 1000, thousandths % 1000, name), Unit::bytes),
                static_cast<double>(thousandths) * scale);
  EXPECT_THROW(parse_quantity("1.0001kB", Unit::bytes), InputError);
  EXPECT_DOUBLE_EQ(parse_quantity("250us", Unit::seconds), 250e-6);
  EXPECT_DOUBLE_EQ(parse_quantity("-1e-05s", Unit::seconds), -1e-5);
  EXPECT_DOUBLE_EQ(parse_quantity("2 ms", Unit::seconds), 2e-3);
  EXPECT_DOUBLE_EQ(parse_quantity("5GB/s", Unit::bandwidth), 5e9);
  EXPECT_DOUBLE_EQ(parse_quantity("100/s", Unit::rate), 100);
  EXPECT_EQ(parse_quantity("0", Unit::seconds), 0);
}

TEST(Units, NetworksAreSoldInBits)
{
  for (const char* text : {"100Gbit/s", "100Gb/s", "100 Gbps", "12.5GB/s", "0.1Tb/s", "100000Mbit/s", "1e8 kb/s"})
    EXPECT_DOUBLE_EQ(parse_quantity(text, Unit::bandwidth), 12.5e9) << text;
  EXPECT_DOUBLE_EQ(parse_quantity("100GBps", Unit::bandwidth), 100e9); // a capital B is a byte
  const auto message = message_of([] { parse_quantity("100GBit", Unit::bandwidth); });
  EXPECT_NE(message.find("Allowed: kbit/s"), std::string::npos) << message;
  EXPECT_EQ(message.find("Did you mean 'GB/s'"), std::string::npos) << message; // of bytes, eight times as many
  EXPECT_EQ(message.find("m/s"), std::string::npos) << message;
}

TEST(Units, RefuseWhatIsNoQuantity)
{
  for (const char* text : {"5", "5x", "x", "", "nan", "inf", "1e999s"})
    EXPECT_THROW(parse_quantity(text, Unit::seconds), InputError) << text;
  EXPECT_THROW(parse_quantity("1.5", Unit::count), InputError);
  EXPECT_THROW(parse_quantity("5s", Unit::count), InputError);
  EXPECT_NE(message_of([] { parse_quantity("5uz", Unit::seconds); }).find("Did you mean 'us'"), std::string::npos);
}

TEST(Yaml, UnknownKeysNameFileLineAndNearestMatch)
{
  const auto yaml = YamlNode::parse("a: 1\nserverz: 2\n", "p.yaml");
  yaml.find("a");
  yaml.find("servers");
  const auto message = message_of([&] { yaml.finish(); });
  EXPECT_NE(message.find("p.yaml:2"), std::string::npos) << message;
  EXPECT_NE(message.find("Did you mean 'servers'?"), std::string::npos) << message;
}

TEST(Yaml, KeysAreSingleWords)
{
  for (const std::string text : {"a: 1\n? {station: server}\n: 2\n", "a: 1\n? [b, c]\n: 2\n"}) {
    const auto yaml = YamlNode::parse(text, "p.yaml");
    for (const auto& message : {message_of([&] { yaml.allow_only({"a"}); }), message_of([&] { yaml.entries(); })}) {
      EXPECT_NE(message.find("p.yaml:2: "), std::string::npos) << message;
      EXPECT_NE(message.find("a key is a single word"), std::string::npos) << message;
    }
  }
}

TEST(Yaml, MergesMapsAndReplacesLists)
{
  const auto base   = YamlNode::parse("m: {a: 1, b: 2}\nl: [1, 2]\nd: {law: x, mean: 1}\ngone: {a: 1}\n", "base.yaml");
  const auto top    = YamlNode::parse("m: {b: 3}\nl: [9]\nd: {law: y}\ngone:\n", "top.yaml");
  const auto merged = top.over(base, "law");
  EXPECT_EQ(merged["m"]["a"].text(), "1");
  EXPECT_EQ(merged["m"]["b"].text(), "3");
  EXPECT_EQ(merged["l"].items().size(), 1U);
  EXPECT_FALSE(merged["d"].has("mean"));
  EXPECT_FALSE(merged.has("gone"));
  EXPECT_EQ(merged["m"]["a"].where(), "base.yaml:1");
}

TEST(Printable, NothingThatATerminalActsOn)
{
  // A control character of ASCII, DEL, CSI as one character and as a byte, an override of the direction, a separator.
  for (const std::string bad : {"\n", "\x1b", "\x7f", "\xc2\x9b", "\x9b", "\xe2\x80\xae", "\xe2\x81\xa6",
                                "\xe2\x80\xa8", "\xd8\x9c", "\xff", "\xc3", "\xe2\x80", "\xc0\x9b"}) {
    const auto shown = printable("a" + bad + "z", 100);
    EXPECT_EQ(shown.find(bad), std::string::npos) << shown;
    EXPECT_EQ(shown.front(), 'a') << shown;
    EXPECT_EQ(shown.back(), 'z') << shown;
  }
  const std::string good = "d\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80 10 \xc2\xb5s";
  EXPECT_EQ(printable(good, good.size()), good);
  for (size_t most = 0; most < good.size(); ++most) // never within a character
    EXPECT_EQ(good.find(printable(good, most).substr(0, printable(good, most).size() - 3)), 0u) << most;
}

} // namespace
} // namespace iocast
