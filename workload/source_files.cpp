// SPDX-License-Identifier: Apache-2.0
#include "workload/source_files.hpp"

#include "input/error.hpp"
#include "input/normal.hpp"
#include "input/portable.hpp"
#include "workload/random.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace iocast {

namespace {
enum FileDraw : uint32_t { size = 2, header = 3 }; ///< of Stream::tree; the others are Tree's
constexpr uint64_t most_known = uint64_t{1} << 20;
} // namespace

SourceFiles::SourceFiles(uint64_t files, uint64_t compiled, uint64_t headers, const Sizes& sizes, uint64_t seed)
    : files_(files)
    , compiled_(compiled)
    , sources_(files / 10 * 4 + std::min<uint64_t>(files % 10, 4))
    , headers_(files / 10 * 3 + std::clamp<uint64_t>(files % 10, 4, 7) - 4)
    , headers_each_(static_cast<uint32_t>(std::min(headers, headers_)))
    , common_(headers_each_ - headers_each_ / 5)
    , step_(std::max<uint64_t>(1, headers_ * 618 / 1000)) // about the golden section spreads them well
    , seed_(seed)
{
  if (compiled > sources_)
    throw InputError(
        fmt::format("{} sources can't be compiled: of {} files {} are sources. Set sources to at most that.", compiled,
                    files, sources_));
  while (headers_ > 0 && std::gcd(step_, headers_) != 1) // else it would come back too early
    ++step_;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    const double u      = (static_cast<double>(i) + 0.5) / static_cast<double>(sizes_.size());
    const double normal = normal_quantile(u);
    sizes_[i]           = static_cast<uint64_t>(std::llround(sizes.median * portable::exp(sizes.sigma * normal)));
  }
  if (files <= most_known && sizes_.back() <= UINT32_MAX)
    for (uint64_t file = 0; file < files; ++file)
      known_.push_back(static_cast<uint32_t>(drawn_size(file)));
}

uint64_t SourceFiles::size_of(uint64_t file) const
{
  if (file >= files_)
    return size_of(source_of(file - files_)) * 5 / 4;
  return known_.empty() ? drawn_size(file) : known_[file];
}

uint64_t SourceFiles::drawn_size(uint64_t file) const
{
  return sizes_[random_words(seed_, Stream::tree, size, file)[0] >> 20];
}

uint64_t SourceFiles::source_of(uint64_t unit) const
{
  const uint64_t i = unit * sources_ / compiled_;
  return i / 4 * 10 + i % 4;
}

uint64_t SourceFiles::header_of(uint64_t unit, uint32_t j) const
{
  uint64_t popularity = j;
  if (j >= common_) { // one out of its own share of all the others, so that none is read twice
    const uint64_t others = headers_ - common_;
    const uint64_t shares = headers_each_ - common_;
    const uint64_t begin  = others * (j - common_) / shares;
    const uint64_t end    = others * (j - common_ + 1) / shares;
    const uint64_t word   = random_words(seed_, Stream::tree, header, unit << 32 | j)[0];
    popularity            = common_ + begin + (word * (end - begin) >> 32);
  }
  const uint64_t i = popularity * step_ % headers_;
  return i / 3 * 10 + 4 + i % 3;
}

} // namespace iocast
