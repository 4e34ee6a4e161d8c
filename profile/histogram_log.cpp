// SPDX-License-Identifier: Apache-2.0
//
// A histogram as a line of latency.hlog has it; here alone is zlib.
#include "profile/histogram.hpp"

#include "input/error.hpp"

#include <bit>
#include <span>
#include <zlib.h>

namespace iocast {

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
