// SPDX-License-Identifier: Apache-2.0
//
// A job: where it is on its route and the random numbers it draws. Those of others' work, of buffers and of parts are
// made for the time they are needed.
#include "models/system.hpp"

namespace iocast {

/// A job that is nobody's client, for the time of one visit.
JobId System::new_job()
{
  if (free_jobs_.empty()) {
    free_jobs_.push_back(static_cast<JobId>(jobs_.size()));
    jobs_.emplace_back();
    links_.push_back(nobody);
    if (!exposed_.empty())
      exposed_.emplace_back();
  }
  const JobId id = free_jobs_.back();
  free_jobs_.pop_back();
  jobs_[id] = {};
  return id;
}

const Step& System::step_of(JobId id) const
{
  const Job& job = jobs_[id];
  return job.beside ? beside_steps_[job.at] : platform_.routes[static_cast<size_t>(job.kind)].steps[job.at];
}

double System::draw(JobId id, const Step& step)
{
  return step.constant >= 0 ? step.constant : draw(id, *step.law);
}

double System::draw(JobId id, const Law& law)
{
  return law.at(uniform(id));
}

/// The next number of the job, in (0, 1).
double System::uniform(JobId id)
{
  Job& job        = jobs_[id];
  const auto word = job.draws++ % 4U;
  if (word > 0)
    return to_uniform(job.words[word - 1]);
  // Keyed by client and operation, so that the same operation draws the same on any platform: common random numbers.
  const auto words = is_client(id)
                         ? random_words(options_.seed, job.kind == OpKind::phase ? Stream::wake : Stream::service, id,
                                        draw_counter(job.operations, job.draws))
                         : words_of_piece(id);
  job.words        = {words[1], words[2], words[3]};
  return to_uniform(words[0]);
}

} // namespace iocast
