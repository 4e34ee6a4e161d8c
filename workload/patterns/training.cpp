// SPDX-License-Identifier: Apache-2.0
//
// training: accelerators that train a model and the readers that feed them. A step takes a batch of samples from each
// accelerator's readers and computes for a fixed time; all accelerators wait for each other. Each rank is one reader:
// it reads whole batches, the first of an accelerator's readers batches 0, n, 2n ..., and is ahead of the computation
// by at most `prefetch` batches, as workers of PyTorch's DataLoader are (torch.utils.data, `prefetch_factor`). The
// samples are those of all accelerators' shared data set in an order that is drawn anew each epoch.
//
// A file has `ranges` columns of `samples_per_file` pieces each; a sample is one piece of each column.
#include "input/error.hpp"
#include "input/portable.hpp"
#include "workload/permutation.hpp"
#include "workload/phased_pattern.hpp"
#include "workload/random.hpp"
#include "workload/size_law.hpp"
#include "workload/steps.hpp"
#include "workload/whole_units.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <map>

namespace iocast {
namespace {

uint64_t to_ns(double seconds)
{
  return static_cast<uint64_t>(std::llround(seconds * 1e9));
}

class Training final : public PhasedPattern {
public:
  Training(const Parameters& given, const Placement& placement)
      : ranks_(placement.ranks)
      , readers_(given.count("readers"))
      , straddles_(placement.nodes() > 1 &&
                   (placement.cyclic ? readers_ > 1 : placement.ranks_per_node % readers_ != 0))
      , accelerators_((ranks_ + readers_ - 1) / readers_)
      , batch_(given.count("batch"))
      , prefetch_(given.count("prefetch"))
      , compute_ns_(to_ns(given.number("compute_time")))
      , step_ns_(std::max(compute_ns_, given.number("rate") > 0 ? to_ns(1 / given.number("rate")) : 0))
      , per_file_(given.count("samples_per_file"))
      , files_(files_of(given, accelerators_ * batch_))
      , ranges_(given.count("ranges"))
      , sample_size_(given.number("sample_size"))
      , deviation_(given.number("sample_deviation"))
      , align_(given.count("align"))
      , read_block_(given.count("read_block"))
      , write_block_(given.count("write_block"))
      , seed_(given.count("seed"))
      , sizes_(law_of(sample_size_, deviation_))
      , file_order_(files_)
      , sample_order_(files_ * per_file_)
  {
    if (files_ > most_samples / per_file_)
      throw InputError(
          fmt::format("{} files of {} samples are too many to number; the most is 10^15 samples.", files_, per_file_));
    const std::vector<std::string> orders{"samples", "files", "none"};
    const auto found = std::find(orders.begin(), orders.end(), given.text("shuffle"));
    if (found == orders.end())
      throw InputError(fmt::format("training knows no shuffle '{}'. {}", given.text("shuffle"),
                                   allowed_sentence(given.text("shuffle"), orders)));
    shuffle_             = static_cast<Shuffle>(found - orders.begin());
    const uint64_t whole = files_ * per_file_ / (accelerators_ * batch_);
    steps_               = given.count("steps") == 0 ? whole : given.count("steps");
    if (whole == 0 || steps_ > whole)
      throw InputError(fmt::format("{} samples are {} steps of {} accelerators with batches of {}, and {} are wanted; "
                                   "set more files, or fewer steps or accelerators.",
                                   files_ * per_file_, whole, accelerators_, batch_, std::max<uint64_t>(1, steps_)));
    choose(given);
    closed_      = read_arrivals(given);
    closed_.rate = 0;
  }

  /// `rate` is of steps, and not of single operations.
  const Arrivals& arrivals_of(uint32_t) const override { return closed_; }

  std::optional<Accelerators> accelerators(size_t phase) const override
  {
    if (phases()[phase].name != "train")
      return {};
    const uint64_t all = accelerators_ * steps_;
    return Accelerators{accelerators_, static_cast<double>(all) * static_cast<double>(compute_ns_) * 1e-9, steps_,
                        all * batch_};
  }

