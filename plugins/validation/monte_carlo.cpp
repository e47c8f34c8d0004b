#include "monte_carlo.h"

#include <utility>

#include <treadle/base/error.h>

#include "stratified_target.h"

namespace treadle::validation {

MonteCarlo::MonteCarlo(const Config& config)
    : splits_(config.get_or("splits", std::int64_t{10})),
      validation_size_(find_size(config, "validation_size").value_or(Size(0.2))),
      train_size_(find_size(config, "train_size")),
      stratify_(stratify_in(config)),
      stratify_by_(config.find<std::string>("stratify_by")),
      keep_groups_(config.get_or("keep_groups", false)),
      refit_(config.get_or("refit", true)),
      test_(config, stratify_by_),
      seed_(config) {
  if (keep_groups_ && (stratify_.value_or(false) || stratify_by_)) {
    config.fail(stratify_by_ ? "stratify_by" : "stratify",
                "has no effect with \"keep_groups\": true, which keeps whole groups together");
  }
  test_.expect_model(config, refit_);
}

MonteCarlo::~MonteCarlo() = default;

SetAside MonteCarlo::how(const SplitRequest& request) const {
  if (keep_groups_) {
    if (!request.groups.defined()) {
      throw DataError(
          "validation has \"keep_groups\": true, but the data has no groups; \"group\" of csv and "
          "\"groups\" of npy name them");
    }
    return {SetAside::By::kGroup};
  }
  const std::optional<std::size_t> target =
      stratify_.value_or(true) ? stratified_target(request, stratify_by_) : std::nullopt;
  if (stratify_.value_or(false) && !target)
    fail_without_classes(request, "\"stratify\": true");
  SetAside how{target ? SetAside::By::kClass : SetAside::By::kRow};
  how.target = target.value_or(0);
  return how;
}

ValidationPlan MonteCarlo::do_plan(const SplitRequest& request) const {
  return test_.plan(seed_.in(request), how(request),
                    [&](const SplitRequest& rest) { return folds_of(rest); });
}

ValidationPlan MonteCarlo::folds_of(const SplitRequest& request) const {
  const std::int64_t held_out = validation_size_.of(request.rows);
  const std::int64_t left = request.rows - held_out;
  if (left < 1) {
    throw DataError("\"validation_size\": " + validation_size_.text() +
                    " leaves none for training: expected fewer than the " +
                    std::to_string(request.rows) + " rows");
  }
  const std::int64_t trained = train_size_ ? train_size_->of(request.rows) : left;
  if (trained > left) {
    throw DataError("\"train_size\": " + train_size_->text() +
                    " and \"validation_size\": " + validation_size_.text() + " are more than the " +
                    std::to_string(request.rows) + " rows");
  }
  ValidationPlan plan;
  for (std::int64_t i = 0; i < splits_; ++i) {
    SplitRequest own = request;
    own.random = request.random.part("monte_carlo", static_cast<std::uint64_t>(i));
    Fold fold;
    fold.name = "split-" + std::to_string(i + 1);
    fold.validation = rows_set_aside(own, held_out, how(own));
    fold.training = all_rows_but(request.rows, fold.validation);
    if (const auto rest = static_cast<std::int64_t>(fold.training.size()); trained < rest) {
      SplitRequest others = own.part(fold.training);
      others.random = own.random.part("training", 0);
      fold.training = fold.training.at(rows_set_aside(others, trained, how(others)));
    }
    plan.folds.push_back(std::move(fold));
  }
  if (refit_)
    plan.refit = refit_on(all_rows_but(request.rows, {}));
  return plan;
}

}  // namespace treadle::validation
