#include "predict/uncertainty_requests.h"

#include <cstdint>
#include <string>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/random.h>
#include <treadle/core/model/abilities/keeps_state.h>
#include <treadle/core/training/predicts_uncertainty.h>

#include "predict/draw_requests.h"

namespace treadle::internal {
namespace {

void expect_dropout(const UncertaintyOptions& uncertainty, const SampleOptions& samples,
                    const RestoredModel& model, bool is_ensemble) {
  const std::int64_t passes = uncertainty.dropout_passes;
  if (passes < 2 || passes > UncertaintyOptions::kMostPasses) {
    throw UsageError("the number of passes with dropout is from 2 to " +
                     std::to_string(UncertaintyOptions::kMostPasses) + ", got " +
                     std::to_string(passes));
  }
  if (samples.count > 0) {
    throw UsageError(
        "samples are drawn from the distribution of one prediction, and passes with dropout are "
        "several; request one of the two");
  }
  if (is_ensemble) {
    throw UsageError(
        "the model is an ensemble, whose members differ without dropout; request its uncertainty "
        "without passes");
  }
  if (!model.outputs.empty()) {
    throw UsageError(
        "the \"outputs\" of this run were fitted to predictions without dropout, and do not hold "
        "for a mean of passes with it; train without \"outputs\" to predict with dropout");
  }
  const auto* const says = dynamic_cast<const KeepsState*>(model.model.get());
  if (says != nullptr && says->keeps_state()) {
    throw UsageError(
        "the model keeps a state from one batch to the next, which passes with dropout would "
        "change; predict without them");
  }
  if (model.dropout_model() == nullptr) {
    throw UsageError(
        "the model has no dropout, so all passes would predict the same; train it with a dropout "
        "above 0, or search with an \"ensemble\" and request its uncertainty");
  }
}

}  // namespace

void expect_uncertainty(const UncertaintyOptions& uncertainty, const SampleOptions& samples,
                        const RestoredModel& model, bool is_ensemble) {
  if (uncertainty.dropout_passes != 0)
    return expect_dropout(uncertainty, samples, model, is_ensemble);
  if (!uncertainty.is_requested || is_ensemble)
    return;
  const Objective& objective = *model.objective;
  for (std::size_t target = 0; target < objective.targets().size(); ++target) {
    const Loss* const loss = objective.predicts(target);
    if (loss == nullptr || loss->ask<PredictsUncertainty>() != nullptr)
      continue;
    throw UsageError("target " + quote_text(objective.targets()[target].name) +
                     " is predicted by one model with " + loss->origin() +
                     ", which predicts no uncertainty; predict with passes of Monte "
                     "Carlo dropout, search with an \"ensemble\", or train with the loss of a "
                     "distribution");
  }
}

std::unique_ptr<engine::DropoutRequest> request_of(const UncertaintyOptions& uncertainty) {
  if (uncertainty.dropout_passes == 0)
    return nullptr;
  auto request = std::make_unique<engine::DropoutRequest>();
  request->passes = uncertainty.dropout_passes;
  request->seed = [streams = RandomStreams(uncertainty.seed)](std::int64_t pass, std::int64_t row) {
    return streams.seed("dropout",
                        {static_cast<std::uint64_t>(pass), static_cast<std::uint64_t>(row)});
  };
  return request;
}

Requests::Requests(const SampleOptions& samples, const UncertaintyOptions& uncertainty)
    : samples(request_of(samples)),
      dropout(request_of(uncertainty)),
      uncertainty(uncertainty.is_requested || dropout != nullptr) {}

}  // namespace treadle::internal
