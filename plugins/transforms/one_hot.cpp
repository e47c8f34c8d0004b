#include "one_hot.h"

#include <cstdint>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/where.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::transforms {
namespace {

bool is_category(const Column& column) {
  return !column.categories.empty();
}

}  // namespace

OneHot::~OneHot() = default;

std::vector<std::vector<bool>> OneHot::choose(const DataSpec& spec) const {
  return choice_.choose(spec, is_category,
                        "is not a category; list it in \"categorical\" of the data");
}

void OneHot::prepare(const DataSpec& before) {
  before_.inputs = before.inputs;
  const std::vector<std::vector<bool>> chosen = choose(before_);
  expansions_.assign(before_.inputs.size(), Expansion());
  for (std::size_t port = 0; port < before_.inputs.size(); ++port) {
    std::vector<std::int64_t> sources;
    std::vector<std::int64_t> codes;  // -1: the column as it is
    bool changes = false;
    const std::vector<Column>& columns = before_.inputs[port].columns;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const auto source = static_cast<std::int64_t>(c);
      if (!chosen[port][c]) {
        sources.push_back(source);
        codes.push_back(-1);
        continue;
      }
      changes = true;
      for (std::size_t code = 0; code < columns[c].categories.size(); ++code) {
        sources.push_back(source);
        codes.push_back(static_cast<std::int64_t>(code));
      }
    }
    if (!changes)
      continue;
    const auto width = static_cast<std::int64_t>(sources.size());
    Expansion& expansion = expansions_[port];
    expansion.source = at::empty({width}, at::kLong);
    expansion.is_code = at::empty({width}, at::kBool);
    expansion.code = at::empty({width}, at::kFloat);
    for (std::size_t j = 0; j < sources.size(); ++j) {
      expansion.source.data_ptr<std::int64_t>()[j] = sources[j];
      expansion.is_code.data_ptr<bool>()[j] = codes[j] >= 0;
      expansion.code.data_ptr<float>()[j] = static_cast<float>(codes[j]);
    }
  }
}

void OneHot::do_fit(const RowReader& reader, std::span<const std::int64_t>) {
  prepare(reader.spec());
}

DataSpec OneHot::do_output_spec(const DataSpec& before) const {
  const std::vector<std::vector<bool>> chosen = choose(before);
  DataSpec after = before;
  for (std::size_t port = 0; port < before.inputs.size(); ++port) {
    const std::vector<Column>& columns = before.inputs[port].columns;
    if (columns.empty())
      continue;
    std::vector<Column> expanded;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (!chosen[port][c]) {
        expanded.push_back(columns[c]);
        continue;
      }
      for (const std::string& category : columns[c].categories)
        expanded.push_back({columns[c].name + "=" + category, {}, false});
    }
    after.inputs[port].shape = {static_cast<std::int64_t>(expanded.size())};
    after.inputs[port].columns = std::move(expanded);
  }
  return after;
}

void OneHot::do_apply(Batch& batch, const ApplyContext&) const {
  TREADLE_EXPECTS(batch.inputs.size() == expansions_.size(),
                  "the batch has other inputs than the data this transform was fitted on");
  for (std::size_t port = 0; port < expansions_.size(); ++port) {
    const Expansion& expansion = expansions_[port];
    if (!expansion.source.defined())
      continue;
    at::Tensor& values = batch.inputs[port];
    TREADLE_EXPECTS(values.dim() == 2 && values.size(1) == static_cast<std::int64_t>(
                                                               before_.inputs[port].columns.size()),
                    "the batch has other columns than the data this transform was fitted on");
    const at::Tensor copies = at::index_select(values, 1, expansion.source);
    const at::Tensor has_value = at::eq(copies, expansion.code).to(values.scalar_type());
    values = at::where(expansion.is_code, has_value, copies);
  }
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
