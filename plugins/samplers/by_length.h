#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <treadle/base/config.h>
#include <treadle/core/data/sampler.h>

namespace treadle::samplers {

/// `by_length`: each row once, in batches of rows of similar length (bucketing).
///
/// Rows are shuffled and cut into pools of `pool` batches; a pool is sorted by length and cut into
/// batches; the full batches of all pools are shuffled, and a last batch with fewer rows stays
/// last. An order keeps one number per row.
class ByLength final : public Sampler {
 public:
  explicit ByLength(const Config& config);

 private:
  std::unique_ptr<const SampleOrder> do_order(const SampleRequest& request) const override;

  std::optional<std::string> input_;
  std::int64_t pool_ = 50;
};

}  // namespace treadle::samplers
