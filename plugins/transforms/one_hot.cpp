#include "one_hot.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/index_select.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::transforms {
namespace {

bool is_category(const Column& column) {
  return !column.categories.empty();
}

at::Tensor index_of(const std::vector<std::int64_t>& values) {
  at::Tensor index = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), index.data_ptr<std::int64_t>());
  return index;
}

}  // namespace

OneHot::~OneHot() = default;

std::vector<OneHot::Output> OneHot::outputs_for(const DataSpec& before) const {
  const std::vector<std::vector<bool>> chosen = choice_.choose(
      before, is_category, "is not a category; list it in \"categorical\" of the data");
  if (!any_chosen(chosen)) {
    throw DataError(
        "one_hot: no input has categories; list columns in \"categorical\" of the data, or leave "
        "the transform out; the inputs are " +
        described_inputs(before));
  }
  std::vector<Output> outputs;
  // Behind which port the columns of each port of categories come; their own place without one.
  const auto owner_of = [&](const PortSpec& port) {
    return std::find_if(outputs.begin(), outputs.end(), [&](const Output& output) {
      return output.spec.name == features_beside(port.name) &&
             output.spec.role == Role::kFeatures && !output.spec.columns.empty();
    });
  };
  for (std::size_t i = 0; i < before.inputs.size(); ++i)
    outputs.push_back({before.inputs[i], i, {}, {}});
  for (std::size_t i = 0; i < before.inputs.size(); ++i) {
    const PortSpec& port = before.inputs[i];
    if (std::find(chosen[i].begin(), chosen[i].end(), true) == chosen[i].end())
      continue;
    std::vector<std::int64_t> sources;
    std::vector<std::int64_t> codes;
    std::vector<std::int64_t> kept;
    std::vector<Column> added;
    std::vector<Column> kept_columns;
    for (std::size_t c = 0; c < port.columns.size(); ++c) {
      const Column& column = port.columns[c];
      if (!chosen[i][c]) {
        kept.push_back(static_cast<std::int64_t>(c));
        kept_columns.push_back(column);
        continue;
      }
      for (std::size_t code = 0; code < column.categories.size(); ++code) {
        sources.push_back(static_cast<std::int64_t>(c));
        codes.push_back(static_cast<std::int64_t>(code));
        added.push_back({column.name + "=" + column.categories[code], {}});
      }
    }
    const auto here = std::find_if(outputs.begin(), outputs.end(),
                                   [&](const Output& output) { return output.port == i; });
    here->kept = index_of(kept);
    here->spec.columns = std::move(kept_columns);
    here->spec.shape.back() = static_cast<std::int64_t>(kept.size());
    auto owner = owner_of(port);
    if (owner == outputs.end()) {
      PortSpec features{
          features_beside(port.name), port.shape, {}, Role::kFeatures, number_dtype(before)};
      owner = outputs.insert(here, {std::move(features), std::nullopt, {}, {}});
    }
    owner->spec.columns.insert(owner->spec.columns.end(), added.begin(), added.end());
    owner->spec.shape.back() = static_cast<std::int64_t>(owner->spec.columns.size());
    owner->expansions.push_back({i, index_of(sources), index_of(codes)});
  }
  outputs.erase(std::remove_if(outputs.begin(), outputs.end(),
                               [](const Output& output) {
                                 return output.kept.defined() && output.kept.numel() == 0;
                               }),
                outputs.end());
  return outputs;
}

void OneHot::prepare(const DataSpec& before) {
  before_.inputs = before.inputs;
  outputs_ = outputs_for(before_);
}

void OneHot::do_fit(const RowReader& reader, const RowList&) {
  prepare(reader.spec());
}

DataSpec OneHot::do_output_spec(const DataSpec& before) const {
  DataSpec after = before;
  after.inputs.clear();
  for (Output& output : outputs_for(before))
    after.inputs.push_back(std::move(output.spec));
  return after;
}

void OneHot::do_apply(Batch& batch, const ApplyContext&) const {
  TREADLE_EXPECTS(batch.inputs.size() == before_.inputs.size(),
                  "the batch has other inputs than the data this transform was fitted on");
  std::vector<at::Tensor> inputs;
  for (const Output& output : outputs_) {
    std::vector<at::Tensor> parts;
    if (output.port) {
      const at::Tensor& values = batch.inputs[*output.port];
      parts.push_back(output.kept.defined() ? at::index_select(values, -1, output.kept) : values);
    }
    for (const Expansion& expansion : output.expansions) {
      const at::Tensor& values = batch.inputs[expansion.port];
      TREADLE_EXPECTS(values.size(-1) ==
                          static_cast<std::int64_t>(before_.inputs[expansion.port].columns.size()),
                      "the batch has other columns than the data this transform was fitted on");
      parts.push_back(at::eq(at::index_select(values, -1, expansion.source), expansion.code)
                          .to(output.spec.dtype));
    }
    inputs.push_back(parts.size() == 1 ? parts[0] : at::cat(parts, -1));
  }
  batch.inputs = std::move(inputs);
}

StateDict OneHot::do_state() const {
  StateDict state;
  state.put("before", to_json(before_));
  return state;
}

void OneHot::do_load_state(const StateDict& state) {
  prepare(data_spec_from_json(state.value("before")));
}

}  // namespace treadle::transforms
