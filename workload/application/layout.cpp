// SPDX-License-Identifier: Apache-2.0
#include "workload/application/layout.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace iocast {

namespace {
const std::vector<std::string>& kinds()
{
  static const std::vector<std::string> names{"sequential",     "segmented", "strided", "nested-strided",
                                              "random-strided", "tiled",     "mesh",    "random"};
  return names;
}

/// Keys that only some layouts understand.
const std::map<std::string, std::vector<std::string>>& particular_keys()
{
  static const std::map<std::string, std::vector<std::string>> keys{{"segmented", {"overlap"}},
                                                                    {"strided", {"in_a_row", "stride"}},
                                                                    {"nested-strided", {"inner", "grid_rows"}},
                                                                    {"tiled", {"tile", "grid_rows"}},
                                                                    {"random", {"blocks", "zipf"}}};
  return keys;
}

/// The largest divisor of n up to its square root.
uint32_t square_rows(uint32_t n)
{
  auto rows = static_cast<uint32_t>(std::sqrt(static_cast<double>(n)));
  while (n % rows != 0)
    --rows;
  return rows;
}
} // namespace

const std::vector<std::string>& Layout::keys()
{
  static const std::vector<std::string> names{"layout", "size",  "requests",  "offset", "overlap", "in_a_row",
                                              "stride", "inner", "grid_rows", "blocks", "zipf",    "tile"};
  return names;
}

Layout::Layout(const Scope& scope, const YamlNode& access) : where_(access)
{
  if (const auto layout = access.find("layout")) {
    kind_ = static_cast<Kind>(scope.choice(*layout, kinds()));
    // A layout that is chosen by a parameter may stand beside the keys of all; one that is fixed may not.
    if (layout->text().find('$') == std::string::npos)
      for (const auto& [name, keys] : particular_keys())
        for (const auto& key : keys) {
          const auto own = particular_keys().find(layout->text());
          if (access.has(key) && (own == particular_keys().end() ||
                                  std::find(own->second.begin(), own->second.end(), key) == own->second.end()))
            access[key].fail(fmt::format("a layout that is {} has no '{}'", layout->text(), key));
        }
  }
  auto whole = [&](const YamlNode& map, const char* key, Unit unit, uint64_t fallback, double low, double high = 9e15) {
    const auto found = map.find(key);
    return found ? scope.whole(*found, unit, low, high) : fallback;
  };
  offset_ = whole(access, "offset", Unit::bytes, 0, 0);
  if (kind_ == Kind::tiled || kind_ == Kind::nested_strided)
    grid_rows_ = static_cast<uint32_t>(whole(access, "grid_rows", Unit::count, 0, 0, 4e9));
  if (kind_ == Kind::tiled) {
    const auto tile = access["tile"];
    tile.allow_only({"width", "height", "element", "overlap_x", "overlap_y", "rows"});
    element_   = scope.whole(tile["element"], Unit::bytes, 1, 1e12);
    width_     = scope.whole(tile["width"], Unit::count, 1, 1e9);
    height_    = scope.whole(tile["height"], Unit::count, 1, 1e9);
    overlap_x_ = whole(tile, "overlap_x", Unit::count, 0, 0, static_cast<double>(width_ - 1));
    overlap_y_ = whole(tile, "overlap_y", Unit::count, 0, 0, static_cast<double>(height_ - 1));
    rows_      = whole(tile, "rows", Unit::count, height_, 1, static_cast<double>(height_));
    size_      = width_ * element_;
    if (height_ % rows_ != 0)
      tile.fail(fmt::format("a tile of {} rows can't be cut into requests of {} rows; 'rows' divides 'height'", height_,
                            rows_));
    for (const char* key : {"size", "requests"})
      if (access.has(key))
        access[key].fail(fmt::format("the tile says what a request is; leave '{}' out", key));
    requests_ = height_ / rows_;
    return;
  }
  size_     = scope.whole(access["size"], Unit::bytes, 1, 1e15);
  requests_ = scope.whole(access["requests"], Unit::count, 1, 1e15);
  if (static_cast<double>(size_) * static_cast<double>(requests_) > 9e15)
    access["requests"].fail(fmt::format("{} requests of {} are more than 9 PB for one process", requests_,
                                        format_quantity(static_cast<double>(size_), Unit::bytes)));
  switch (kind_) {
    case Kind::segmented:
      overlap_ = whole(access, "overlap", Unit::bytes, 0, 0, static_cast<double>(size_ * requests_ - 1));
      break;
    case Kind::strided:
      in_a_row_ = whole(access, "in_a_row", Unit::count, 1, 1);
      stride_   = whole(access, "stride", Unit::bytes, 0, 0);
      if (requests_ % in_a_row_ != 0)
        access["requests"].fail(fmt::format("{} requests are no multiple of the {} in a row", requests_, in_a_row_));
      break;
    case Kind::nested_strided:
      inner_ = whole(access, "inner", Unit::count, 1, 1, 4e9);
      break;
    case Kind::random:
      blocks_ = whole(access, "blocks", Unit::count, 0, 1);
      if (const auto zipf = access.find("zipf"))
        zipf_ = scope.number(*zipf, Unit::factor, 0, largest_exponent);
      break;
    default:
      break;
  }
}

