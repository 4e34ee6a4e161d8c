// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "workload/application/scope.hpp"
#include "workload/permutation.hpp"
#include "workload/random.hpp"
#include "workload/zipf.hpp"

#include <optional>

namespace iocast {

/// One request: `count` blocks of `size` bytes, their starts `stride` apart.
struct Place {
  uint64_t offset = 0;
  uint64_t size   = 0;
  uint64_t stride = 0;
  uint32_t count  = 1;
};

/// How the processes that share a file go over it: the spatial side of an access. Requests are numbered 0 ...
/// requests-1 in each process and pass, processes 0 ... G-1 in the group of a file. B is the size of a request, n their
/// number.
///
///   sequential      all from the start: request k at kB
///   segmented       each has a stretch of its own, nB long; neighbours may share `overlap` bytes
///   strided         in turn: k in a stripe of G blocks, or of G runs of `in_a_row` blocks, stripes `stride` apart
///   nested-strided  processes in a grid of rows and columns; stripe k has a part for each row, a part is `inner`
///   rounds of one
///                   block for each column: a request is the vector of a process's `inner` blocks
///   random-strided  in turn like strided, but the border between two neighbours in a stripe is moved by up to B-1
///   bytes, drawn
///                   anew for each: sizes vary between 1 and 2B-1 bytes with mean B, and still nothing is left out or
///                   touched twice
///   tiled           a two-dimensional array of elements, row by row in the file; each process has a tile, of which a
///   request is
///                   `rows` rows; tiles may overlap by a number of elements
///   mesh            records (vertices) of B bytes belong to processes without any order: a random permutation of all
///   random          any of the file's `blocks` blocks, drawn with replacement; with `zipf` by popularity, of which all
///   processes have the same opinion
///
/// The first seven touch every byte of the file once, unless an overlap, a larger stride or sequential sharing is
/// requested.
class Layout {
public:
  /// What depends on the number of processes that share the file.
  struct Shape {
    uint32_t processes = 1;
    uint32_t columns   = 1;
    uint32_t rows      = 1;
    uint64_t stride    = 0;    ///< of a stripe, or of a row of the tiled array, bytes
    uint64_t begin     = 0;    ///< of the first block that may be touched
    uint64_t end       = 0;    ///< of the last one
    bool whole         = true; ///< all together touch every byte between
    bool disjoint      = true; ///< no two processes touch the same byte
    uint64_t blocks    = 0;
    Permutation scatter{};
    std::optional<Zipf> popularity{}; ///< of the blocks in the order of `scatter`; without it all are alike
  };

  static const std::vector<std::string>& keys();
  /// Reads the keys of an access. @throws InputError
  Layout(const Scope& scope, const YamlNode& access);
  Shape shape(uint32_t processes) const;

  uint64_t requests() const { return requests_; }
  /// Of one request on average, over all processes and requests exactly.
  uint64_t request_bytes() const { return kind_ == Kind::tiled ? rows_ * size_ : inner_ * size_; }
  /// The most that one request may have.
  uint64_t largest_request(const Shape& shape) const
  {
    return kind_ == Kind::random_strided && shape.processes > 1 ? 2 * size_ - 1 : request_bytes();
  }
  /// Bytes from the start of any request of a process to that of its next; 0 when they differ.
  uint64_t step(const Shape& shape) const
  {
    if (kind_ == Kind::sequential || kind_ == Kind::segmented)
      return size_;
    return kind_ == Kind::strided && in_a_row_ == 1 ? shape.stride : 0;
  }
  bool draws_sizes() const { return kind_ == Kind::random_strided; }
  bool draws_places() const { return kind_ == Kind::random; }

  /// Request `k` of process `q`. `seed` belongs to the file, `drawn` numbers the requests over all passes.
  Place place(const Shape& shape, uint32_t q, uint64_t k, uint64_t seed, uint64_t drawn) const;

  bool operator==(const Layout& other) const;

private:
  enum class Kind : uint8_t { sequential, segmented, strided, nested_strided, random_strided, tiled, mesh, random };

