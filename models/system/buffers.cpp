// SPDX-License-Identifier: Apache-2.0
//
// The part of System that fills and drains buffers. A piece of a buffer is a job as a client's is; it goes through the
// steps of the buffer's drain and is gone.
#include "input/error.hpp"
#include "models/system.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace iocast {

namespace {
/// Whether somebody will wait for what the buffer has of single objects.
bool flushed_by_object(const Platform& platform, const Footprint& footprint, size_t buffer)
{
  return std::any_of(footprint.operations.begin(), footprint.operations.end(), [&](const auto& requested) {
    const auto& steps = platform.routes[static_cast<size_t>(requested.first)].steps;
    return requested.second > 0 && std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
             return step.kind == Step::Kind::flush && step.target == buffer && step.flush != Flush::all;
           });
  });
}
} // namespace

void System::make_buffers(const Footprint& footprint)
{
  uint32_t first = 0;
  buffer_sums_.resize(platform_.buffers.size());
  for (const auto& spec : platform_.buffers) {
    const uint32_t count = spec.of_nodes()    ? placement_.nodes()
                           : spec.station < 0 ? 1
                                              : platform_.stations[static_cast<size_t>(spec.station)].count;
    buffers_.emplace_back(spec, count, first, flushed_by_object(platform_, footprint, buffers_.size()));
    first += count;
    add_beside_steps(spec.steps, size_t{spec.at_once} * count);
  }
}

/// The steps that at most `pieces` pieces go through at a time.
void System::add_beside_steps(const std::vector<Step>& steps, size_t pieces)
{
  drain_steps_.push_back(static_cast<uint16_t>(beside_steps_.size()));
  beside_steps_.insert(beside_steps_.end(), steps.begin(), steps.end());
  size_t jobs = 1; // of a piece
  for (const auto& step : steps)
    jobs = std::max(jobs, size_t{step.stripes} + 1);
  most_background_ += jobs * pieces;
  if (beside_steps_.size() > UINT16_MAX)
    throw InputError(fmt::format("The drains of the buffers, the pieces of mechanisms and the fetches of the caches of "
                                 "'{}' have {} steps together; the most is {}.",
                                 platform_.file, beside_steps_.size(), UINT16_MAX));
}

/// False when the job does not go on: it waits, or it was a piece and is out. Apart from advance(), whose loop is to
/// stay small.
bool System::at_buffer(JobId id, const Step& step)
{
  if (step.kind == Step::Kind::drained) {
    piece_drained(id);
    return false;
  }
  if (!(step.kind == Step::Kind::enter ? enter_buffer(id, step) : flush_buffer(id, step)))
    return false;
  ++jobs_[id].at;
  return true;
}

/// False when the job waits for room.
bool System::enter_buffer(JobId id, const Step& step)
{
  Buffers& buffers = buffers_[step.target];
  if (step.stripes == Step::spanned)
    return enter_in_parts(id, buffers);
  const uint32_t instance = buffer_instance(id, buffers);
  const bool in           = buffers.instances[instance].enter(id, op_of(id), now_);
  drain(buffers, instance);
  return in;
}

/// Each part of the operation's bytes enters where its stripes lie; there they are adjacent. False when the job waits
/// for room of one.
bool System::enter_in_parts(JobId id, Buffers& buffers)
{
  const StationSpec& spec = platform_.stations[static_cast<size_t>(buffers.spec->station)];
  const uint32_t first    = instance_for(id, spec);
  const Op& op            = op_of(id);
  const auto& parts       = stripes_.cut(op, spec);
  jobs_[id].instance      = static_cast<uint32_t>(parts.size());
  bool all                = false;
  for (const auto& part : parts) {
    const uint32_t instance = neighbour(spec, first, parts.front(), part);
    const JobId job         = fork(id, instance);
    jobs_[job].parts_done   = 1; // it is on its way
    Op write                = op;
    write.size              = op.bytes() > 0 ? part.bytes : 0;
    write.count             = 1;
    write.stride            = 0;
    write.offset            = StripeCutter::offset_there(op.offset, part.turn, spec);
    if (buffers.instances[instance].enter(job, write, now_))
      all = join_part(job);
    drain(buffers, instance);
  }
  return all;
}