  Footprint footprint() const override
  {
    std::map<OpKind, Amount> counts;
    Footprint result;
    uint64_t bytes = 0;
    count_files(counts, bytes, result.largest_size);
    result.peak_objects = files_;
    result.peak_bytes   = bytes;
    if (runs(make_files))
      result.bytes_written = bytes;
    else
      counts.clear();
    counts[OpKind::mkdir] = runs(make_files);
    if (runs(remove_files)) {
      counts[OpKind::unlink] = files_;
      counts[OpKind::rmdir]  = 1;
    }
    for (uint64_t epoch = 0; runs(train + epoch); ++epoch)
      count_epoch(epoch, counts, result);
    for (const auto& [kind, count] : counts)
      if (count > 0)
        result.operations.emplace_back(kind, count);
    result.steps = runs(train);
    return result;
  }

  std::vector<std::string> warnings() const override
  {
    std::vector<std::string> result;
    if (straddles_)
      result.push_back(fmt::format("Readers of one accelerator lie on several nodes; place ranks in blocks, a multiple "
                                   "of {} on each node.",
                                   readers_));
    else if (ranks_ % readers_ != 0)
      result.push_back(
          fmt::format("The last accelerator has {} readers, and each other one has {}.", ranks_ % readers_, readers_));
    return result;
  }

  char* name_dataset(uint64_t, char* out) const override
  {
    std::memcpy(out, "train", 5);
    return out + 5;
  }

  nlohmann::ordered_json data_set() const override
  {
    return {{"files", files_},
            {"samples_per_file", per_file_},
            {"ranges", ranges_},
            {"sample_size", sample_size_},
            {"sample_deviation", deviation_},
            {"align", align_},
            {"seed", seed_}};
  }

private:
  enum Which : size_t { make_dataset, make_files, remove_files, remove_dataset, train };
  enum class Shuffle : uint8_t { samples, files, none };
  /// Where a reader is (Cursor::step). Of the cursor `i` is the step, `j` the sample of its batch, `a` the next access
  /// to it.
  enum At : uint16_t { start = 1, sample, accesses, closing, handing, last_step, finished };
  static constexpr uint64_t most_samples = 1'000'000'000'000'000;

  /// Lognormal with this mean and standard deviation, up to four times the mean.
  static SizeLaw law_of(double mean, double deviation)
  {
    if (deviation > 0.7 * mean) // what is cut off would make the mean smaller by a percent and more
      throw InputError(fmt::format("The sample_deviation of training is {:.0f} B; it is at most 0.7 times the mean "
                                   "size of {:.0f} B.",
                                   deviation, mean));
    const double square = 1 + deviation * deviation / (mean * mean);
    return SizeLaw::lognormal(mean / std::sqrt(square), std::sqrt(portable::log(square)), 4 * mean);
  }

  /// As set; else as many as hold the samples of all steps. `step`: samples that a step takes.
  static uint64_t files_of(const Parameters& given, uint64_t step)
  {
    const uint64_t steps = given.count("steps"), per_file = given.count("samples_per_file");
    if (given.count("files") > 0)
      return given.count("files");
    if (steps == 0)
      throw InputError("training has neither 'files' nor 'steps': one of them says how long an epoch is.");
    if (steps > most_samples / step)
      throw InputError(
          fmt::format("{} steps of {} samples are too many to number; the most is 10^15 samples.", steps, step));
    return (steps * step + per_file - 1) / per_file;
  }

  void choose(const Parameters& given)
  {
    using Does = PhaseOfWork::Does;
    std::vector<PhaseOfWork> all{{make_dataset, Does::makes, {"precreate", 1}},
                                 {make_files, Does::makes, {"precreate", 2}}};
    const auto epochs = static_cast<uint32_t>(given.count("epochs"));
    for (uint32_t epoch = 0; epoch < epochs; ++epoch)
      all.push_back({train + epoch, Does::uses, {"train", epochs > 1 ? epoch + 1 : 0}});
    all.push_back({remove_files, Does::removes, {"cleanup", 1}});
    all.push_back({remove_dataset, Does::removes, {"cleanup", 2}});
    choose_phases("training", given.text("phases"), all);
  }

  // ---- files and samples

