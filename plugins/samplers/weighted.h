#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/sampler.h>

namespace treadle::samplers {

/// `weighted`: rows drawn in proportion to weights, as torch.utils.data.WeightedRandomSampler.
///
/// With replacement, draw i of a pass is a function of the seed and i: a uniform number, looked up
/// in the cumulative sums of the weights. Without, the order is that of the keys u^(1/weight),
/// largest first (P. S. Efraimidis & P. G. Spirakis, "Weighted random sampling with a reservoir",
/// 2006): the same as drawing one row after the other from those that are left. An order keeps one
/// number per row.
class Weighted final : public Sampler {
 public:
  explicit Weighted(const Config& config);
  ~Weighted() override;

 private:
  std::int64_t do_samples(std::int64_t rows) const override { return samples_.value_or(rows); }
  std::unique_ptr<const SampleOrder> do_order(const SampleRequest& request) const override;

  /// One for each row of the request; finite, not negative, and not all 0.
  std::vector<double> weights(const SampleRequest& request) const;
  std::vector<double> by_class(const SampleRequest& request) const;
  std::vector<double> factors_of(const std::vector<std::string>& class_names) const;
  std::unique_ptr<const SampleOrder> without_replacement(const SampleRequest& request,
                                                         const std::vector<double>& weights) const;

  bool by_class_ = true;
  std::optional<std::string> target_;
  std::map<std::string, double> class_weights_;
  bool replacement_ = true;
  std::optional<std::int64_t> samples_;
};

}  // namespace treadle::samplers
