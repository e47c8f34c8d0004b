#include "synthetic_data.h"

#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/core/data/chunked_stream.h>

namespace treadle::synthetic {
namespace {

at::Tensor tensor_of(std::vector<double>& values, at::IntArrayRef shape) {
  return at::from_blob(values.data(), shape, at::kDouble).clone();
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
    : component_(std::move(component)),
      seed_(config.find<std::uint64_t>("seed")),
      is_endless_(config.has("rows") && config.json().at("rows").is_string()) {}

std::int64_t SyntheticData::row_count(const Config& config, std::int64_t usual) {
  constexpr std::int64_t kChunk = 1024;
  if (!config.has("rows"))
    return usual;
  const nlohmann::json& rows = config.json().at("rows");
  return rows.is_string() ? kChunk : rows.get<std::int64_t>();
}

/// Chunk k is made from random bits of its own, so any of them can be made at any time.
class SyntheticData::Endless final : public ChunkedStream {
 public:
  Endless(const SyntheticData& data, std::int64_t batch_size)
      : ChunkedStream(batch_size), data_(data) {}

 private:
  Chunk do_load(std::int64_t number, Batch& rows) override {
    const RandomStreams random(*data_.seed_);
    MatrixRows::Matrices made = data_.matrices_of(
        data_.make_rows(random.bits(data_.component_, {static_cast<std::uint64_t>(number)})));
    rows.inputs = std::move(made.inputs);
    rows.targets = std::move(made.targets);
    return Chunk::kRows;
  }

  const SyntheticData& data_;
};

SyntheticData::~SyntheticData() = default;

void SyntheticData::do_open(const OpenRequest& request) {
  if (!seed_)
    seed_ = request.seed;
  request_ = request;
  const RandomStreams random(*seed_);
  MadeRows made = make_rows(is_endless_ ? random.bits(component_, {0}) : random.bits(component_));
  check_task(component_, request.task, !made.classes.empty());
  rows_.emplace(matrices_of(std::move(made)));
}

MatrixRows::Matrices SyntheticData::matrices_of(MadeRows made) const {
  const OpenRequest& request = request_;
  const bool has_classes = !made.classes.empty();
  const auto width = static_cast<std::int64_t>(made.columns.size());
  const auto rows = static_cast<std::int64_t>(made.features.size()) / width;

  MatrixRows::Matrices matrices;
  PortSpec port{"features", {width}, {}, Role::kFeatures, at::kDouble};
  for (std::string& name : made.columns)
    port.columns.push_back({std::move(name), {}});
  matrices.spec.inputs = {std::move(port)};
  matrices.inputs = {tensor_of(made.features, {rows, width})};
  if (request.purpose != OpenRequest::Purpose::kPredict) {
    matrices.spec.targets = {has_classes
                                 ? class_target(std::move(made.target), std::move(made.classes))
                                 : number_target(std::move(made.target))};
    matrices.targets = {has_classes
                            ? at::from_blob(made.target_classes.data(), {rows}, at::kLong).clone()
                            : tensor_of(made.target_numbers, {rows, 1})};
  }
  if (!made.groups.empty())
    matrices.groups = at::from_blob(made.groups.data(), {rows}, at::kLong).clone();
  if (made.is_series)
    matrices.timestamps = at::arange(width, width + rows, at::kDouble);
  matrices.describe_row = [component = component_](std::int64_t row) {
    return "row " + std::to_string(row) + " of " + component;
  };
  return matrices;
}

std::string SyntheticData::do_content_hash() const {
  if (!is_endless_)
    return rows_->content_hash();
  ContentHash hash;
  hash.update("endless;" + rows_->content_hash());
  return hash.digest();
}

std::unique_ptr<BatchStream> SyntheticData::do_stream(std::int64_t batch_size) const {
  return is_endless_ ? std::make_unique<Endless>(*this, batch_size)
                     : DataProvider::do_stream(batch_size);
}

std::optional<std::int64_t> SyntheticData::do_stream_rows() const {
  return kEndless;
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
  if (interface_id == RowReader::kInterface && rows_ && !is_endless_)
    return static_cast<RowReader*>(&*rows_);
  return nullptr;
}

}  // namespace treadle::synthetic
