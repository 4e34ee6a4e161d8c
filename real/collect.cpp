// SPDX-License-Identifier: Apache-2.0
#include "real/collect.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace iocast {

namespace {

constexpr size_t histograms_a_kind = 2 + max_parts; ///< whole, parts, response

const Histogram* histogram_of(const PhaseRecorder& recorder, size_t kind, size_t which)
{
  if (!recorder.has(static_cast<OpKind>(kind)))
    return nullptr;
  const auto& of = recorder.of_kind(static_cast<OpKind>(kind));
  return which == 0 ? &of.whole : which <= max_parts ? &of.parts[which - 1] : of.response.get();
}

Histogram& histogram_of(PhaseRecorder::OfKind& of, size_t which)
{
  return which == 0 ? of.whole : which <= max_parts ? of.parts[which - 1] : of.response_histogram();
}

/// What the ranks must know of each other before their counts can be added index by index. All fields are maxima.
struct Shape {
  struct Range {
    int64_t minus_first  = -static_cast<int64_t>(Histogram::size);
    int64_t last         = 0; ///< half open; 0 when no rank has a value
    int64_t minus_min_ns = -INT64_MAX;
    int64_t max_ns       = 0;

    size_t first() const { return static_cast<size_t>(-minus_first); }
    size_t length() const { return last > -minus_first ? static_cast<size_t>(last + minus_first) : 0; }
  };
  Range ranges[op_count][histograms_a_kind];
  int64_t timeline_width_ns[op_count] = {};
  int64_t errors                      = 0;
  int64_t interrupted                 = 0;
  int64_t reached                     = 0;
};
static_assert(sizeof(Shape) % sizeof(int64_t) == 0);

Shape shape_of(const RankPhase& phase)
{
  Shape shape;
  for (size_t kind = 0; kind < op_count; ++kind) {
    for (size_t which = 0; which < histograms_a_kind; ++which) {
      const Histogram* histogram = histogram_of(phase.recorder, kind, which);
      if (!histogram || histogram->count() == 0)
        continue;
      const auto [first, last]  = histogram->used();
      shape.ranges[kind][which] = {-static_cast<int64_t>(first), static_cast<int64_t>(last), -histogram->min_ns(),
                                   histogram->max_ns()};
    }
    if (phase.recorder.has(static_cast<OpKind>(kind)))
      shape.timeline_width_ns[kind] = phase.recorder.of_kind(static_cast<OpKind>(kind)).timeline.width_ns();
  }
  shape.errors      = static_cast<int64_t>(phase.errors.used);
  shape.interrupted = phase.interrupted;
  shape.reached     = static_cast<int64_t>(phase.reached);
  return shape;
}

/// Field by field.
Shape largest(const Shape& a, const Shape& b)
{
  using Fields      = std::array<int64_t, sizeof(Shape) / sizeof(int64_t)>;
  auto fields       = std::bit_cast<Fields>(a);
  const auto others = std::bit_cast<Fields>(b);
  for (size_t i = 0; i < fields.size(); ++i)
    fields[i] = std::max(fields[i], others[i]);
  return std::bit_cast<Shape>(fields);
}

/// A phase's numbers by how they are merged; pack() and unpack() walk through them in the same order.
struct Packed {
  std::vector<uint64_t> counts;
  std::vector<double> sums;
  std::vector<int64_t> maxima;
};

Packed pack(RankPhase& phase, const Shape& shape)
{
  Packed packed;
  for (size_t kind = 0; kind < op_count; ++kind) {
    if (shape.timeline_width_ns[kind] == 0)
      continue;
    auto& of = phase.recorder.of_kind(static_cast<OpKind>(kind));
    packed.counts.push_back(of.bytes);
    packed.counts.push_back(of.errors);
    for (size_t which = 0; which < histograms_a_kind; ++which) {
      const auto& range = shape.ranges[kind][which];
      if (which > max_parts && range.length() == 0)
        continue; // a closed loop on all ranks
      const auto& histogram = histogram_of(of, which);
      packed.counts.push_back(histogram.count());
      packed.counts.push_back(histogram.beyond());
      packed.sums.push_back(histogram.sum_ns());
      for (size_t i = 0; i < range.length(); ++i)
        packed.counts.push_back(histogram.count_at(range.first() + i));
    }
    of.timeline.set_width(shape.timeline_width_ns[kind]);
    for (const auto& bin : of.timeline.data()) {
      packed.counts.push_back(bin.count);
      packed.sums.push_back(bin.sum_ns);
      packed.maxima.push_back(bin.max_ns);
    }
  }
  packed.counts.push_back(phase.swept);
  packed.sums.push_back(phase.think_asked_seconds);
  packed.sums.push_back(phase.think_actual_seconds);
  return packed;
}

void add(Packed& to, const Packed& other)
{
  std::transform(to.counts.begin(), to.counts.end(), other.counts.begin(), to.counts.begin(), std::plus<>());
  std::transform(to.sums.begin(), to.sums.end(), other.sums.begin(), to.sums.begin(), std::plus<>());
  std::transform(to.maxima.begin(), to.maxima.end(), other.maxima.begin(), to.maxima.begin(),
                 [](int64_t a, int64_t b) { return std::max(a, b); });
}

void unpack(const Packed& packed, const Shape& shape, MergedPhase& merged)
{
  auto count   = packed.counts.begin();
  auto sum     = packed.sums.begin();
  auto maximum = packed.maxima.begin();
  for (size_t kind = 0; kind < op_count; ++kind) {
    if (shape.timeline_width_ns[kind] == 0)
      continue;
    auto& of  = merged.recorder.of_kind(static_cast<OpKind>(kind));
    of.bytes  = *count++;
    of.errors = *count++;
    for (size_t which = 0; which < histograms_a_kind; ++which) {
      const auto& range = shape.ranges[kind][which];
      if (which > max_parts && range.length() == 0)
        continue;
      auto& histogram       = histogram_of(of, which);
      const uint64_t total  = *count++;
      const uint64_t beyond = *count++;
      histogram.set_totals(total, *sum++, -range.minus_min_ns, range.max_ns, beyond);
      if (range.length() > 0)
        std::copy_n(count, range.length(), histogram.counts(range.first(), range.first() + range.length()).begin());
      count += static_cast<std::ptrdiff_t>(range.length());
    }
    of.timeline.set_width(shape.timeline_width_ns[kind]);
    for (auto& bin : of.timeline.data())
      bin = {*count++, *sum++, *maximum++};
  }
  merged.swept                = *count++;
  merged.think_asked_seconds  = *sum++;
  merged.think_actual_seconds = *sum++;
}

template <class T> void reduce_to_first(const Cluster& cluster, std::vector<T>& values, MPI_Datatype type, MPI_Op op)
{
  MPI_Reduce(cluster.is_first() ? MPI_IN_PLACE : values.data(), values.data(), static_cast<int>(values.size()), type,
             op, 0, cluster.comm());
}

/// A bounded table that travels as bytes and is merged on the way: `combine(in, inout)`.
template <class Table> void reduce_table(const Cluster& cluster, Table& table, MPI_User_function* combine)
{
  static_assert(std::is_trivially_copyable_v<Table>);
  MPI_Datatype type;
  MPI_Type_contiguous(sizeof(Table), MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Op op;
  MPI_Op_create(combine, 1, &op);
  MPI_Reduce(cluster.is_first() ? MPI_IN_PLACE : &table, &table, 1, type, op, 0, cluster.comm());
  MPI_Op_free(&op);
  MPI_Type_free(&type);
}

/// The longest operations; unused places at the end have ns < 0.
struct SlowTable {
  std::array<SlowOp, PhaseRecorder::slow_kept> ops;
};

SlowTable slow_table(PhaseRecorder& recorder)
{
  SlowTable table;
  table.ops.fill({-1, 0, 0, 0, 0, OpKind::phase});
  recorder.trim_slow();
  std::copy(recorder.slow().begin(), recorder.slow().end(), table.ops.begin());
  return table;
}

SlowTable merged(const SlowTable& a, const SlowTable& b)
{
  std::array<SlowOp, 2 * PhaseRecorder::slow_kept> both;
  std::merge(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), both.begin(), is_slower);
  SlowTable table;
  std::copy_n(both.begin(), table.ops.size(), table.ops.begin());
  return table;
}

void combine_slow(void* in, void* inout, int* length, MPI_Datatype*)
{
  for (int i = 0; i < *length; ++i) {
    auto& table = static_cast<SlowTable*>(inout)[i];
    table       = merged(static_cast<const SlowTable*>(in)[i], table);
  }
}

void add(ErrorTable& table, const ErrorTable& other)
{
  for (size_t entry = 0; entry < other.used; ++entry)
    table.add(other.entries[entry]);
}

void combine_errors(void* in, void* inout, int* length, MPI_Datatype*)
{
  for (int i = 0; i < *length; ++i)
    add(static_cast<ErrorTable*>(inout)[i], static_cast<const ErrorTable*>(in)[i]);
}

} // namespace

