// SPDX-License-Identifier: Apache-2.0
#include "real/content.hpp"

#include "workload/random.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace iocast {

namespace {
constexpr uint64_t word_bytes = sizeof(uint64_t);
}

/// Word by word: the key says which object, the number of the word is the counter.
void Content::fill(char* to, uint64_t dataset, uint64_t object, uint64_t offset, uint64_t bytes) const
{
  const uint64_t key = mix(mix(mix(seed_) ^ dataset) ^ object);
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t at     = offset + done;
    const uint64_t word   = mix(key + at / word_bytes);
    const uint64_t within = at % word_bytes;
    const uint64_t length = std::min(word_bytes - within, bytes - done);
    std::memcpy(to + done, reinterpret_cast<const char*>(&word) + within, length);
    done += length;
  }
}

void Content::fill(char* to, const Op& op) const
{
  for (uint32_t block = 0; block < op.count; ++block)
    fill(to + block * op.size, op.dataset, op.object, op.offset + block * op.stride, op.size);
}

std::optional<uint64_t> Content::first_wrong(const char* found, const Op& op) const
{
  std::array<char, 4096> wanted;
  for (uint32_t block = 0; block < op.count; ++block)
    for (uint64_t done = 0; done < op.size;) {
      const uint64_t length = std::min<uint64_t>(wanted.size(), op.size - done);
      const uint64_t at     = op.offset + block * op.stride + done;
      fill(wanted.data(), op.dataset, op.object, at, length);
      const char* here = found + block * op.size + done;
      if (std::memcmp(wanted.data(), here, length) != 0)
        return at +
               static_cast<uint64_t>(std::mismatch(wanted.data(), wanted.data() + length, here).first - wanted.data());
      done += length;
    }
  return std::nullopt;
}

} // namespace iocast
