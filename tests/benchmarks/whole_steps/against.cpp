#include "against.h"

#include <cstdio>
#include <map>
#include <string>

#include "comparison.h"

namespace treadle::benchmarks {
namespace {

/// What is measured of the workloads of a chapter.
struct Subject {
  int workers;
  const char* unit;
  double (*value_of)(const Outcome&);
};

double step_time(const Outcome& outcome) {
  return outcome.microseconds_per_step;
}

double work_time(const Outcome& outcome) {
  return outcome.seconds;
}

double start_time(const Outcome& outcome) {
  return outcome.told_seconds_to_step();
}

const std::map<std::string, Subject> kSubjects{
    {"steps", {1, "microseconds per step", step_time}},
    {"saving", {1, "microseconds per step, saving", step_time}},
    {"folds", {2, "seconds, with two workers", work_time}},
    {"start-up", {1, "seconds to the end of the first step", start_time}},
};

constexpr double kSlower = 1.01;  // less cannot be told from where a program's code happens to lie
constexpr double kCoverage = 0.95;

}  // namespace

bool measure_against(const Workload& workload, const std::filesystem::path& folder,
                     const Programs& now, const Programs& before, const Effort& effort) {
  const Subject& subject = kSubjects.at(workload.chapter());
  const std::string execution = now.device == "cpu" ? "eager" : "captured";
  const Runner new_runner("now", now, subject.workers, 1, execution);
  const Runner old_runner("before", before, subject.workers, 1, execution);
  const Assignment assignment{.folder = folder, .save_every = workload.save_every()};
  const auto contestant = [&](const Runner& runner) {
    return Contestant{runner.name(), true, [&] {
                        return Measure{subject.value_of(runner.train(workload, assignment)), {}};
                      }};
  };
  // One training each that is not counted: files come into the system's cache.
  new_runner.train(workload, assignment);
  old_runner.train(workload, assignment);
  const Measured measured = measure_in_turn({contestant(new_runner), contestant(old_runner)},
                                            subject.unit, effort.rounds);
  const Interval interval =
      median_interval(ratios(measured.at("now"), measured.at("before")), kCoverage);
  const bool is_slower = interval.low > kSlower;
  std::printf("  now / before: %.3f (%.3f to %.3f holds the median with %.0f %%)  %s\n",
              interval.median, interval.low, interval.high, 100 * interval.coverage,
              is_slower                     ? "SLOWER"
              : interval.high < 1 / kSlower ? "faster"
                                            : "no difference");
  return is_slower;
}

}  // namespace treadle::benchmarks
