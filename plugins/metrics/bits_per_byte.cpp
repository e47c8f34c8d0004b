#include "bits_per_byte.h"

#include <cmath>
#include <vector>

#include <ATen/ops/tensor.h>

#include <treadle/core/data/tokenizer.h>

#include "positions.h"
#include "score_metrics.h"
#include "target_check.h"

namespace treadle::metrics {

void BitsPerByte::do_start(const TargetSpec& target) {
  expect_classes("bits_per_byte", target);
  std::vector<double> bytes;
  bytes.reserve(target.class_names.size());
  for (const std::string& name : target.class_names)
    bytes.push_back(static_cast<double>(bytes_of_token_name(name)));
  bytes_of_class_ = at::tensor(bytes, at::kDouble);
}

void BitsPerByte::do_reset() {
  nats_ = 0;
  bytes_ = 0;
}

void BitsPerByte::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  nats_ += weighted_sum(minus_log_likelihood(positions), positions.weights()).item<double>();
  bytes_ += weighted_sum(bytes_of_class_.index_select(0, positions.actual()), positions.weights())
                .item<double>();
}

void BitsPerByte::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const BitsPerByte&>(other);
  nats_ += theirs.nats_;
  bytes_ += theirs.bytes_;
}

MetricResult BitsPerByte::do_compute() const {
  const Number bits = weighted_mean(nats_ / std::log(2.0), bytes_);
  return {{{"bits_per_byte", bits, Direction::kLowerIsBetter}}, {}};
}

StateDict BitsPerByte::do_state() const {
  StateDict state;
  state.put_number("nats", nats_);
  state.put_number("bytes", bytes_);
  return state;
}

void BitsPerByte::do_load_state(const StateDict& state) {
  nats_ = state.number("nats");
  bytes_ = state.number("bytes");
}

}  // namespace treadle::metrics
