#include "augmentation.h"

#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::augmentation {

Augmentation::Augmentation(const Config& config, std::string component)
    : component_(std::move(component)), stream_(component_ + config.pointer()) {}

Augmentation::~Augmentation() = default;

void Augmentation::do_fit(const RowReader& reader, const RowList& training_rows) {
  before_.inputs = reader.spec().inputs;
  before_.targets = reader.spec().targets;
  prepare(before_);
  learn(reader, training_rows);
}

void Augmentation::do_apply(Batch& batch, const ApplyContext& context) const {
  TREADLE_EXPECTS(batch.inputs.size() == before_.inputs.size(),
                  "the batch has other inputs than the data this transform was fitted on");
  change(batch, context);
}

StateDict Augmentation::do_state() const {
  StateDict state;
  state.put("before", to_json(before_));
  store(state);
  return state;
}

void Augmentation::do_load_state(const StateDict& state) {
  before_ = data_spec_from_json(state.value("before"));
  prepare(before_);
  restore(state);
}

}  // namespace treadle::augmentation
