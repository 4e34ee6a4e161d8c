// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace iocast {

/// A tree of directories with files in them: numbers only, about 20 bytes a directory, for any number of copies and
/// users.
///
/// Directories are numbered as `ls -R` meets them, each before those in it, so that 0, 1, 2, ... is an order to make
/// them in and the reverse one to remove them in. Files are numbered directory by directory.
class Tree {
public:
  /// Every directory down to `depth` levels below the root has `fan_out` directories, except on the lowest level, and
  /// each has `files_in_each` files.
  static Tree regular(uint32_t depth, uint32_t fan_out, uint64_t files_in_each);
  /// A tree as users grow them. Each new directory is put into one of those that are there, with a probability
  /// proportional to 1 + the number of directories in it; the files in a directory follow an inverse polynomial of
  /// degree 3 and are `files` in all. The form of both is from Agrawal, Bolosky, Douceur & Lorch, "A five-year study of
  /// file-system metadata", FAST 2007, section 5 (with 2 + ... and degree 2, for Windows PCs). The constants were
  /// chosen for Linux 6.1 (5096 directories, 78,579 files): 79 % of its directories have none in them, here 67 % (60 %
  /// with 2 + ...); their mean depth is 3.8, here 4 to 5 (5 to 7); the quartiles of files in a directory are 3, 6 and
  /// 14, the 90th, 99th and 99.9th percentiles 32, 156 and 484, here 2, 7, 16, 35, 140 and 430.
  static Tree grown(uint32_t directories, uint64_t files, uint64_t seed);

  uint32_t directories() const { return static_cast<uint32_t>(nodes_.size() - 1); }
  uint64_t files() const { return nodes_.back().first_file; }

  /// Not for the root, which is directory 0.
  uint32_t parent(uint32_t directory) const { return nodes_[directory].parent; }
  /// The first directory after `directory` that isn't below it: those in d are d + 1, after(d + 1), ... up to after(d).
  uint32_t after(uint32_t directory) const { return nodes_[directory].after; }
  /// How many directories are in it.
  uint32_t directories_in(uint32_t directory) const;
  uint64_t first_file(uint32_t directory) const { return nodes_[directory].first_file; }
  uint64_t files_in(uint32_t directory) const { return first_file(directory + 1) - first_file(directory); }
  uint32_t directory_of(uint64_t file) const;

  /// Writes "/3/17/18", the way from the root down by numbers (nothing for the root), and returns the end.
  char* name(uint32_t directory, char* out) const;
  /// Bytes of the longest of these.
  uint64_t longest_name() const;

private:
  struct Node {
    uint32_t parent     = 0;
    uint32_t after      = 0;
    uint64_t first_file = 0;
  };
  /// Numbers directories whose parents come before them in `parents` (by places in it; that of the first is ignored),
  /// so that nodes_ has one more than them.
  explicit Tree(const std::vector<uint32_t>& parents);
  /// When first_file is known for all: makes directory_of() quick.
  void index_files();
  void keep_names();

  std::vector<Node> nodes_;
  std::vector<uint32_t> cells_; ///< the directory of every 2^shift_-th file
  uint32_t shift_ = 0;
  std::string names_;             ///< of all directories, one after the other; empty when they are too long to keep
  std::vector<uint32_t> name_at_; ///< where each begins, and the end
};

} // namespace iocast
