// SPDX-License-Identifier: Apache-2.0
//
// Every reader of text gets damaged text: whatever it is, it is read or refused in a sentence, by InputError.
// IOCAST_FUZZ_INPUTS is the number of inputs a reader gets; validation/sanitizers runs these tests under
// AddressSanitizer and UndefinedBehaviorSanitizer.
#include "input/error.hpp"
#include "input/units.hpp"
#include "models/platform.hpp"
#include "profile/precision.hpp"
#include "real/brake.hpp"
#include "real/claim.hpp"
#include "real/manifest.hpp"
#include "workload/workload.hpp"

#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <sstream>
#include <unistd.h>

namespace iocast {
namespace {

namespace fs = std::filesystem;

int wanted_inputs(int usual)
{
  const char* given = std::getenv("IOCAST_FUZZ_INPUTS");
  return given ? std::atoi(given) : usual;
}

std::string content_of(const fs::path& file)
{
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// Texts like those of a corpus, but not quite.
class Mutator {
public:
  Mutator(std::vector<std::string> corpus, std::vector<std::string> words)
      : corpus_(std::move(corpus)), words_(std::move(words))
  {
  }

  std::string next()
  {
    std::string text = one_of(corpus_);
    for (size_t changes = below(4) + 1; changes > 0; --changes)
      change(text);
    return text;
  }

private:
  size_t below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  const std::string& one_of(const std::vector<std::string>& list) { return list[below(list.size())]; }

  void change(std::string& text)
  {
    const size_t at   = below(text.size() + 1);
    const size_t size = std::min(text.size() - at, below(40));
    switch (below(7)) {
      case 0:
        if (at < text.size())
          text[at] = static_cast<char>(random_());
        break;
      case 1:
        text.erase(at, size);
        break;
      case 2:
        text.insert(at, text.substr(below(text.size() + 1), below(200)));
        break;
      case 3:
        text.insert(at, one_of(words_));
        break;
      case 4:
        text.replace(at, size, one_of(words_));
        break;
      case 5: { // another number in the place of one
        const size_t digit = text.find_first_of("0123456789", at);
        if (digit != text.npos)
          text.replace(digit, std::min(text.find_first_not_of("0123456789.", digit), text.size()) - digit,
                       one_of(numbers_));
        break;
      }
      default:
        text.resize(at);
    }
  }

  std::mt19937_64 random_{20261124};
  std::vector<std::string> corpus_, words_;
  std::vector<std::string> numbers_{"0",
                                    "-1",
                                    "1e308",
                                    "18446744073709551616",
                                    "9223372036854775807",
                                    "nan",
                                    "inf",
                                    "-0.0",
                                    "1e-320",
                                    "99999999999999999999999999",
                                    "0x10",
                                    "007"};
};

void read_all(Mutator mutator, int inputs, const std::function<void(const std::string&)>& read)
{
  int good = 0, refused = 0;
  for (int i = 0; i < inputs; ++i) {
    const auto text  = mutator.next();
    const auto begun = std::clock(); // of the processor: a busy machine is no fault of a reader
    try {
      read(text);
      ++good;
    } catch (const InputError& error) {
      ++refused;
      const std::string_view message = error.what();
      EXPECT_FALSE(message.empty());
    } catch (const std::exception& error) {
      ADD_FAILURE() << "input " << i << " is refused by no sentence but: " << error.what() << "\n" << text;
      return;
    }
    ASSERT_LT(std::clock() - begun, 20 * CLOCKS_PER_SEC) << text;
  }
  // Damage that is never, or always, refused would try little.
  EXPECT_GT(refused, inputs / 50);
  EXPECT_GT(good, inputs / 200);
}

const std::vector<std::string> yaml_words{"\n",
                                          ": ",
                                          "- ",
                                          "[",
                                          "]",
                                          "{",
                                          "}",
                                          "&a ",
                                          "*a",
                                          "!!python/object ",
                                          "\"",
                                          "'",
                                          "|\n",
                                          "~",
                                          "null",
                                          "true",
                                          "1ms",
                                          "-5us",
                                          "{station: server}",
                                          "extends: local\n",
                                          "#",
                                          "\t",
                                          "\xff",
                                          "\xc3",
                                          "servers: 0",
                                          "for: {x: [1]}",
                                          "$x",
                                          "$(",
                                          "* 0"};

TEST(Readers, PlatformsThatAreDamaged)
{
  const auto file = fs::temp_directory_path() / fmt::format("iocast-fuzz-{}.yaml", getpid());
  std::vector<std::string> corpus;
  for (const auto& entry : fs::directory_iterator(data_directory("platforms")))
    if (auto text = content_of(entry.path()); text.size() < 4000)
      corpus.push_back(std::move(text));
  read_all({corpus, yaml_words}, wanted_inputs(300), [&](const std::string& text) {
    std::ofstream(file) << text;
    open_platform(file.string());
  });
  fs::remove(file);
}

TEST(Readers, WorkloadsThatAreDamaged)
{
  const auto file = fs::temp_directory_path() / fmt::format("iocast-fuzz-{}.yaml", getpid());
  std::vector<std::string> corpus;
  for (const auto& entry : fs::directory_iterator(data_directory("workload/catalogue")))
    if (auto text = content_of(entry.path()); text.size() < 4000)
      corpus.push_back(std::move(text));
  read_all({corpus, yaml_words}, wanted_inputs(1000), [&](const std::string& text) {
    std::ofstream(file) << text;
    open_workload(file.string(), {});
  });
  fs::remove(file);
}

TEST(Readers, ManifestsThatAreDamaged)
{
  Manifest manifest{"md-workbench",
                    {{"ranks", 4}, {"a", {{"data_set", {{"seed", 3}}}}}},
                    {{"start_index", 7}},
                    5,
                    true,
                    "precreate",
                    true,
                    true};
  const std::vector<std::string> words{"{",
                                       "}",
                                       "[",
                                       "]",
                                       "\"",
                                       ":",
                                       ",",
                                       "null",
                                       "true",
                                       "\"state\": \"ready\"",
                                       "\\u0000",
                                       "\xff",
                                       std::string(1, '\0'),
                                       std::string(3000, '['),
                                       "\"schema_version\": 1"};
  const auto& entry     = pattern_named("md-workbench");
  const auto parameters = open_workload("md-workbench", {}).parameters;
  const auto pattern    = open_workload("md-workbench", {}).make({4, 4});
  read_all({{manifest.text()}, words}, wanted_inputs(5000), [&](const std::string& text) {
    const auto read = Manifest::parse(text, "The place");
    try { // what is read may not fit
      seeds_to_go_on(read, entry, {});
      check_manifest(read, false, "The place", entry, *pattern, true);
      settings_to_go_on(read, "The place", parameters, {});
    } catch (const InputError&) {
    }
  });
}

TEST(Readers, ClaimsThatAreDamaged)
{
  const std::vector<std::string> words{"{", "}", "[", "\"", ":", ",", "null", "\\u001b[31m", "\xff", "0", "-", "e9"};
  read_all({{Claim::of_this_process().text()}, words}, wanted_inputs(5000), [](const std::string& text) {
    const auto claim = Claim::parse(text);
    if (!claim)
      throw InputError("This is no claim.");
    claim->is_alive();
    claim->silent_for();
    const auto owner = claim->owner();
    EXPECT_EQ(owner, printable(owner, owner.size())) << text;
    EXPECT_TRUE(Claim::parse(claim->text())) << text;
  });
}

TEST(Readers, ClaimsOfNoTimeAndNoProcess)
{
  auto claim = Claim::of_this_process();
  EXPECT_TRUE(Claim::parse(claim.text()));
  for (int64_t Claim::*field : {&Claim::process, &Claim::began, &Claim::seen}) {
    auto wrong   = claim;
    wrong.*field = std::numeric_limits<int64_t>::min();
    EXPECT_FALSE(Claim::parse(wrong.text()));
  }
}

TEST(Readers, ManifestsWithoutEndOfBrackets)
{
  for (const std::string open : {"{\"a\":{\"data_set\":", "[", "{\"data_set\":"}) {
    std::string text =
        R"({"schema_version": 1, "pattern": "mix", "state": "ready", "phase": "x", "position": {}, "seed": 1, )"
        R"("data_set": )";
    for (size_t i = 0; i < 20'000; ++i)
      text += open;
    for (const auto& ending : {std::string(), "1" + std::string(20'000, open == "[" ? ']' : '}') + "}"})
      EXPECT_THROW(Manifest::parse(text + ending, "The place"), InputError) << open;
  }
}

TEST(Readers, WordsOfCommandLinesThatAreDamaged)
{
  const std::vector<std::string> corpus{"10ms", "4KiB",  "rate:1%", "create.q95:3%,q999:10%", "create:5s,any:500ms",
                                        "1e3",  "200/s", "12",      "18446744073709551615"};
  const std::vector<std::string> words{":", "%", ",", ".", "q", "create", "any", "s", "KiB", "/s", "-", "e", "\xff"};
  const std::vector<std::function<void(const std::string&)>> readers{
      [](const std::string& text) { parse_quantity(text, Unit::seconds); },
      [](const std::string& text) { parse_quantity(text, Unit::bytes); },
      [](const std::string& text) { parse_quantity(text, Unit::count); },
      [](const std::string& text) { parse_precision(text); },
      [](const std::string& text) { Brake().set_latencies("--stop-latency", text); },
      [](const std::string& text) { parse_seed("--seed", text); }};
  for (const auto& reader : readers)
    read_all({corpus, words}, wanted_inputs(2000), reader);
}

} // namespace
} // namespace iocast
