// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace iocast {

/// A random order of 0 to n-1 that needs no memory: a Feistel network over two digits, followed until the result is
/// below n (Black & Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002, methods 2 and 3). Orders of
/// different keys, as random_words() gives them, have nothing to do with each other.
class Permutation {
public:
  using Key = std::array<uint32_t, 4>;

  /// @param n from 1 to 2^62
  explicit Permutation(uint64_t n = 1) : n_(n)
  {
    low_ = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
    while (low_ * low_ < n)
      ++low_;
    high_ = (n + low_ - 1) / low_; // so that at most one of `low_` starts has to be followed further
    // Two that share a digit keep their distance in the other one through two rounds in 1 of sqrt(n) cases: so few
    // rounds that this happens all the way in 1 of 65,000.
    while (rounds_ * static_cast<uint64_t>(std::bit_width(n)) < 64)
      rounds_ += 2;
  }

  /// What comes at place `i`, below n.
  uint64_t operator()(uint64_t i, const Key& key) const
  {
    do {
      uint64_t low  = i % low_;
      uint64_t high = i / low_;
      for (uint64_t round = 0; round < rounds_; round += 2) {
        low  = sum(low, mixed(key, round, high), low_);
        high = sum(high, mixed(key, round + 1, low), high_);
      }
      i = high * low_ + low;
    } while (i >= n_);
    return i;
  }

private:
  /// 32 bits that depend on all of those given: the finaliser of MurmurHash3 (Appleby), many times faster than another
  /// draw.
  static uint64_t mixed(const Key& key, uint64_t round, uint64_t digit)
  {
    uint64_t word = (uint64_t{key[round % 4]} << 32 | key[(round + 1) % 4]) + round * 0x9e3779b97f4a7c15 + digit;
    word          = (word ^ word >> 33) * 0xff51afd7ed558ccd;
    word          = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53;
    return word >> 32;
  }
  /// digit + a number below `base` that the 32-bit word says, modulo `base`.
  static uint64_t sum(uint64_t digit, uint64_t word, uint64_t base)
  {
    const uint64_t result = digit + (word * base >> 32);
    return result < base ? result : result - base;
  }

  uint64_t n_;
  uint64_t low_    = 1; ///< values of the lower digit
  uint64_t high_   = 1; ///< values of the upper digit
  uint64_t rounds_ = 4;
};

} // namespace iocast
