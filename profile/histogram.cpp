// SPDX-License-Identifier: Apache-2.0
#include "profile/histogram.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <zlib.h>

namespace iocast {

double Histogram::middle_ns(size_t index)
{
  const auto at  = static_cast<int64_t>(index);
  int64_t bucket = (at >> (sub_bucket_bits - 1)) - 1;
  int64_t sub    = (at & (half_count - 1)) + half_count;
  if (bucket < 0) {
    sub -= half_count;
    bucket = 0;
  }
  const auto width = static_cast<double>(int64_t{1} << bucket);
  return static_cast<double>(sub << bucket) + (width - 1) / 2;
}

double Histogram::quantile_ns(double q) const
{
  if (total_ == 0)
    return 0;
  const auto rank          = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(q * static_cast<double>(total_))));
  uint64_t seen            = 0;
  const auto [first, last] = used();
  for (size_t i = first; i < last; ++i) {
    seen += count_at(i);
    if (seen >= rank)
      return std::clamp(middle_ns(i), static_cast<double>(min_ns_), static_cast<double>(max_ns_));
  }
  return static_cast<double>(max_ns_);
}

std::pair<size_t, size_t> Histogram::used() const
{
  return total_ == 0 ? std::pair<size_t, size_t>{0, 0} : std::pair{bucket_of(min_ns_), bucket_of(max_ns_) + 1};
}

void Histogram::cover(size_t index)
{
  // Whole halves of buckets: a distribution has values in a few of them.
  const size_t from = index / half_count * half_count;
  const size_t to   = from + half_count;
  if (counts_.empty()) {
    first_ = from;
    counts_.resize(half_count);
  } else if (from < first_) {
    counts_.insert(counts_.begin(), first_ - from, 0);
    first_ = from;
  } else if (to > first_ + counts_.size())
    counts_.resize(to - first_);
}

std::span<uint64_t> Histogram::counts(size_t first, size_t last)
{
  if (first == last)
    return {};
  cover(first);
  cover(last - 1);
  return std::span(counts_).subspan(first - first_, last - first);
}

void Histogram::set_totals(uint64_t total, double sum_ns, int64_t min_ns, int64_t max_ns, uint64_t beyond)
{
  beyond_ = beyond;
  total_  = total;
  sum_ns_ = sum_ns;
  min_ns_ = min_ns;
  max_ns_ = max_ns;
}

void Histogram::merge(const Histogram& other)
{
  const auto [first, last] = other.used();
  for (size_t i = first; auto& count : counts(first, last))
    count += other.count_at(i++);
  set_totals(total_ + other.total_, sum_ns_ + other.sum_ns_, std::min(min_ns_, other.min_ns_),
             std::max(max_ns_, other.max_ns_), beyond_ + other.beyond_);
}

namespace {
void put_big_endian(std::string& out, uint64_t value, int bytes)
{
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(value >> shift & 0xff));
}

/// ZigZag LEB128-64b9B: seven bits a byte, the ninth byte whole.
void put_zigzag(std::string& out, int64_t value)
{
  auto rest = static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
  for (int byte = 0; byte < 8; ++byte) {
    if (rest < 0x80) {
      out.push_back(static_cast<char>(rest));
      return;
    }
    out.push_back(static_cast<char>(rest & 0x7f | 0x80));
    rest >>= 7;
  }
  out.push_back(static_cast<char>(rest));
}

std::string base64(std::span<const unsigned char> data)
{
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < data.size(); i += 3) {
    const size_t left   = std::min<size_t>(3, data.size() - i);
    const uint32_t word = data[i] << 16 | (left > 1 ? data[i + 1] : 0) << 8 | (left > 2 ? data[i + 2] : 0);
    for (size_t digit = 0; digit < 4; ++digit)
      out.push_back(digit <= left ? digits[word >> (18 - 6 * digit) & 63] : '=');
  }
  return out;
}
} // namespace

std::string Histogram::encode() const
{
  constexpr uint32_t v2_cookie            = 0x1c849303 | 0x10;
  constexpr uint32_t v2_compressed_cookie = 0x1c849304 | 0x10;
  std::string payload;
  const size_t end = used().second;
  for (size_t i = 0; i < end;) {
    if (count_at(i) != 0) {
      put_zigzag(payload, static_cast<int64_t>(count_at(i++)));
      continue;
    }
    const size_t first = i;
    while (i < end && count_at(i) == 0)
      ++i;
    put_zigzag(payload, -static_cast<int64_t>(i - first));
  }
  std::string plain;
  put_big_endian(plain, v2_cookie, 4);
  put_big_endian(plain, payload.size(), 4);
  put_big_endian(plain, 0, 4); // normalising index offset
  put_big_endian(plain, significant_digits, 4);
  put_big_endian(plain, 1, 8); // lowest discernible value
  put_big_endian(plain, highest_ns, 8);
  put_big_endian(plain, std::bit_cast<uint64_t>(1.0), 8); // integer to double ratio
  plain += payload;

  uLongf length = compressBound(plain.size());
  std::vector<Bytef> packed(length);
  if (compress(packed.data(), &length, reinterpret_cast<const Bytef*>(plain.data()), plain.size()) != Z_OK)
    throw RunError("A latency histogram can't be compressed: zlib is out of memory.");
  std::string out;
  put_big_endian(out, v2_compressed_cookie, 4);
  put_big_endian(out, length, 4);
  out.append(reinterpret_cast<const char*>(packed.data()), length);
  return base64({reinterpret_cast<const unsigned char*>(out.data()), out.size()});
}

} // namespace iocast
