// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <vector>

namespace iocast {

/// The files of a source tree, by their numbers: what they are, how large, and what compiling them reads. Of a tree of
/// up to a million files their sizes are kept, since between two calls of a benchmark each nanosecond counts; of a
/// larger one nothing is kept of each file.
///
/// Of ten files in a row four are sources and three are headers (Linux 6.1: 41 % and 30 %). Compiling 584 files of
/// Linux 6.1 (x86
/// defconfig: kernel, fs, net/ipv4) read 615 headers each on average; 79 % of these reads were for the 500 headers that
/// almost all have in common. An object was 1.22 times as large as its source. Here each source reads `headers` of
/// them, of which four fifths are the same for all, and the others spread over all headers; an object has five quarters
/// of its source's bytes.
class SourceFiles {
public:
  /// Lognormal. Linux 6.1: 3874 bytes and 1.62.
  struct Sizes {
    double median; ///< bytes
    double sigma;  ///< standard deviation of the natural logarithm
  };

  SourceFiles() = default;
  /// @param compiled how many of the sources are compiled: they are chosen evenly over the tree
  /// @throws InputError when there are not so many
  SourceFiles(uint64_t files, uint64_t compiled, uint64_t headers, const Sizes& sizes, uint64_t seed);

  /// Bytes of a file; from number `files` on, of the object of source 0, 1, ...
  uint64_t size_of(uint64_t file) const;
  /// The file that is the source of `unit`, below `compiled`.
  uint64_t source_of(uint64_t unit) const;
  /// The file that is the header which `unit` reads at place `j`, below headers_each(); none twice, the common ones
  /// first.
  uint64_t header_of(uint64_t unit, uint32_t j) const;
  /// Fewer than requested, in a tree that has fewer.
  uint32_t headers_each() const { return headers_each_; }
  uint32_t common_headers() const { return common_; }

private:
  uint64_t files_        = 0;
  uint64_t compiled_     = 0;
  uint64_t sources_      = 0; ///< files that are one
  uint64_t headers_      = 0;
  uint32_t headers_each_ = 0;
  uint32_t common_       = 0;
  uint64_t step_         = 1; ///< from one header to the next common one
  uint64_t seed_         = 0;
  uint64_t drawn_size(uint64_t file) const;

  std::array<uint64_t, 4096> sizes_{}; ///< at equally likely quantiles
  std::vector<uint32_t> known_;        ///< of each file, or empty
};

} // namespace iocast
