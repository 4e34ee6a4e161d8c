// SPDX-License-Identifier: Apache-2.0
#include "real/content.hpp"

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace iocast {
namespace {

TEST(Content, DoesNotDependOnHowItIsCut)
{
  const Content content(7);
  std::string whole(10'000, '\0');
  content.fill(whole.data(), 3, 4, 0, whole.size());
  for (const uint64_t offset : {0, 1, 7, 8, 13, 4096})
    for (const uint64_t bytes : {0, 1, 7, 8, 9, 1000}) {
      std::string part(bytes, '\0');
      content.fill(part.data(), 3, 4, offset, bytes);
      EXPECT_EQ(part, whole.substr(offset, bytes)) << offset << " " << bytes;
    }
}

TEST(Content, DiffersBySeedDatasetAndObject)
{
  std::set<std::string> all;
  for (const uint64_t seed : {0, 1})
    for (const uint64_t dataset : {0, 1, 2})
      for (const uint64_t object : {0, 1, 2}) {
        std::string bytes(64, '\0');
        Content(seed).fill(bytes.data(), dataset, object, 0, bytes.size());
        all.insert(bytes);
      }
  EXPECT_EQ(all.size(), 18U);
}

TEST(Content, FindsTheFirstWrongByteOfBlocks)
{
  const Content content(1);
  Op op(OpKind::pread, 1, 2, 5000, 300);
  op.count  = 3;
  op.stride = 9000;
  std::string bytes(op.bytes(), '\0');
  content.fill(bytes.data(), op);
  EXPECT_FALSE(content.first_wrong(bytes.data(), op));
  for (const uint64_t at : {14'999, 10'001, 10'000, 9'999, 4'999, 17, 0}) { // ever earlier
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
    EXPECT_EQ(content.first_wrong(bytes.data(), op), 300 + at / 5000 * 9000 + at % 5000);
  }
}

} // namespace
} // namespace iocast