  /// Bytes of a sample's part in one column of the file.
  uint64_t piece_of(uint64_t file) const
  {
    double size = sample_size_;
    if (deviation_ > 0)
      size = static_cast<double>(sizes_.at(to_uniform(random_words(seed_, Stream::training, 0, file)[0])));
    return in_whole_units(size / static_cast<double>(ranges_), align_);
  }
  uint64_t size_of(uint64_t file) const { return piece_of(file) * ranges_ * per_file_; }
  bool is_made_whole(uint64_t size) const { return size <= write_block_; }
  /// Each sample is a file that is read in one operation.
  bool reads_whole() const { return per_file_ == 1 && ranges_ == 1 && read_block_ == 0; }
  uint64_t block_of(uint64_t piece) const { return read_block_ == 0 ? piece : std::min(read_block_, piece); }
  uint64_t accesses_to(uint64_t piece) const { return (piece + block_of(piece) - 1) / block_of(piece) * ranges_; }

  /// The sample that comes at place `number` of the epoch, from all accelerators.
  uint64_t sample_at(uint64_t epoch, uint64_t number) const
  {
    const auto key = random_words(seed_, Stream::training, 1, epoch);
    switch (shuffle_) {
      case Shuffle::samples:
        return sample_order_(number, key);
      case Shuffle::files:
        return file_order_(number / per_file_, key) * per_file_ + number % per_file_;
      default:
        return number;
    }
  }
  uint64_t first_of_batch(uint64_t step, uint64_t accelerator) const
  {
    return (step * accelerators_ + accelerator) * batch_;
  }
  /// A file stays open for the samples of a batch that follow each other in it.
  bool goes_on_in_file(uint64_t number) const { return shuffle_ != Shuffle::samples && number % per_file_ != 0; }

  // ---- readers

  uint64_t readers_of(uint64_t accelerator) const { return std::min(readers_, ranks_ - accelerator * readers_); }

  bool next_in(size_t which, Cursor& cursor, Op& op) const override
  {
    const auto only = [&](OpKind kind) {
      if (cursor.rank != 0 || cursor.step != 1)
        return false;
      cursor.step = 2;
      op          = {kind, 0, 0};
      return true;
    };
    switch (which) {
      case make_dataset:
        return only(OpKind::mkdir);
      case make_files:
        return next_of_making(cursor, op);
      case remove_files:
        if (cursor.i * ranks_ + cursor.rank >= files_)
          return false;
        op = {OpKind::unlink, 0, cursor.i++ * ranks_ + cursor.rank};
        return true;
      case remove_dataset:
        return only(OpKind::rmdir);
      default:
        return next_of_epoch(which - train, cursor, op);
    }
  }

  bool next_of_making(Cursor& cursor, Op& op) const
  {
    const uint64_t file = cursor.i * ranks_ + cursor.rank;
    if (file >= files_)
      return false;
    const uint64_t size = size_of(file);
    if (is_made_whole(size)) {
      op = {OpKind::create, 0, file, size};
      ++cursor.i;
      return true;
    }
    if (cursor.step == 1) {
      op          = {OpKind::open, 0, file};
      op.flags    = for_writing | make_it;
      cursor.step = 2;
      cursor.j    = 0;
      return true;
    }
    const uint64_t at = cursor.j * write_block_;
    if (at < size) {
      op = {OpKind::pwrite, 0, file, std::min(write_block_, size - at), at};
      ++cursor.j;
      return true;
    }
    op          = {OpKind::close, 0, file};
    cursor.step = 1;
    ++cursor.i;
    return true;
  }

  bool next_of_epoch(uint64_t epoch, Cursor& cursor, Op& op) const
  {
    const uint64_t accelerator = cursor.rank / readers_;
    const uint64_t readers     = readers_of(accelerator);
    const uint64_t reader      = cursor.rank % readers_;
    if (cursor.step == start) {
      cursor.i    = reader;
      cursor.step = reader < steps_ ? sample : last_step;
      if (const uint64_t others = std::min(reader, steps_); others > 0) {
        op = hand_over(others - 1, static_cast<uint32_t>(others), step_ns_, StepTimes::no_step);
        return true;
      }
    }
    if (cursor.step == handing) {
      const uint64_t next = std::min(cursor.i + readers, steps_);
      const uint64_t room = readers * prefetch_; // steps that an accelerator's readers are ahead at most
      op                  = hand_over(next - 1, static_cast<uint32_t>(next - cursor.i), step_ns_,
                     next < steps_ && next >= room ? next - room : StepTimes::no_step);
      cursor.i            = next;
      cursor.step         = next < steps_ ? sample : last_step;
      return true;
    }
    if (cursor.step == last_step) {
      op          = hand_over(steps_, 1, 0, steps_); // which begins when all others have ended
      cursor.step = finished;
      return true;
    }
    return cursor.step != finished && next_of_batch(epoch, first_of_batch(cursor.i, accelerator), cursor, op);
  }

