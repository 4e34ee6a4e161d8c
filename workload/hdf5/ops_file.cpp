// SPDX-License-Identifier: Apache-2.0
#include "workload/ops_file.hpp"

#include "input/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <hdf5.h>
#include <sys/stat.h>
#include <unistd.h>

namespace iocast::ops_file {

namespace {
/// An HDF5 handle that closes itself.
class Handle {
public:
  using Close = herr_t (*)(hid_t);
  Handle()    = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept
  {
    reset();
    id_    = std::exchange(other.id_, -1);
    close_ = other.close_;
    return *this;
  }
  ~Handle() { reset(); }
  void reset()
  {
    if (id_ >= 0)
      close_(id_);
    id_ = -1;
  }
  hid_t get() const { return id_; }
  bool good() const { return id_ >= 0; }

private:
  hid_t id_    = -1;
  Close close_ = nullptr;
};

void be_quiet()
{
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); // errors are reported in our own sentences
}

Handle kind_type()
{
  Handle type(H5Tenum_create(H5T_STD_U8LE), H5Tclose);
  for (size_t kind = 0; kind < op_count; ++kind) {
    const auto value = static_cast<uint8_t>(kind);
    H5Tenum_insert(type.get(), std::string(op_names[kind]).c_str(), &value);
  }
  return type;
}

hid_t type_of(size_t column, const Handle& kinds)
{
  switch (static_cast<Column>(column)) {
    case Column::kind:
      return kinds.get();
    case Column::start_ns:
    case Column::duration_ns:
      return H5T_STD_I64LE;
    case Column::error:
      return H5T_STD_I32LE;
    default:
      return column_bytes[column] == 8 ? H5T_STD_U64LE : column_bytes[column] == 4 ? H5T_STD_U32LE : H5T_STD_U8LE;
  }
}

void set_value(Row& row, size_t column, uint64_t value)
{
  Op& op = row.traced.op;
  switch (static_cast<Column>(column)) {
    case Column::rank:
      row.rank = static_cast<uint32_t>(value);
      break;
    case Column::kind:
      op.kind = static_cast<OpKind>(value);
      break;
    case Column::flags:
      op.flags = static_cast<uint8_t>(value);
      break;
    case Column::count:
      op.count = static_cast<uint32_t>(value);
      break;
    case Column::dataset:
      op.dataset = value;
      break;
    case Column::object:
      op.object = value;
      break;
    case Column::size:
      op.size = value;
      break;
    case Column::offset:
      op.offset = value;
      break;
    case Column::stride:
      op.stride = value;
      break;
    case Column::start_ns:
      row.traced.start_ns = static_cast<int64_t>(value);
      break;
    case Column::duration_ns:
      row.traced.ns = static_cast<int64_t>(value);
      break;
    case Column::error:
      row.traced.error = static_cast<int32_t>(value);
      break;
  }
}

// ---- writing
// ------------------------------------------------------------------------------------------------------------

bool put_list(hid_t file, const char* name, hid_t stored, hid_t given, const void* values, size_t count)
{
  const hsize_t extent = count;
  const Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
  const Handle settings(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(settings.get(), false);
  const Handle dataset(H5Dcreate2(file, name, stored, space.get(), H5P_DEFAULT, settings.get(), H5P_DEFAULT), H5Dclose);
  return dataset.good() && H5Dwrite(dataset.get(), given, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
}

bool put_attribute(hid_t file, const char* name, hid_t type, const void* value)
{
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle attribute(H5Acreate2(file, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute.good() && H5Awrite(attribute.get(), type, value) >= 0;
}

class HdfWriter final : public Writer {
public:
  HdfWriter(const std::string& file, const Index& index, const nlohmann::ordered_json& about);
  void put(uint64_t number, const Chunk& chunk) override;
  void finish() override;

private:
  [[noreturn]] void fail() const
  {
    const int error = errno;
    ::unlink((name_ + ".new").c_str());
    throw RunError(
        fmt::format("The trace '{}' can't be written: {}.", name_, error != 0 ? std::strerror(error) : "HDF5 refuses"));
  }

  std::string name_;
  Handle file_;
  std::array<Handle, columns> datasets_;
};

HdfWriter::HdfWriter(const std::string& file, const Index& index, const nlohmann::ordered_json& about) : name_(file)
{
  be_quiet();
  errno = 0;
  // No times of making in the file: the same operations are the same bytes.
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation.get(), false);
  file_ = Handle(H5Fcreate((name_ + ".new").c_str(), H5F_ACC_TRUNC, creation.get(), H5P_DEFAULT), H5Fclose);
  if (!file_.good())
    fail();
  const hid_t root        = file_.get();
  const std::string words = about.dump();
  const Handle text(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(text.get(), words.size());
  H5Tset_cset(text.get(), H5T_CSET_UTF8);
  const int version = 1;
  bool good =
      put_attribute(root, "schema_version", H5T_NATIVE_INT, &version) &&
      put_attribute(root, "about", text.get(), words.data()) &&
      put_list(root, "first_row", H5T_STD_U64LE, H5T_NATIVE_UINT64, index.first_row.data(), index.first_row.size()) &&
      put_list(root, "group", H5T_STD_U32LE, H5T_NATIVE_UINT32, index.group.data(), index.group.size());
  const auto kinds     = kind_type();
  const hsize_t rows   = index.rows();
  const hsize_t a_time = chunk_rows;
  const hsize_t most   = H5S_UNLIMITED; // HDF5 wants no chunks larger than a column that can't grow
  const Handle space(H5Screate_simple(1, &rows, &most), H5Sclose);
  for (size_t column = 0; column < columns && good; ++column) {
    const Handle settings(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_obj_track_times(settings.get(), false);
    if (rows > 0) {
      H5Pset_chunk(settings.get(), 1, &a_time);
      H5Pset_shuffle(settings.get());
      H5Pset_deflate(settings.get(), 4);
    }
    datasets_[column] = Handle(H5Dcreate2(root, std::string(column_names[column]).c_str(), type_of(column, kinds),
                                          space.get(), H5P_DEFAULT, settings.get(), H5P_DEFAULT),
                               H5Dclose);
    good              = datasets_[column].good();
  }
  if (!good)
    fail();
}

void HdfWriter::put(uint64_t number, const Chunk& chunk)
{
  const hsize_t first = number * chunk_rows;
  for (size_t column = 0; column < columns; ++column)
    if (H5Dwrite_chunk(datasets_[column].get(), H5P_DEFAULT, 0, &first, chunk[column].size(), chunk[column].data()) < 0)
      fail();
}

void HdfWriter::finish()
{
  errno = 0;
  for (auto& dataset : datasets_)
    dataset.reset();
  const bool good = H5Fflush(file_.get(), H5F_SCOPE_GLOBAL) >= 0;
  file_.reset();
  if (!good || std::rename((name_ + ".new").c_str(), name_.c_str()) != 0)
    fail();
}

// ---- reading
// ------------------------------------------------------------------------------------------------------------

class HdfReader final : public Reader {
public:
  explicit HdfReader(const std::string& file);
  const Index& index() const override { return index_; }
  const nlohmann::ordered_json& about() const override { return about_; }
  void visit(uint64_t first, uint64_t end, const std::function<void(const Row&)>& see,
             const std::vector<Column>& only) const override;

private:
  [[noreturn]] void fail(const std::string& what) const;

  std::string name_;
  Handle file_;
  std::array<Handle, columns> datasets_;
  Index index_;
  nlohmann::ordered_json about_;
  std::array<int, 256> kinds_{}; ///< of the file's codes; -1 for a name that this program doesn't know
  std::array<std::string, 256> kind_names_;
};

void HdfReader::fail(const std::string& what) const
{
  throw InputError(fmt::format("The trace '{}' can't be used: {}.", name_, what));
}

HdfReader::HdfReader(const std::string& file) : name_(file)
{
  be_quiet();
  struct stat about {};
  if (::stat(name_.c_str(), &about) != 0 || ::access(name_.c_str(), R_OK) != 0)
    fail(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) // the library would wait for a pipe
    fail("it is no plain file");
  file_            = Handle(H5Fopen(name_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const hid_t root = file_.get();
  if (root < 0)
    fail("it is no HDF5 file, or was cut off");

  auto attribute = [&](const char* name) {
    Handle found(H5Aopen(root, name, H5P_DEFAULT), H5Aclose);
    if (!found.good())
      fail(fmt::format("it has no attribute '{}' and so is no ops.h5 of iocast", name));
    return found;
  };
  int version = 0;
  if (H5Aread(attribute("schema_version").get(), H5T_NATIVE_INT, &version) < 0 || version != 1)
    fail(fmt::format("its schema version is {}, this program knows 1", version));
  {
    const auto about = attribute("about");
    const Handle type(H5Aget_type(about.get()), H5Tclose);
    std::string words;
    bool good = false;
    if (H5Tis_variable_str(type.get()) > 0) { // as h5py writes them
      char* text = nullptr;
      good       = H5Aread(about.get(), type.get(), static_cast<void*>(&text)) >= 0 && text != nullptr;
      if (good) {
        words = text;
        H5free_memory(text);
      }
    } else {
      words.resize(H5Tget_size(type.get()));
      good = H5Aread(about.get(), type.get(), words.data()) >= 0;
    }
    about_ = good ? nlohmann::ordered_json::parse(words, nullptr, false) : nlohmann::ordered_json();
    if (!about_.is_object())
      fail("its attribute 'about' is no JSON object");
  }

  auto dataset = [&](std::string_view name) {
    Handle found(H5Dopen2(root, std::string(name).c_str(), H5P_DEFAULT), H5Dclose);
    if (!found.good())
      fail(fmt::format("it has no column '{}'", name));
    return found;
  };
  auto length = [](const Handle& of) {
    const Handle space(H5Dget_space(of.get()), H5Sclose);
    return static_cast<uint64_t>(std::max<hssize_t>(0, H5Sget_simple_extent_npoints(space.get())));
  };
  auto list = [&](const char* name, hid_t type, auto& values) {
    const auto found = dataset(name);
    values.resize(length(found));
    if (!values.empty() && H5Dread(found.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
      fail(fmt::format("its list '{}' is damaged", name));
  };
  list("first_row", H5T_NATIVE_UINT64, index_.first_row);
  list("group", H5T_NATIVE_UINT32, index_.group);
  if (index_.group.empty() || index_.first_row.size() != index_.group.size() + 1 || index_.first_row.front() != 0 ||
      !std::is_sorted(index_.first_row.begin(), index_.first_row.end()))
    fail("its lists 'first_row' and 'group' don't fit together");
  for (size_t column = 0; column < columns; ++column) {
    datasets_[column] = dataset(column_names[column]);
    if (const auto rows = length(datasets_[column]); rows != index_.rows())
      fail(fmt::format("its column '{}' has {} rows instead of {}", column_names[column], rows, index_.rows()));
  }

  kinds_.fill(-1);
  const Handle type(H5Dget_type(datasets_[static_cast<size_t>(Column::kind)].get()), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_ENUM || H5Tget_size(type.get()) != 1)
    fail("its column 'kind' is no enumeration of one byte");
  for (int member = 0; member < H5Tget_nmembers(type.get()); ++member) {
    uint8_t code = 0;
    H5Tget_member_value(type.get(), static_cast<unsigned>(member), &code);
    char* name        = H5Tget_member_name(type.get(), static_cast<unsigned>(member));
    kind_names_[code] = name;
    if (const auto known = op_named(name))
      kinds_[code] = static_cast<int>(*known);
    H5free_memory(name);
  }
}

/// Of times in a trace: the end of an operation is the sum of two, a pause the difference of two such.
constexpr int64_t longest_ns = int64_t{1} << 61;

void HdfReader::visit(uint64_t first, uint64_t end, const std::function<void(const Row&)>& see,
                      const std::vector<Column>& only) const
{
  std::vector<Row> rows(std::min(end - first, chunk_rows));
  std::vector<uint64_t> values(rows.size());
  for (uint64_t at = first; at < end;) {
    const hsize_t from  = at;
    const hsize_t count = std::min(end, (at / chunk_rows + 1) * chunk_rows) - at;
    const Handle memory(H5Screate_simple(1, &count, nullptr), H5Sclose);
    for (size_t column = 0; column < columns; ++column) {
      if (!only.empty() && std::find(only.begin(), only.end(), static_cast<Column>(column)) == only.end())
        continue;
      const auto& dataset = datasets_[column];
      const Handle space(H5Dget_space(dataset.get()), H5Sclose);
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &from, nullptr, &count, nullptr);
      const bool is_kind   = static_cast<Column>(column) == Column::kind;
      const bool is_signed = static_cast<Column>(column) >= Column::start_ns;
      const bool is_time =
          static_cast<Column>(column) == Column::start_ns || static_cast<Column>(column) == Column::duration_ns;
      // The codes of kinds are read as they are, whatever their names; the rest as numbers of 64 bits.
      const Handle raw(is_kind ? H5Dget_type(dataset.get()) : -1, H5Tclose);
      const hid_t type = is_kind ? raw.get() : is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
      if (H5Dread(dataset.get(), type, memory.get(), space.get(), H5P_DEFAULT, values.data()) < 0)
        fail(fmt::format("its column '{}' is damaged after row {}", column_names[column], at));
      for (hsize_t i = 0; i < count; ++i) {
        uint64_t value = values[i];
        if (is_kind) {
          const auto code = reinterpret_cast<const uint8_t*>(values.data())[i];
          if (kinds_[code] < 0)
            fail(fmt::format("row {} is the operation '{}', which this program doesn't know", at + i,
                             kind_names_[code].empty() ? fmt::format("{}", code) : kind_names_[code]));
          value = static_cast<uint64_t>(kinds_[code]);
        }
        const auto ns = static_cast<int64_t>(value);
        if (is_time && (ns < -longest_ns || ns > longest_ns))
          fail(fmt::format("row {} has {} in its column '{}', which is more than 70 years", at + i, ns,
                           column_names[column]));
        set_value(rows[i], column, value);
      }
    }
    for (hsize_t i = 0; i < count; ++i)
      see(rows[i]);
    at += count;
  }
}

std::unique_ptr<Writer> new_hdf5(const std::string& file, const Index& index, const nlohmann::ordered_json& about)
{
  return std::make_unique<HdfWriter>(file, index, about);
}

std::unique_ptr<Reader> open_hdf5(const std::string& file)
{
  return std::make_unique<HdfReader>(file);
}
} // namespace

} // namespace iocast::ops_file

extern "C" const iocast::ops_file::Library iocast_hdf5{iocast::ops_file::new_hdf5, iocast::ops_file::open_hdf5};
