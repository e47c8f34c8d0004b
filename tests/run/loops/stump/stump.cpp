#include "stump.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/data/batch_stream.h>
#include <treadle/core/training/training_session.h>
#include <treadle/plugin.h>

namespace treadle::stumps {
namespace {

/// Of some rows: Σ c, and for each output Σ c y.
struct Sums {
  explicit Sums(std::size_t width) : answers(width, 0) {}

  void add(double its_weight, const double* its_answers) {
    ++rows;
    weight += its_weight;
    for (std::size_t k = 0; k < answers.size(); ++k)
      answers[k] += its_weight * its_answers[k];
  }
  /// How much smaller Σ c ‖y - mean‖² is than Σ c ‖y‖².
  double gain() const {
    double squares = 0;
    for (const double sum : answers)
      squares += sum * sum;
    return weight > 0 ? squares / weight : 0;
  }
  std::vector<double> means() const {
    std::vector<double> means = answers;
    for (double& mean : means)
      mean = weight > 0 ? mean / weight : 0;
    return means;
  }

  std::int64_t rows = 0;
  double weight = 0;
  std::vector<double> answers;
};

/// Targets of the stump: numbers as they are, classes as 1 for the right one.
at::Tensor answers_of(const TargetBatch& target, const TargetSpec& spec) {
  const at::Tensor& values = target.values();
  return spec.kind == TargetKind::kClasses
             ? at::one_hot(values.reshape({-1}), spec.class_count()).to(at::kDouble)
             : values.reshape({values.size(0), -1}).to(at::kDouble);
}

}  // namespace

Stump fit_stump(const at::Tensor& features, const at::Tensor& answers, const at::Tensor& weights,
                std::int64_t min_rows) {
  const std::int64_t rows = features.size(0);
  const auto width = static_cast<std::size_t>(answers.size(1));
  const at::Tensor y = answers.contiguous();
  const at::Tensor c = weights.defined() ? weights.contiguous() : weights;
  const auto add = [&](Sums& sums, std::int64_t row) {
    sums.add(c.defined() ? c.data_ptr<double>()[row] : 1,
             y.data_ptr<double>() + row * static_cast<std::int64_t>(width));
  };
  Sums all(width);
  for (std::int64_t row = 0; row < rows; ++row)
    add(all, row);
  Stump best{0, std::numeric_limits<double>::max(), all.means(), all.means()};
  double best_gain = all.gain();
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  for (std::int64_t feature = 0; feature < features.size(1); ++feature) {
    const at::Tensor column = features.select(1, feature).contiguous();
    const auto* const x = column.data_ptr<double>();
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] < x[b]; });
    Sums below(width);
    for (std::size_t i = 0; i + 1 < order.size(); ++i) {
      add(below, order[i]);
      const double here = x[order[i]];
      const double next = x[order[i + 1]];
      if (here == next || below.rows < min_rows || rows - below.rows < min_rows)
        continue;
      Sums above(width);
      above.weight = all.weight - below.weight;
      for (std::size_t k = 0; k < width; ++k)
        above.answers[k] = all.answers[k] - below.answers[k];
      const double gain = below.gain() + above.gain();
      if (gain <= best_gain * (1 + 1e-12))
        continue;
      best_gain = gain;
      best = {feature, here + (next - here) / 2, below.means(), above.means()};
    }
  }
  return best;
}

StumpModel::StumpModel(const ModelSpec& spec)
    : width_(spec.outputs.front().width()), dtype_(spec.dtype) {
  stump_.below.assign(static_cast<std::size_t>(width_), 0);
  stump_.above = stump_.below;
}

void StumpModel::forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) {
  const at::Tensor is_below = inputs[0].select(1, stump_.feature).le(stump_.threshold).unsqueeze(1);
  const at::TensorOptions options = inputs[0].options().dtype(dtype_);
  outputs[0] =
      at::where(is_below, at::tensor(stump_.below, options), at::tensor(stump_.above, options));
}

std::string StumpModel::extra_state() const {
  return nlohmann::json{{"feature", stump_.feature},
                        {"threshold", stump_.threshold},
                        {"below", stump_.below},
                        {"above", stump_.above}}
      .dump();
}

void StumpModel::load_extra_state(std::string_view bytes) {
  try {
    const nlohmann::json state = nlohmann::json::parse(bytes);
    Stump stump{state.at("feature"), state.at("threshold"), state.at("below"), state.at("above")};
    const auto width = static_cast<std::size_t>(width_);
    if (stump.below.size() != width || stump.above.size() != width || stump.feature < 0)
      throw StorageError("a stump with other answers than the model's");
    stump_ = std::move(stump);
  } catch (const nlohmann::json::exception& error) {
    throw StorageError(std::string("no stump: ") + error.what());
  }
}

std::shared_ptr<Model> StumpProvider::do_create(const ModelSpec& spec) const {
  if (spec.inputs.size() != 1 || spec.inputs[0].shape.size() != 1 || spec.outputs.size() != 1)
    throw DataError("a stump takes one table and has one target");
  return std::make_shared<StumpModel>(spec);
}

LoopNeeds StumpTraining::do_needs() const {
  LoopNeeds needs;
  needs.updates = false;
  return needs;
}

void StumpTraining::do_train(TrainingSession& session) {
  auto* const model = dynamic_cast<StumpModel*>(&session.model());
  if (model == nullptr)
    throw DataError("the loop \"fit_stump\" fits the model \"stump\"; set \"model\" to it");
  const TargetSpec& spec = session.objective().targets().front();
  while (session.next_epoch()) {
    const std::optional<Batch> rows = read_all(*session.read("training"));
    TREADLE_EXPECTS(rows, "there are no rows to train on");
    const auto target = TargetBatch::transformed(*rows, 0, spec);
    const at::Tensor weights =
        target.weights().defined() ? target.weights().to(at::kDouble) : at::Tensor();
    Stump stump =
        fit_stump(rows->inputs[0].to(at::kDouble), answers_of(target, spec), weights, min_rows_);
    if (spec.kind == TargetKind::kClasses) {
      constexpr double kLeast = 1e-3;  // of the rows on a side, so that no class is impossible
      for (std::vector<double>* answers : {&stump.below, &stump.above}) {
        for (double& share : *answers)
          share = std::log(std::max(share, kLeast));
      }
    }
    model->set(std::move(stump));
    session.finish_epoch(session.evaluate("training").loss);
  }
}

}  // namespace treadle::stumps
