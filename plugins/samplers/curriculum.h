#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/sampler.h>

namespace treadle::samplers {

/// `curriculum`: easy rows first (E. A. Platanios et al., "Competence-based Curriculum Learning for
/// Neural Machine Translation", NAACL 2019). Pass p draws from the easiest share c(p) of the rows,
/// with T = `passes` and c0 = `start_fraction`:
///
///     linear:  c(p) = min(1, c0 + (1 - c0) p / T)
///     root:    c(p) = min(1, sqrt(c0^2 + (1 - c0^2) p / T))
///
/// As many positions as rows: the share is gone through again and again, each time in another
/// random order. From pass T on each row comes once, and nothing is sorted or read.
class Curriculum final : public Sampler {
 public:
  explicit Curriculum(const Config& config);

  /// c(p).
  double competence(std::int64_t pass) const;

 private:
  std::unique_ptr<const SampleOrder> do_order(const SampleRequest& request) const override;
  /// One value per row of the request; larger is harder.
  std::vector<double> difficulties(const SampleRequest& request) const;
  std::vector<double> column_values(const SampleRequest& request) const;

  std::string by_;
  std::optional<std::string> input_;
  double start_fraction_ = 0.1;
  std::int64_t passes_ = 10;
  double (*pacing_)(double start, double progress) = nullptr;
};

}  // namespace treadle::samplers
