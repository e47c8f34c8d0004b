#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <treadle/search/pruner.h>

namespace treadle::pruners {

/// `population_based`: population-based training (M. Jaderberg et al., "Population based training
/// of neural networks", 2017) with truncation selection.
///
/// The first `population` trials are its members. All of them pause every `interval` epochs. Then
/// each of the worst `quantile_fraction` is ended, and a new trial takes its place: it begins with
/// the weights and the optimizer of one of the best, the first for the worst, and with values near
/// that one's. A value is multiplied by one of two factors, or drawn anew; of choices a neighbour
/// is taken. All members wait for each other, so which trials there are depends on no timing.
class PopulationBased final : public Pruner {
 public:
  explicit PopulationBased(const Config& config);

 private:
  std::optional<std::int64_t> do_next_step(std::int64_t trial, std::int64_t after) const override;
  PrunerVerdict do_judge(const Trial& trial, const StudyView& study) const override;
  NextJob do_next_job(const StudyView& study) const override;
  std::string do_why_idle(std::int64_t max_trials) const override;

  /// Near the values of `trial`, for the trial `number`.
  Point explore(const Trial& trial, std::int64_t number, const StudyView& study) const;

  std::int64_t population_;
  std::int64_t interval_;
  double quantile_fraction_;
  double resample_probability_;
  std::vector<double> perturbation_factors_;  // below 1, above 1
};

}  // namespace treadle::pruners