  uint64_t moved_border(const Shape& shape, uint32_t q, uint64_t k, uint64_t seed) const;

  YamlNode where_;
  Kind kind_          = Kind::sequential;
  uint64_t size_      = 0; ///< B; of a row of a tile
  uint64_t requests_  = 0;
  uint64_t offset_    = 0;
  uint64_t overlap_   = 0;
  uint64_t in_a_row_  = 1;
  uint64_t stride_    = 0; ///< 0: as small as may be
  uint64_t inner_     = 1;
  uint64_t blocks_    = 0; ///< 0: as many as the processes have requests
  double zipf_        = 0; ///< exponent of their popularity
  uint32_t grid_rows_ = 0; ///< 0: as square as may be
  uint64_t element_   = 0;
  uint64_t width_     = 0;
  uint64_t height_    = 0;
  uint64_t overlap_x_ = 0;
  uint64_t overlap_y_ = 0;
  uint64_t rows_      = 1; ///< of a tile, in one request
};

/// A whole number in [0, n), uniformly distributed, from two random words.
inline uint64_t below(uint64_t n, uint32_t high, uint32_t low)
{
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{uint64_t{high} << 32 | low} * n) >> 64);
}

inline uint64_t Layout::moved_border(const Shape& shape, uint32_t q, uint64_t k, uint64_t seed) const
{
  if (q == 0 || q == shape.processes)
    return 0;
  const auto words = random_words(seed, Stream::application, q, k | uint64_t{1} << 63);
  return below(size_, words[0], words[1]);
}

inline Place Layout::place(const Shape& shape, uint32_t q, uint64_t k, uint64_t seed, uint64_t drawn) const
{
  const uint64_t size = size_;
  switch (kind_) {
    case Kind::sequential:
      return {offset_ + k * size, size};
    case Kind::segmented:
      return {offset_ + q * (requests_ * size - overlap_) + k * size, size};
    case Kind::strided:
      if (in_a_row_ == 1)
        return {offset_ + k * shape.stride + q * size, size};
      return {offset_ + k / in_a_row_ * shape.stride + (q * in_a_row_ + k % in_a_row_) * size, size};
    case Kind::nested_strided: {
      const uint64_t part = (k * shape.rows + q / shape.columns) * inner_ * shape.columns;
      return {offset_ + (part + q % shape.columns) * size, size, inner_ > 1 ? shape.columns * size : 0,
              static_cast<uint32_t>(inner_)};
    }
    case Kind::random_strided: {
      const uint64_t from = moved_border(shape, q, k, seed);
      return {offset_ + (k * shape.processes + q) * size + from, size + moved_border(shape, q + 1, k, seed) - from};
    }
    case Kind::tiled: {
      const uint64_t x = q % shape.columns * (width_ - overlap_x_);
      const uint64_t y = q / shape.columns * (height_ - overlap_y_) + k * rows_;
      return {offset_ + y * shape.stride + x * element_, size, rows_ > 1 ? shape.stride : 0,
              static_cast<uint32_t>(rows_)};
    }
    case Kind::mesh: {
      const auto key = random_words(seed, Stream::application, UINT32_MAX, 0);
      return {offset_ + shape.scatter(q * requests_ + k, key) * size, size};
    }
    case Kind::random: {
      auto words = [&](uint64_t i) {
        return random_words(seed, Stream::application, q, drawn | uint64_t{1} << 62 | i << 54);
      };
      if (!shape.popularity) {
        const auto drawn_words = words(0);
        return {offset_ + below(shape.blocks, drawn_words[0], drawn_words[1]) * size, size};
      }
      const uint64_t rank = (*shape.popularity)([&](uint32_t i) { return to_uniform(words(i), 0); });
      const auto key      = random_words(seed, Stream::application, UINT32_MAX, 0);
      return {offset_ + shape.scatter(rank, key) * size, size};
    }
  }
  return {};
}

} // namespace iocast
