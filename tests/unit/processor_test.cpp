// SPDX-License-Identifier: Apache-2.0
// The processor's model by what kernels of several architectures print in /proc/cpuinfo.
#include "real/processor.hpp"

#include <gtest/gtest.h>
#include <sstream>

namespace iocast {

static std::string model_of(const std::string& text)
{
  std::istringstream in(text);
  return processor_model(in);
}

TEST(Processor, X86HasAModelName)
{
  EXPECT_EQ(model_of("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
                     "model name\t: Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz\ncpu cores\t: 20\n"),
            "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz");
}

TEST(Processor, PowerHasACpu)
{
  EXPECT_EQ(model_of("processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800.000000MHz\n"),
            "POWER9, altivec supported");
}

TEST(Processor, Aarch64HasNumbersForEachKindOfCore)
{
  const std::string core = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"
                           "CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\n";
  EXPECT_EQ(model_of(core + core), "CPU implementer 0x41, part 0xd0c");
  EXPECT_EQ(model_of(core + "CPU implementer\t: 0x41\nCPU part\t: 0xd05\n" + core),
            "CPU implementer 0x41, part 0xd0c; CPU implementer 0x41, part 0xd05");
}

TEST(Processor, WhatIsNotThereIsUnknown)
{
  EXPECT_EQ(model_of(""), "unknown");
  EXPECT_EQ(model_of("processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc\n"), "unknown");
  EXPECT_EQ(model_of("model name\t:\n"), "unknown");
}

} // namespace iocast
