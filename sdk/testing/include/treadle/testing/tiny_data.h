#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>
#include <treadle/core/batch.h>
#include <treadle/core/data_provider.h>
#include <treadle/core/matrix_rows.h>
#include <treadle/core/task_random.h>

/// Small data sets that are the same everywhere: as matrices, as batches (`gathered` of batches.h),
/// or as a DataProvider, TinyData.
namespace treadle::testing {

/// Rows of `2a - b + 0.5` and a little noise, all of it times `scale`; weighted from 0.5 to 1.5.
inline Batch noisy_line(std::int64_t count, std::uint64_t seed, double scale = 1) {
  const TaskRandom random(seed);
  const at::Tensor inputs = at::randn({count, 2}, at::kDouble);
  const at::Tensor slopes = at::tensor({2.0, -1.0}, at::kDouble).view({2, 1});
  const at::Tensor noise = at::randn({count, 1}, at::kDouble).div(20);
  const at::Tensor targets = inputs.matmul(slopes).add(0.5).add(noise).mul(scale);
  return {{inputs},
          targets,
          targets,
          at::rand({count}, at::kDouble).add(0.5),
          at::arange(count, at::kLong)};
}

/// Regression: the columns "a" and "b", and the number "y" of noisy_line().
inline MatrixRows::Matrices tiny_regression(std::int64_t rows = 40, std::uint64_t seed = 1,
                                            at::ScalarType dtype = at::kFloat) {
  const Batch line = noisy_line(rows, seed);
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {2}, {{"a", {}, false}, {"b", {}, false}}}};
  matrices.spec.target = {"y", TargetKind::kNumbers, 1, {}};
  matrices.spec.has_weights = true;
  matrices.inputs = {line.inputs[0].to(dtype)};
  matrices.targets = line.targets.to(dtype);
  matrices.weights = line.weights.to(dtype);
  return matrices;
}

/// Classification: points around the corners of a regular polygon, the columns "x" and "y"; the
/// classes "corner-0", "corner-1", … take turns.
inline MatrixRows::Matrices tiny_classification(std::int64_t rows = 60, std::int64_t classes = 3,
                                                std::uint64_t seed = 1,
                                                at::ScalarType dtype = at::kFloat) {
  constexpr double kFullTurn = 6.283185307179586;
  const TaskRandom random(seed);
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {2}, {{"x", {}, false}, {"y", {}, false}}}};
  matrices.spec.target = {"corner", TargetKind::kClasses, 1, {}};
  for (std::int64_t c = 0; c < classes; ++c)
    matrices.spec.target.class_names.push_back("corner-" + std::to_string(c));
  matrices.targets = at::arange(rows, at::kLong).remainder(classes);
  const at::Tensor angles =
      matrices.targets.to(at::kDouble).mul(kFullTurn / static_cast<double>(classes));
  const at::Tensor noise = at::randn({rows, 2}, at::kDouble).div(5);
  matrices.inputs = {at::stack({angles.cos(), angles.sin()}, 1).add(noise).to(dtype)};
  return matrices;
}

/// Sequences: the last `length` values of a noisy sine, [length, 1] a row, and the number "next".
/// Each row has its time.
inline MatrixRows::Matrices tiny_sequences(std::int64_t rows = 40, std::int64_t length = 8,
                                           std::uint64_t seed = 1,
                                           at::ScalarType dtype = at::kFloat) {
  const TaskRandom random(seed);
  const at::Tensor time = at::arange(rows + length, at::kDouble);
  const at::Tensor values =
      time.mul(0.7).sin().add(at::randn({rows + length}, at::kDouble).div(20)).to(dtype);
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"series", {length, 1}, {}}};
  matrices.spec.target = {"next", TargetKind::kNumbers, 1, {}};
  matrices.inputs = {values.unfold(0, length, 1).slice(0, 0, rows).unsqueeze(2).contiguous()};
  matrices.targets = values.slice(0, length).unsqueeze(1).contiguous();
  matrices.timestamps = time.slice(0, length).contiguous();
  return matrices;
}

/// A data provider of such matrices:
///
///     TinyData data([](at::ScalarType dtype) { return tiny_regression(40, 1, dtype); });
///     data.open({});
/// What a fake does otherwise it overrides.
class TinyData : public DataProvider {
 public:
  using Make = std::function<MatrixRows::Matrices(at::ScalarType dtype)>;

  explicit TinyData(Make make) : make_(std::move(make)) {}

 protected:
  const MatrixRows& rows() const { return *rows_; }

  void* do_ask(std::string_view interface_id) override {
    return interface_id == RowReader::kInterface && rows_ ? static_cast<RowReader*>(rows_.get())
                                                          : nullptr;
  }

  void do_open(const OpenRequest& request) override {
    TREADLE_EXPECTS(request.purpose == OpenRequest::Purpose::kTrain || loaded_,
                    "evaluating and predicting need the state of the training's data");
    MatrixRows::Matrices matrices = make_(request.dtype);
    if (request.purpose == OpenRequest::Purpose::kPredict) {
      matrices.spec.target = {};
      matrices.targets = at::Tensor();
    }
    rows_ = std::make_unique<MatrixRows>(std::move(matrices));
  }
  const DataSpec& do_spec() const override { return rows_->spec(); }
  std::string do_content_hash() const override { return rows_->content_hash(); }

  StateDict do_state() const override {
    StateDict state;
    state.put("spec", to_json(spec()));
    return state;
  }
  void do_load_state(const StateDict& state) override {
    loaded_ = data_spec_from_json(state.value("spec"));
  }

 private:
  Make make_;
  std::unique_ptr<MatrixRows> rows_;
  std::optional<DataSpec> loaded_;
};

}  // namespace treadle::testing