Layout::Shape Layout::shape(uint32_t processes) const
{
  Shape shape;
  shape.processes = processes;
  // In floating point first: what is too large for a file is too large for 64 bits soon after.
  const double about =
      static_cast<double>(processes) * static_cast<double>(requests_) * static_cast<double>(request_bytes());
  double far = about;
  if (kind_ == Kind::tiled || kind_ == Kind::nested_strided) {
    shape.rows = grid_rows_ > 0 ? grid_rows_ : square_rows(processes);
    if (processes % shape.rows != 0)
      where_.fail(fmt::format(
          "the {} processes of a file don't fill a grid of {} rows; set grid_rows to a divisor, or to 0 for a grid as "
          "square as may be",
          processes, shape.rows));
    shape.columns = processes / shape.rows;
  }
  const uint64_t all   = processes * requests_;
  const uint64_t bytes = size_ * requests_;
  switch (kind_) {
    case Kind::sequential:
      shape.end      = bytes;
      shape.disjoint = processes == 1;
      break;
    case Kind::segmented:
      shape.end      = processes * (bytes - overlap_) + overlap_;
      shape.disjoint = processes == 1 || overlap_ == 0;
      break;
    case Kind::strided: {
      const uint64_t least = processes * in_a_row_ * size_;
      if (stride_ != 0 && stride_ < least)
        where_["stride"].fail(fmt::format("a stride of {} is shorter than the {} that {} processes access in a stripe",
                                          stride_, least, processes));
      shape.stride = stride_ != 0 ? stride_ : least;
      shape.whole  = shape.stride == least || requests_ == in_a_row_;
      shape.end    = (requests_ / in_a_row_ - 1) * shape.stride + least;
      far = static_cast<double>(requests_) / static_cast<double>(in_a_row_) * static_cast<double>(shape.stride);
      break;
    }
    case Kind::nested_strided:
      shape.end = all * inner_ * size_;
      break;
    case Kind::tiled: {
      const uint64_t width  = shape.columns * width_ - (shape.columns - 1) * overlap_x_;
      const uint64_t height = shape.rows * height_ - (shape.rows - 1) * overlap_y_;
      shape.stride          = width * element_;
      shape.end             = height * shape.stride;
      shape.disjoint        = (shape.columns == 1 || overlap_x_ == 0) && (shape.rows == 1 || overlap_y_ == 0);
      break;
    }
    case Kind::random_strided:
    case Kind::mesh:
      shape.end     = all * size_;
      shape.scatter = Permutation(all);
      break;
    case Kind::random:
      shape.blocks   = blocks_ != 0 ? blocks_ : all;
      shape.end      = shape.blocks * size_;
      shape.whole    = false;
      shape.disjoint = processes == 1;
      if (zipf_ > 0) {
        shape.popularity.emplace(shape.blocks, zipf_);
        shape.scatter = Permutation(shape.blocks);
      }
      far = static_cast<double>(shape.blocks) * static_cast<double>(size_);
      break;
  }
  if (!(far + static_cast<double>(offset_) <= 4e18))
    where_.fail(
        fmt::format("{} processes would make a file of {:g} bytes; no file is larger than 4 EB", processes, far));
  shape.begin = offset_;
  shape.end += offset_;
  return shape;
}

bool Layout::operator==(const Layout& other) const
{
  auto all = [](const Layout& l) {
    return std::tie(l.kind_, l.size_, l.requests_, l.offset_, l.overlap_, l.in_a_row_, l.stride_, l.inner_, l.blocks_,
                    l.zipf_, l.grid_rows_, l.element_, l.width_, l.height_, l.overlap_x_, l.overlap_y_, l.rows_);
  };
  return all(*this) == all(other);
}

} // namespace iocast
