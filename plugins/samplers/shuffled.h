#pragma once

#include <memory>

#include <treadle/base/config.h>
#include <treadle/core/data/sampler.h>

namespace treadle::samplers {

/// `shuffled`: each row once, in a random order. Takes no memory: any position is computed.
class Shuffled final : public Sampler {
 public:
  explicit Shuffled(const Config&) {}

 private:
  std::unique_ptr<const SampleOrder> do_order(const SampleRequest& request) const override {
    return rows_shuffled(request.rows, request.seed);
  }
};

}  // namespace treadle::samplers