  bool next_of_batch(uint64_t epoch, uint64_t first, Cursor& cursor, Op& op) const
  {
    const uint64_t number = sample_at(epoch, first + cursor.j);
    const uint64_t file   = number / per_file_;
    const uint64_t piece  = piece_of(file);
    if (reads_whole()) {
      op = {OpKind::read, 0, file, piece};
      end_sample(cursor);
      return true;
    }
    if (cursor.step == sample) {
      cursor.a    = 0;
      cursor.step = accesses;
      if (cursor.j == 0 || !goes_on_in_file(first + cursor.j)) {
        op = {OpKind::open, 0, file};
        return true;
      }
    }
    if (cursor.step == accesses) {
      const uint64_t blocks = accesses_to(piece) / ranges_;
      const uint64_t block  = block_of(piece);
      const uint64_t at     = cursor.a % blocks * block;
      op                    = {OpKind::pread, 0, file, std::min(block, piece - at),
                               (cursor.a / blocks * per_file_ + number % per_file_) * piece + at};
      if (++cursor.a == blocks * ranges_) {
        const bool last = cursor.j + 1 == batch_ || !goes_on_in_file(first + cursor.j + 1);
        cursor.step     = closing;
        if (!last)
          end_sample(cursor);
      }
      return true;
    }
    op = {OpKind::close, 0, file};
    end_sample(cursor);
    return true;
  }

  void end_sample(Cursor& cursor) const
  {
    cursor.step = ++cursor.j < batch_ ? sample : handing;
    if (cursor.step == handing)
      cursor.j = 0;
  }

  // ---- what all of it is

  void count_files(std::map<OpKind, Amount>& counts, uint64_t& bytes, uint64_t& largest) const
  {
    Amount all         = 0;
    const uint64_t see = deviation_ > 0 ? files_ : 1; // else one stands for all
    const uint64_t as  = files_ / see;
    for (uint64_t file = 0; file < see; ++file) {
      const uint64_t size = size_of(file);
      all                 = all + Amount(size) * as;
      largest             = std::max(largest, std::min(size, write_block_));
      largest             = std::max(largest, block_of(piece_of(file)));
      if (is_made_whole(size)) {
        counts[OpKind::create] = counts[OpKind::create] + as;
      } else {
        counts[OpKind::open]   = counts[OpKind::open] + as;
        counts[OpKind::pwrite] = counts[OpKind::pwrite] + Amount(as) * ((size + write_block_ - 1) / write_block_);
        counts[OpKind::close]  = counts[OpKind::close] + as;
      }
    }
    bytes = all;
  }

  void count_epoch(uint64_t epoch, std::map<OpKind, Amount>& counts, Footprint& result) const
  {
    const uint64_t batches = steps_ * accelerators_;
    const uint64_t samples = batches * batch_;
    const uint64_t see     = deviation_ > 0 ? samples : 1;
    Amount bytes           = 0;
    Amount preads          = 0;
    for (uint64_t number = 0; number < see; ++number) {
      const uint64_t piece = piece_of(sample_at(epoch, number) / per_file_);
      bytes                = bytes + Amount(piece) * ranges_ * (samples / see);
      preads               = preads + Amount(accesses_to(piece)) * (samples / see);
    }
    result.bytes_read = Amount(result.bytes_read) + bytes;
    auto add          = [&](OpKind kind, Amount count) { counts[kind] = counts[kind] + count; };
    if (reads_whole()) {
      add(OpKind::read, samples);
    } else {
      uint64_t opens = 0;
      for (uint64_t batch = 0; shuffle_ != Shuffle::samples && batch < batches; ++batch)
        opens += (batch * batch_ + batch_ - 1) / per_file_ - batch * batch_ / per_file_ + 1;
      opens = shuffle_ == Shuffle::samples ? samples : opens;
      add(OpKind::open, opens);
      add(OpKind::pread, preads);
      add(OpKind::close, opens);
    }
    // Each batch, what readers but the first hand over at the start, and the last of each rank.
    add(OpKind::think, batches + ranks_ - accelerators_ + ranks_);
  }