MergedPhase collect(const Cluster& cluster, std::span<RankPhase> mine)
{
  Shape shape;
  for (const auto& phase : mine)
    shape = largest(shape, shape_of(phase));
  MPI_Allreduce(MPI_IN_PLACE, &shape, sizeof(Shape) / sizeof(int64_t), MPI_INT64_T, MPI_MAX, cluster.comm());

  Packed packed = pack(mine.front(), shape);
  for (auto& phase : mine.subspan(1))
    add(packed, pack(phase, shape));
  reduce_to_first(cluster, packed.counts, MPI_UINT64_T, MPI_SUM);
  reduce_to_first(cluster, packed.sums, MPI_DOUBLE, MPI_SUM);
  reduce_to_first(cluster, packed.maxima, MPI_INT64_T, MPI_MAX);

  SlowTable slow = slow_table(mine.front().recorder);
  for (auto& phase : mine.subspan(1))
    slow = merged(slow_table(phase.recorder), slow);
  reduce_table(cluster, slow, combine_slow);
  ErrorTable errors = mine.front().errors;
  for (const auto& phase : mine.subspan(1))
    add(errors, phase.errors);
  if (shape.errors > 0)
    reduce_table(cluster, errors, combine_errors);

  MergedPhase merged;
  merged.interrupted = shape.interrupted != 0;
  merged.furthest    = static_cast<uint64_t>(shape.reached);
  std::vector<double> seconds;
  for (const auto& phase : mine) {
    merged.cut_ranks += phase.cut;
    seconds.push_back(phase.seconds);
  }
  MPI_Allreduce(MPI_IN_PLACE, &merged.cut_ranks, 1, MPI_UINT64_T, MPI_SUM, cluster.comm());
  merged.rank_seconds.resize(cluster.is_first() ? cluster.size() * mine.size() : 0);
  const auto clients = static_cast<int>(mine.size());
  MPI_Gather(seconds.data(), clients, MPI_DOUBLE, merged.rank_seconds.data(), clients, MPI_DOUBLE, 0, cluster.comm());
  if (!cluster.is_first())
    return merged;
  unpack(packed, shape, merged);
  merged.errors = errors;
  for (const auto& op : slow.ops)
    if (op.ns >= 0)
      merged.recorder.slow().push_back(op);
  return merged;
}

} // namespace iocast
