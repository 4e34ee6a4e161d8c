// SPDX-License-Identifier: Apache-2.0
#include "selftest/answers.hpp"

#include <gtest/gtest.h>

namespace iocast {
namespace {

TEST(Answers, AtTheEndAllThatAreDueAreGivenAndNoneComesLater)
{
  int given = 0;
  Answers answers;
  for (int i = 0; i < 3; ++i)
    answers.at(now_seconds() + 100, [&] { ++given; });
  answers.end(); // what they go through may now be destroyed
  EXPECT_EQ(given, 3);
  answers.end();
  EXPECT_EQ(given, 3);
}

} // namespace
} // namespace iocast