  uint64_t ranks_;
  uint64_t readers_; ///< of an accelerator; the last one may have fewer
  bool straddles_;
  uint64_t accelerators_;
  uint64_t batch_;    ///< samples
  uint64_t prefetch_; ///< batches that a reader is ahead at most
  uint64_t compute_ns_;
  uint64_t step_ns_; ///< at least from the begin of a step to that of the next
  uint64_t per_file_;
  uint64_t files_;
  uint64_t ranges_;
  double sample_size_;
  double deviation_;
  uint64_t align_;
  uint64_t read_block_;
  uint64_t write_block_;
  uint64_t seed_;
  SizeLaw sizes_;
  Permutation file_order_;
  Permutation sample_order_;
  Shuffle shuffle_ = Shuffle::samples;
  uint64_t steps_  = 0; ///< of an epoch
  Arrivals closed_;
};

const bool registered = register_pattern(
    {"training",
     "accelerators that train a model in steps, and the readers that feed them: one rank is one reader",
     "DLIO (Devarajan et al., CCGrid 2021) and MLPerf Storage: step, batch, accelerator utilisation",
     {{"readers", Unit::count, "4", "readers of each accelerator: ranks", 1, 1e6},
      {"batch", Unit::count, "7", "samples that an accelerator takes in a step", 1, 1e9},
      {"compute_time", Unit::seconds, "323ms", "computation of a step", 0, 1e6},
      {"prefetch", Unit::count, "2", "batches that a reader is ahead of the computation at most", 1, 1e6},
      {"epochs", Unit::count, "1", "times that the data set is read, each in another order", 1, 60000},
      {"steps", Unit::count, "20", "steps of an epoch; 0: as many as there are whole batches for all", 0, 1e12},
      {"files", Unit::count, "0", "files of the data set; 0: as many as hold the samples of all steps", 0, 1e12},
      {"samples_per_file", Unit::count, "1", "samples in each file", 1, 1e9},
      {"sample_size", Unit::bytes, "146600628B", "mean size of a sample", 1, 1e12},
      {"sample_deviation", Unit::bytes, "0B", "standard deviation of it from file to file, of a lognormal law", 0,
       1e12},
      {"align", Unit::bytes, "1B", meaning_of_align, 1, 1e9},
      {"ranges", Unit::count, "1", "parts of the file that a sample is read from", 1, 1e6},
      {"shuffle", Unit::text, "samples",
       "order of each epoch: samples at random; files, the samples of each in a row; or none"},
      {"read_block", Unit::bytes, "0B", "bytes of a read at most; 0B: a sample's part whole", 0, 1e12},
      {"write_block", Unit::bytes, "16MiB", "bytes of a write at most, when the data set is made", 1, 1e12},
      {"seed", Unit::count, "0", "seed of orders and sizes", 0, 9e15},
      {"phases", Unit::text, "all", "which of precreate, train, cleanup to run"}},
     {"readers=2 batch=2 compute_time=1ms files=64 steps=0 sample_size=3kB sample_deviation=1kB epochs=2",
      "readers=3 batch=3 compute_time=0s files=9 steps=0 samples_per_file=20 sample_size=1kB shuffle=files prefetch=1",
      "readers=1 batch=2 compute_time=10us files=5 steps=0 samples_per_file=11 sample_size=4kB ranges=3 read_block=1kB "
      "write_block=10kB",
      "readers=16 batch=1 compute_time=1us files=40 sample_size=100B shuffle=none steps=3 rate=1000/s"},
     [](const Parameters& given, const Placement& placement) { return std::make_unique<Training>(given, placement); }});

} // namespace
} // namespace iocast
