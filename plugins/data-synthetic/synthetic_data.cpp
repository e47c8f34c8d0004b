#include "synthetic_data.h"

#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::synthetic {
namespace {

at::Tensor tensor_of(std::vector<double>& values, at::IntArrayRef shape, at::ScalarType dtype) {
  return at::from_blob(values.data(), shape, at::kDouble)
      .to(dtype, /*non_blocking=*/false,
          /*copy=*/true);
}

void check_task(const std::string& component, Task task, bool makes_classes) {
  if (makes_classes && task == Task::kRegression) {
    throw DataError(component +
                    " makes classes, but the task is \"regression\"; friedman1 and ar_series make "
                    "numbers");
  }
  if (!makes_classes && task == Task::kClassification) {
    throw DataError(component +
                    " makes numbers, but the task is \"classification\"; moons and spirals make "
                    "classes");
  }
}

}  // namespace

SyntheticData::SyntheticData(const Config& config, std::string component)
    : component_(std::move(component)), seed_(config.find<std::uint64_t>("seed")) {}

SyntheticData::~SyntheticData() = default;

void SyntheticData::do_open(const OpenRequest& request) {
  if (!seed_)
    seed_ = request.seed;
  MadeRows made = make_rows(RandomStreams(*seed_).bits(component_));
  const bool has_classes = !made.classes.empty();
  check_task(component_, request.task, has_classes);
  const auto width = static_cast<std::int64_t>(made.columns.size());
  const auto rows = static_cast<std::int64_t>(made.features.size()) / width;

  MatrixRows::Matrices matrices;
  matrices.dtype = request.dtype;
  PortSpec port{"features", {width}, {}, Role::kFeatures, request.dtype};
  for (std::string& name : made.columns)
    port.columns.push_back({std::move(name), {}});
  matrices.spec.inputs = {std::move(port)};
  matrices.inputs = {tensor_of(made.features, {rows, width}, request.dtype)};
  if (request.purpose != OpenRequest::Purpose::kPredict) {
    matrices.spec.targets = {has_classes
                                 ? class_target(std::move(made.target), std::move(made.classes))
                                 : number_target(std::move(made.target))};
    matrices.targets = {has_classes
                            ? at::from_blob(made.target_classes.data(), {rows}, at::kLong).clone()
                            : tensor_of(made.target_numbers, {rows, 1}, request.dtype)};
  }
  if (made.is_series)
    matrices.timestamps = at::arange(width, width + rows, at::kDouble);
  matrices.describe_row = [component = component_](std::int64_t row) {
    return "row " + std::to_string(row) + " of " + component;
  };
  rows_.emplace(std::move(matrices));
}

StateDict SyntheticData::do_state() const {
  StateDict state;
  if (seed_)
    state.put("seed", nlohmann::json(*seed_));
  return state;
}

void SyntheticData::do_load_state(const StateDict& state) {
  const nlohmann::json& seed = state.value("seed");
  if (!seed.is_number_unsigned())
    throw StorageError("saved seed of " + component_ + " is not one: " + seed.dump());
  seed_ = seed.get<std::uint64_t>();
}

void* SyntheticData::do_ask(std::string_view interface_id) {
  if (interface_id == RowReader::kInterface && rows_)
    return static_cast<RowReader*>(&*rows_);
  return nullptr;
}

}  // namespace treadle::synthetic
