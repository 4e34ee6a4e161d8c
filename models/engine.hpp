// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/job.hpp"
#include "models/platform.hpp"

#include <nlohmann/json.hpp>
#include <vector>

namespace iocast {

class System;
class Mechanism;

/// What a job that drains a buffer, goes through the steps of a mechanism or fetches into a cache has besides.
struct Piece {
  Op bytes;              ///< that it moves; of a mechanism what it is about
  uint64_t serial   = 0; ///< as buffers and caches number what they give out
  uint64_t epoch    = 0; ///< likewise
  uint32_t buffer   = 0; ///< after buffers come mechanisms with pieces, then caches, then buffers that are staged in
  uint32_t instance = 0;
  uint64_t number   = 0;       ///< among all of that buffer
  Mechanism* of     = nullptr; ///< none: it is of a buffer or a cache
};

/// All that a mechanism may ask of the simulation.
class Engine {
public:
  /// @param buffer number of its pieces, see Piece
  Engine(System& system, const MechanismSpec& spec, uint32_t buffer) : system_(&system), spec_(&spec), buffer_(buffer)
  {
  }

  double now() const;
  /// What the job is to do.
  const Op& op(JobId id) const;
  /// The client node of the job.
  uint32_t node(JobId id) const;
  /// Nodes, instances of its station, or one.
  uint32_t instances() const;
  /// That of them which the job comes to.
  uint32_t instance_of(JobId id) const;
  /// A piece begins with the steps of the mechanism, and Mechanism::out() hears of its end. `about` chooses instances
  /// of stations. @param owner its node, or nobody
  void begin(Mechanism& of, uint32_t instance, uint32_t owner, const Op& about);
  /// That ever began.
  uint64_t pieces() const { return pieces_; }
  /// These go on with their next step; the list is empty afterwards.
  void go_on(std::vector<JobId>& jobs);
  /// The job goes on at this time, which is not before now.
  void go_on(JobId id, double time);

private:
  System* system_;
  const MechanismSpec* spec_;
  uint32_t buffer_;
  uint64_t pieces_ = 0;
};

/// A part of a platform with a state of its own, all instances of it: apart from the stations, limits, visits and locks
/// that every event passes.
class Mechanism {
public:
  Mechanism(const Engine& engine, const MechanismSpec& spec) : engine_(engine), spec_(spec) {}
  virtual ~Mechanism()                   = default;
  Mechanism(const Mechanism&)            = delete;
  Mechanism& operator=(const Mechanism&) = delete;

  const MechanismSpec& spec() const { return spec_; }

  /// A job has come to its step. @return false when it waits until Engine::go_on()
  virtual bool step(JobId id) = 0;
  /// The job is through the steps that its step encloses.
  virtual void leave(JobId) {}
  /// A piece is through its steps.
  virtual void out(const Piece&) {}
  /// Whether pieces are on their way, which may hold slots and locks.
  virtual bool is_busy() const { return false; }
  /// At the end of a phase. @throws RunError when its sums don't add up
  virtual void check() const {}
  /// What it did since the last report.
  virtual nlohmann::ordered_json report() = 0;

protected:
  Engine engine_;

private:
  const MechanismSpec& spec_;
};

} // namespace iocast
