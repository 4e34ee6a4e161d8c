// SPDX-License-Identifier: Apache-2.0
#include "workload/tree.hpp"

#include "workload/random.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace iocast {

namespace {
enum Draw : uint32_t { parent_of_directory, files_of_directory }; ///< of Stream::tree
constexpr uint64_t most_cells = uint64_t{1} << 20; ///< of a smaller tree the directory of each file is known
constexpr size_t most_kept    = size_t{1} << 20;   ///< bytes of names

char* write_number(uint32_t number, char* out)
{
  return std::to_chars(out, out + 10, number).ptr;
}
} // namespace

Tree::Tree(const std::vector<uint32_t>& parents) : nodes_(parents.size() + 1)
{
  std::vector<uint32_t> within(parents.size(), 1); // directories of the subtree
  for (size_t i = parents.size() - 1; i > 0; --i)
    within[parents[i]] += within[i];
  std::vector<uint32_t> number(parents.size(), 0);
  std::vector<uint32_t> next(parents.size(), 1); // number of the next directory in it
  for (size_t i = 0; i < parents.size(); ++i) {
    if (i > 0) {
      number[i] = next[parents[i]];
      next[parents[i]] += within[i];
      next[i]                  = number[i] + 1;
      nodes_[number[i]].parent = number[parents[i]];
    }
    nodes_[number[i]].after = number[i] + within[i];
  }
  keep_names();
}

void Tree::keep_names()
{
  name_at_.assign(1, 0);
  for (uint32_t directory = 0; directory < directories(); ++directory) {
    if (directory > 0) { // its parent comes before it
      char digits[10];
      const uint32_t above = parent(directory);
      names_.append(names_, name_at_[above], name_at_[above + 1] - name_at_[above])
          .append(1, '/')
          .append(digits, write_number(directory, digits));
    }
    if (names_.size() > most_kept) {
      names_.clear();
      name_at_.clear();
      return;
    }
    name_at_.push_back(static_cast<uint32_t>(names_.size()));
  }
}

Tree Tree::regular(uint32_t depth, uint32_t fan_out, uint64_t files_in_each)
{
  uint64_t all   = 1;
  uint64_t level = 1;
  for (uint32_t i = 0; i < depth; ++i)
    all += level *= fan_out;
  std::vector<uint32_t> parents(all);
  for (uint64_t i = 1; i < all; ++i)
    parents[i] = static_cast<uint32_t>((i - 1) / fan_out);
  Tree tree(parents);
  for (uint64_t i = 0; i <= all; ++i)
    tree.nodes_[i].first_file = i * files_in_each;
  tree.index_files();
  return tree;
}

Tree Tree::grown(uint32_t directories, uint64_t files, uint64_t seed)
{
  std::vector<uint32_t> parents(directories);
  for (uint32_t i = 1; i < directories; ++i) {
    // i directories and the i - 1 places that they take: one chance each, for the directory or for the owner of the
    // place.
    const uint64_t word   = random_words(seed, Stream::tree, parent_of_directory, i)[0];
    const uint64_t chance = word * (2 * uint64_t{i} - 1) >> 32;
    parents[i]            = chance < i ? static_cast<uint32_t>(chance) : parents[chance - i + 1];
  }
  Tree tree(parents);
  // The inverse of 1 - 1/(1 + x)^2; what one directory has is its share of `files`.
  std::vector<double> up_to(directories + 1, 0);
  for (uint32_t i = 0; i < directories; ++i)
    up_to[i + 1] = up_to[i] + 1 / std::sqrt(to_uniform(random_words(seed, Stream::tree, files_of_directory, i)[0])) - 1;
  for (uint32_t i = 1; i < directories; ++i)
    tree.nodes_[i].first_file = static_cast<uint64_t>(up_to[i] / up_to[directories] * static_cast<double>(files));
  tree.nodes_[directories].first_file = files;
  tree.index_files();
  return tree;
}

void Tree::index_files()
{
  while (files() >> shift_ > std::max<uint64_t>(directories(), most_cells))
    ++shift_;
  uint32_t directory = 0;
  for (uint64_t file = 0; file < files(); file += uint64_t{1} << shift_) {
    while (first_file(directory + 1) <= file)
      ++directory;
    cells_.push_back(directory);
  }
}

uint32_t Tree::directories_in(uint32_t directory) const
{
  uint32_t count = 0;
  for (uint32_t inside = directory + 1; inside < after(directory); inside = after(inside))
    ++count;
  return count;
}

uint32_t Tree::directory_of(uint64_t file) const
{
  const uint64_t cell = file >> shift_;
  uint32_t from       = cells_[cell];
  if (shift_ == 0)
    return from;
  uint32_t to = cell + 1 < cells_.size() ? cells_[cell + 1] : directories() - 1;
  while (from < to) { // the last one that begins at the file or before
    const uint32_t middle = to - (to - from) / 2;
    if (first_file(middle) <= file)
      from = middle;
    else
      to = middle - 1;
  }
  return from;
}

char* Tree::name(uint32_t directory, char* out) const
{
  if (!name_at_.empty()) [[likely]] {
    const uint32_t begin = name_at_[directory];
    return std::copy(names_.data() + begin, names_.data() + name_at_[directory + 1], out);
  }
  std::array<uint32_t, 128> path;
  size_t length = 0;
  for (; directory > 0 && length < path.size(); directory = parent(directory))
    path[length++] = directory;
  while (length > 0) {
    *out++ = '/';
    out    = write_number(path[--length], out);
  }
  return out;
}

uint64_t Tree::longest_name() const
{
  std::vector<uint64_t> lengths(directories(), 0);
  for (uint32_t i = 1; i < directories(); ++i) {
    char digits[10];
    lengths[i] = lengths[parent(i)] + 1 + static_cast<uint64_t>(write_number(i, digits) - digits);
  }
  return *std::max_element(lengths.begin(), lengths.end());
}

} // namespace iocast
