// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Random123/philox.h>
#include <array>
#include <cstdint>

namespace iocast {

/// Who draws. Streams keep draws for different purposes apart, so that adding one changes no other.
enum class Stream : uint32_t {
  service     = 0,
  node_speed  = 1,
  stall       = 2,
  background  = 3,
  content     = 4,
  wake        = 5,
  order       = 6,
  tree        = 7,
  visitor     = 8,
  application = 10,
  hpcs        = 14,
  arrival     = 16,
  pool        = 17,
  drain       = 18,
  failure     = 19,
  training    = 20
};

/// Four independent 32-bit words that depend on nothing but their arguments: Philox4x32-10 of Salmon et al., "Parallel
/// random
/// numbers: as easy as 1, 2, 3", SC11. Real and simulated runs draw the same.
inline std::array<uint32_t, 4> random_words(uint64_t seed, Stream stream, uint32_t who, uint64_t counter)
{
  const r123::Philox4x32::ctr_type at{
      {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), who, static_cast<uint32_t>(stream)}};
  const r123::Philox4x32::key_type key{{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}};
  const auto drawn = r123::Philox4x32{}(at, key);
  return {drawn[0], drawn[1], drawn[2], drawn[3]};
}

/// SplitMix64's finaliser (Steele, Lea & Flood 2014): numbers that differ by little become numbers that have nothing in
/// common.
inline uint64_t mix(uint64_t x)
{
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return x ^ x >> 31;
}

/// The middle of the word's interval in (0, 1): never 0, never 1, as an inverse distribution function needs it.
inline double to_uniform(uint32_t word)
{
  return (word + 0.5) * 0x1p-32;
}

/// The same of two words, from words[first] and words[first + 1]: of 64 bits, as far as a double holds them.
inline double to_uniform(const std::array<uint32_t, 4>& words, size_t first)
{
  return (words[first] + to_uniform(words[first + 1])) * 0x1p-32;
}

/// A whole number from 0 to `bound` - 1, each as likely as 64 bits allow, from words[first] and words[first + 1].
inline uint64_t random_below(uint64_t bound, const std::array<uint32_t, 4>& words, size_t first)
{
  const uint64_t word = uint64_t{words[first + 1]} << 32 | words[first];
  return static_cast<uint64_t>(static_cast<unsigned __int128>(word) * bound >> 64);
}

} // namespace iocast
