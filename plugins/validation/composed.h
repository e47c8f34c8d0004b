#pragma once

#include <cstdint>
#include <memory>

#include <treadle/base/component.h>
#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>

#include "split_parameters.h"
#include "test_rows.h"

namespace treadle::validation {

/// `repeated`: the folds of another splitter several times, each time with other random numbers:
/// scikit-learn's RepeatedKFold for any splitter.
class Repeated final : public CrossValidator {
 public:
  Repeated(const Config& config, const ComponentContext& context);
  ~Repeated() override;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override;
  ValidationPlan folds_of(const SplitRequest& request) const;

  std::int64_t repeats_ = 10;
  std::unique_ptr<CrossValidator> splitter_;
  TestRows test_;
  OwnSeed seed_;
};

/// `nested`: the rows that an outer fold holds out test a model whose training was settled by inner
/// folds of the other rows, so that they chose nothing.
class Nested final : public CrossValidator {
 public:
  Nested(const Config& config, const ComponentContext& context);
  ~Nested() override;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override;

  std::unique_ptr<CrossValidator> outer_;
  std::unique_ptr<CrossValidator> inner_;
  OwnSeed seed_;
};

}  // namespace treadle::validation