/// False when the job waits until what is in is out.
bool System::flush_buffer(JobId id, const Step& step)
{
  Buffers& buffers   = buffers_[step.target];
  const uint32_t own = buffer_instance(id, buffers);
  std::vector<uint32_t> instances;
  if (step.flush == Flush::all) {
    if (buffers.instances[own].flush(id))
      return true;
    instances.push_back(own);
  } else if (buffers.objects.wait(object_key(op_of(id)), step.flush, own, id, instances)) {
    return true;
  }
  for (const uint32_t instance : instances) {
    if (step.flush != Flush::all) {
      buffers.instances[instance].close(object_key(op_of(id)));
      buffers.instances[instance].hurry();
    }
    drain(buffers, instance);
  }
  return false;
}

/// All pieces begin that can.
void System::drain(Buffers& buffers, uint32_t instance)
{
  Buffer& buffer    = buffers.instances[instance];
  const auto number = static_cast<uint32_t>(buffers.spec - platform_.buffers.data());
  while (const auto extent = buffer.next(now_))
    begin_piece({extent->as_write(), extent->serial, extent->epoch, number, instance, buffers.pieces++},
                buffers.spec->of_nodes() ? instance : nobody);
  if (buffers.spec->linger > 0 && buffer.due() > now_ && buffer.due() < buffer.scheduled) {
    buffer.scheduled = buffer.due();
    push(buffer.scheduled, EventKind::lingered, buffers.first_instance + instance);
  }
}

void System::begin_piece(const Piece& piece, uint32_t owner)
{
  const JobId id = new_job();
  Job& job       = jobs_[id];
  job.kind       = draining;
  job.at         = drain_steps_[piece.buffer];
  job.beside     = true;
  job.piece      = true;
  job.owner      = owner;
  pieces_.resize(std::max<size_t>(pieces_.size(), id - placement_.ranks + size_t{1}));
  pieces_[id - placement_.ranks] = piece;
  push(now_, EventKind::resume, id);
}

void System::lingered(uint32_t number)
{
  const auto begins_before           = [&](const Buffers& buffers) { return buffers.first_instance <= number; };
  const auto after                   = std::find_if(buffers_.rbegin(), buffers_.rend(), begins_before);
  Buffers& buffers                   = *after;
  const auto which                   = number - buffers.first_instance;
  buffers.instances[which].scheduled = std::numeric_limits<double>::infinity();
  drain(buffers, which);
}

/// The piece has gone through its steps: there is room again.
void System::piece_drained(JobId id)
{
  const Piece piece = pieces_[id - placement_.ranks];
  free_jobs_.push_back(id);
  if (piece.buffer >= buffers_.size()) {
    if (piece.of != nullptr)
      piece.of->out(piece);
    else if (piece.buffer < first_staged())
      fetched(piece);
    else
      staged_in(piece);
    return;
  }
  Buffers& buffers = buffers_[piece.buffer];
  buffers.instances[piece.instance].drained(piece.bytes, piece.epoch, now_, freed_);
  resume_freed();
  drain(buffers, piece.instance);
  if (staging_out_ && buffers.sums.held == 0 && !is_staging_out())
    push(now_, EventKind::staged, 0);
}

/// Pieces begin to come into buffers before the first phase; false when none is to.
bool System::stage_in()
{
  for (uint32_t which = 0; which < buffers_.size(); ++which) {
    Buffers& buffers = buffers_[which];
    buffers.to_stage.assign(buffers.instances.size(), buffers.spec->stage_in);
    for (uint32_t instance = 0; instance < buffers.instances.size(); ++instance)
      for (uint32_t piece = 0; piece < buffers.spec->at_once; ++piece)
        stage_next(which, instance);
  }
  return staging_in_ > 0;
}

void System::stage_next(uint32_t which, uint32_t instance)
{
  Buffers& buffers     = buffers_[which];
  uint64_t& left       = buffers.to_stage[instance];
  const uint64_t bytes = std::min(left, buffers.spec->unit);
  if (bytes == 0)
    return;
  left -= bytes;
  ++staging_in_;
  Op piece(OpKind::pwrite, which, buffers.pieces, bytes, 0); // each is of an object of its own
  begin_piece({piece, 0, 0, static_cast<uint32_t>(first_staged()) + which, instance, buffers.pieces++},
              buffers.spec->of_nodes() ? instance : nobody);
}

