// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Random123/philox.h>
#include <array>
#include <cstdint>

namespace iocast {

/// Who draws. Streams keep draws for different purposes apart, so that adding one changes no other.
enum class Stream : uint32_t { service = 0, node_speed = 1, stall = 2, background = 3, content = 4, wake = 5 };

/// Four independent 32-bit words that depend on nothing but their arguments: Philox4x32-10 of Salmon et al., "Parallel random
/// numbers: as easy as 1, 2, 3", SC11. Real and simulated runs draw the same.
inline std::array<uint32_t, 4> random_words(uint64_t seed, Stream stream, uint32_t who, uint64_t counter)
{
  const r123::Philox4x32::ctr_type at{{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), who,
                                       static_cast<uint32_t>(stream)}};
  const r123::Philox4x32::key_type key{{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}};
  const auto drawn = r123::Philox4x32{}(at, key);
  return {drawn[0], drawn[1], drawn[2], drawn[3]};
}

/// The middle of the word's interval in (0, 1): never 0, never 1, as an inverse distribution function needs it.
inline double to_uniform(uint32_t word)
{
  return (word + 0.5) * 0x1p-32;
}

} // namespace iocast
