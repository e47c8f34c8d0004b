#pragma once

#include <memory>

#include <treadle/base/config.h>
#include <treadle/core/data/sampler.h>

namespace treadle::samplers {

/// `sequential`: each row once, in the order of the request.
class Sequential final : public Sampler {
 public:
  explicit Sequential(const Config&) {}

 private:
  std::unique_ptr<const SampleOrder> do_order(const SampleRequest& request) const override {
    return rows_in_order(request.rows);
  }
};

}  // namespace treadle::samplers
