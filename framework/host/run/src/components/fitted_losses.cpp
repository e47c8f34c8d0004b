#include "components/fitted_losses.h"

#include <string>
#include <utility>

#include <treadle/core/components/plugin_call.h>
#include <treadle/core/training/fits_targets.h>

namespace treadle::internal {
namespace {

constexpr const char* kLosses = "losses";

}  // namespace

FittedLosses::FittedLosses(std::vector<Objective::Term> terms)
    : given_(std::move(terms)), terms_(given_), states_(given_.size()), fitted_(given_.size()) {}

FittedLosses::~FittedLosses() = default;

void FittedLosses::fit(const RowReader& data, const RowList& rows) {
  for (std::size_t term = 0; term < given_.size(); ++term) {
    const Loss& loss = *given_[term].loss;
    const auto* fits = loss.ask<FitsTargets>();
    if (fits == nullptr)
      continue;
    StateDict state =
        call_plugin(loss, "fit", [&] { return fits->fit(data, rows, given_[term].target); });
    if (!state.empty())
      load(term, std::move(state));
  }
}

void FittedLosses::load(std::size_t term, StateDict state) {
  const Loss& loss = *given_[term].loss;
  const auto* fits = loss.ask<FitsTargets>();
  if (fits == nullptr)
    refuse_result(loss, "fitted", "is not fitted to targets, and a state was saved for it");
  fitted_[term] = call_plugin(loss, "fitted", [&] { return fits->fitted(state); });
  if (fitted_[term] == nullptr)
    refuse_result(loss, "fitted", "returned no loss");
  fitted_[term]->set_origin(loss.origin());
  terms_[term].loss = fitted_[term].get();
  states_[term] = std::move(state);
}

void FittedLosses::save_in(StateDict& preprocessing) const {
  StateDict saved;
  for (std::size_t term = 0; term < states_.size(); ++term) {
    if (!states_[term].empty())
      saved.put(std::to_string(term), states_[term]);
  }
  if (!saved.empty())
    preprocessing.put(kLosses, std::move(saved));
}

void FittedLosses::load_from(const StateDict& preprocessing) {
  if (!preprocessing.has_part(kLosses))
    return;
  const StateDict& saved = preprocessing.part(kLosses);
  for (std::size_t term = 0; term < given_.size(); ++term) {
    if (const std::string key = std::to_string(term); saved.has_part(key))
      load(term, saved.part(key));
  }
}

}  // namespace treadle::internal
