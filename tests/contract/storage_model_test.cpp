// SPDX-License-Identifier: Apache-2.0
//
// The contract's rules find what breaks them.
#include "tests/contract/streams.hpp"
#include "workload/workload.hpp"

#include <gtest/gtest.h>

namespace iocast {
namespace {

using K = OpKind;

/// What is wrong with these phases of two ranks; empty when nothing is. Datasets 0 and 1 are a parent and its child.
std::string wrong(const std::vector<std::vector<std::vector<Op>>>& phases)
{
  const auto pattern = open_workload("probe", {}).make({2, 2});
  StorageModel storage(*pattern);
  try {
    for (auto ranks : phases) {
      ranks.resize(2);
      storage.phase("p", ranks);
    }
    storage.end();
  } catch (const Violation& violation) {
    return violation.what();
  }
  return "";
}

const std::vector<Op> make{{K::mkdir, 0, 0}, {K::create, 0, 0, 10}};
const std::vector<Op> clean{{K::unlink, 0, 0}, {K::rmdir, 0, 0}};
const Op open_to_write = flagged({K::open, 0, 0}, for_writing);
const Op open_to_read  = {K::open, 0, 0};
const Op close_it      = {K::close, 0, 0};

TEST(StorageModel, AcceptsWhatIsRight)
{
  EXPECT_EQ(wrong({{make}, {{{K::read, 0, 0, 10}, {K::readdir, 0, 0, 1}}, {{K::stat, 0, 0, 10}}}, {clean}}), "");
  EXPECT_EQ(wrong({{make}, {{open_to_write, {K::pwrite, 0, 0, 5, 10}, {K::pread, 0, 0, 15, 0}, close_it}}, {clean}}),
            "");
  EXPECT_EQ(wrong({{make}, {{{K::append, 0, 0, 5}, {K::read, 0, 0, 15}}}, {clean}}), "");
  EXPECT_EQ(wrong({{{{K::mkdir, 0, 0}, {K::mkdir, 1, 0}}}, {{{K::rmdir, 1, 0}, {K::rmdir, 0, 0}}}}), "");
}

TEST(StorageModel, RefusesWhatIsWrong)
{
  const struct {
    std::vector<std::vector<std::vector<Op>>> phases;
    const char* words;
  } cases[] = {
      {{{make}}, "left"},
      {{{make}, {clean}, {clean}}, "dataset is not there"},
      {{{make, {{K::stat, 0, 0}}}, {clean}}, "dataset is not there"},
      {{{make}, {{{K::stat, 0, 1}}}}, "object is not there"},
      {{{make}, {{{K::stat, 0, 0, 11}}}}, "has 10 bytes"},
      {{{make}, {{{K::read, 0, 0, 9}}}}, "has 10 bytes"},
      {{{make}, {{{K::create, 0, 0, 10}}}}, "there already"},
      {{{make}, {{{K::mkdir, 0, 0}}}}, "there already"},
      {{{make}, {{{K::readdir, 0, 0, 2}}}}, "holds 1 entries"},
      {{{make}, {{{K::readdir, 0, 0, 1}}, {{K::create, 0, 1, 1}}}}, "lists"},
      {{{make}, {{{K::create, 0, 1, 1}}, {{K::create, 0, 1, 1}}}}, "makes too"},
      {{{make}, {{{K::unlink, 0, 0}}, {{K::unlink, 0, 0}}}}, "both remove object"},
      {{{make}, {{{K::unlink, 0, 0}}, {{K::read, 0, 0, 10}}}}, "which rank 1 uses"},
      {{{make}, {{{K::unlink, 0, 0}}}, {{{K::rmdir, 0, 0}}, {{K::rmdir, 0, 0}}}}, "both remove dataset"},
      {{{make}, {{{K::rmdir, 0, 0}}}}, "still holds 1"},
      {{{{{K::mkdir, 1, 0}}}}, "parent"},
      {{{{{K::mkdir, 0, 0}}, {{K::mkdir, 1, 0}}}}, "parent"},
      {{{make}, {{{K::pread, 0, 0, 1, 0}}}}, "not open"},
      {{{make}, {{open_to_read, {K::pwrite, 0, 0, 1, 0}}}}, "reading only"},
      {{{make}, {{open_to_read, {K::pread, 0, 0, 4, 7}}}}, "bytes 7 to 11"},
      {{{make}, {{open_to_read, strided({K::pread, 0, 0, 2, 0}, 3, 5)}}}, "bytes 10 to 12"},
      {{{make}, {{open_to_read, strided({K::pread, 0, 0, 5, 0}, 2, 4)}}}, "overlap"},
      {{{make}, {{open_to_write, {K::pwrite, 0, 0, 9, 10}, close_it}, {open_to_read, {K::pread, 0, 0, 9, 10}}}},
       "bytes 10 to 19"},
      {{{make}, {{open_to_read, flagged({K::pread, 0, 0, 1, 0}, collective)}}}, "opened together"},
      {{{make}, {{flagged({K::open, 0, 0}, shared), close_it}}}, "shared when the open was"},
      {{{make}, {{open_to_read, open_to_read}}}, "open already"},
      {{{make}, {{{K::open, 0, 1}}}}, "not to be made"},
      {{{make}, {{open_to_read}}, {clean}}, "still open"},
      {{{make}, {{open_to_read}, {{K::unlink, 0, 0}}}, {{{K::rmdir, 0, 0}}}}, "which rank 0 uses"},
      {{{{{K::think, 0, 0, 0}}}}, "think"},
  };
  for (const auto& [phases, words] : cases)
    EXPECT_NE(wrong(phases).find(words), std::string::npos) << "'" << wrong(phases) << "' lacks '" << words << "'";
}

} // namespace
} // namespace iocast