void System::staged_in(const Piece& piece)
{
  --staging_in_;
  stage_next(piece.buffer - static_cast<uint32_t>(first_staged()), piece.instance);
  if (staging_in_ == 0)
    push(now_, EventKind::staged, 0);
}

bool System::is_staging_out() const
{
  return std::any_of(buffers_.begin(), buffers_.end(),
                     [](const Buffers& buffers) { return buffers.spec->stage_out && buffers.sums.held > 0; });
}

/// All that buffers hold of the phase drains before it ends; false when there is nothing.
bool System::stage_out()
{
  staging_out_ = phase_ >= 0 && is_staging_out();
  if (staging_out_)
    for (auto& buffers : buffers_)
      if (buffers.spec->stage_out)
        for (uint32_t instance = 0; instance < buffers.instances.size(); ++instance) {
          buffers.instances[instance].empty();
          drain(buffers, instance);
        }
  return staging_out_;
}

/// The ranks go on.
void System::staged()
{
  if (std::exchange(staging_out_, false)) {
    pass_barrier();
    return;
  }
  times_of_stations(); // those of the first phase begin now
  if (fabric_)
    fabric_->use_since(0, now_);
  start_clients();
}

void System::resume_freed()
{
  for (const JobId freed : freed_) {
    ++jobs_[freed].at;
    push(now_, EventKind::resume, freed);
  }
  freed_.clear();
}

uint32_t System::buffer_instance(JobId id, const Buffers& buffers) const
{
  if (buffers.spec->of_nodes())
    return jobs_[id].owner;
  return buffers.spec->station < 0 ? 0
                                   : instance_for(id, platform_.stations[static_cast<size_t>(buffers.spec->station)]);
}

/// Of the buffer, mechanism or cache that it is of; negative: it is of no station.
int32_t System::station_of_piece(const Piece& piece) const
{
  if (piece.buffer >= first_staged())
    return platform_.buffers[piece.buffer - first_staged()].station;
  return piece.of != nullptr              ? piece.of->spec().station
         : piece.buffer < buffers_.size() ? platform_.buffers[piece.buffer].station
                                          : platform_.caches[piece.buffer - first_fetched_].station;
}

/// Pieces of a server's buffer stay with that server, and so do those of its mechanisms and its cache.
bool System::is_own_station(JobId id, const StationSpec& spec) const
{
  const int32_t own = station_of_piece(pieces_[id - placement_.ranks]);
  return own >= 0 && platform_.stations[static_cast<size_t>(own)].name == spec.name;
}

void System::send_from_buffer(JobId id, Transfer& transfer) const
{
  const Piece& piece = pieces_[id - placement_.ranks];
  if (const int32_t own = station_of_piece(piece); own >= 0) {
    transfer.from_station  = static_cast<uint32_t>(own);
    transfer.from_instance = piece.instance;
  }
}

/// Keyed by buffer and piece, as those of an operation are by client and operation.
std::array<uint32_t, 4> System::words_of_piece(JobId id) const
{
  const Piece& piece = pieces_[id - placement_.ranks];
  return random_words(options_.seed, Stream::drain, piece.buffer, draw_counter(piece.number, jobs_[id].draws));
}

/// What went in came out or is still there.
void System::check_buffers()
{
  for (const auto& buffers : buffers_) {
    uint64_t held = 0;
    bool adds_up  = true;
    for (const auto& buffer : buffers.instances) {
      held += buffer.held();
      adds_up = adds_up && buffer.adds_up();
    }
    const auto& sums = buffers.sums;
    if (!adds_up || sums.entered - sums.drained != held || sums.held != held)
      throw RunError(fmt::format(
          "{} bytes went into the buffer '{}', {} came out and {} are there; this is an error of the simulator.",
          sums.entered, buffers.spec->name, sums.drained, held));
    buffer_sums_[static_cast<size_t>(buffers.spec - platform_.buffers.data())] = sums;
  }
}

} // namespace iocast
