#include <treadle/testing/search/study_of_jobs.h>

#include <treadle/base/random.h>
#include <treadle/search/pruner.h>
#include <treadle/testing/search/tuner_contract.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

namespace treadle::testing {
namespace {

const SearchSpace& space_of_studies() {
  static const SearchSpace space = mixed_space();
  return space;
}

const RandomStreams& random_of_studies() {
  static const RandomStreams random(11);
  return random;
}

}  // namespace

StudyView study_view(std::span<const Trial> trials, std::int64_t max_trials, bool may_start,
                     bool maximizes) {
  return {trials, max_trials, may_start, maximizes, &space_of_studies(), &random_of_studies()};
}

Point suggested_point(std::int64_t trial) {
  RandomBits bits(random_of_studies().seed("point", {static_cast<std::uint64_t>(trial)}));
  return space_of_studies().random(bits);
}

void PrintTo(const JobDone& job, std::ostream* out) {
  *out << "trial " << job.trial << " from " << job.begin << " to " << job.end << ", state "
       << static_cast<int>(job.state);
}

FinishedStudy run_study(const Pruner& pruner, const StudyOfJobs& study) {
  return StudyRunner(pruner, study).run();
}

}  // namespace treadle::testing
