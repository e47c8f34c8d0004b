#include "rare_categories.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::transforms {
namespace {

bool has_categories(const Column& column) {
  return !column.categories.empty();
}

std::int64_t size_of(const std::vector<std::string>& texts) {
  return static_cast<std::int64_t>(texts.size());
}

std::int64_t size_of_codes(const PortSpec& port) {
  std::int64_t size = 0;
  for (const Column& column : port.columns)
    size += size_of(column.categories) + 1;
  return size;
}

/// What makes a code of each column, -1 for a missing value among them, its place in the codes.
at::Tensor offsets_of(const PortSpec& port) {
  at::Tensor offsets = at::empty({static_cast<std::int64_t>(port.columns.size())}, at::kLong);
  auto* next = offsets.data_ptr<std::int64_t>();
  std::int64_t begin = 0;
  for (const Column& column : port.columns) {
    *next++ = begin + 1;
    begin += size_of(column.categories) + 1;
  }
  return offsets;
}

/// Codes are used as indices later, and come from a file that may have been changed.
void expect_codes(const at::Tensor& codes, const PortSpec& before, const PortSpec& after) {
  if (codes.scalar_type() != at::kLong || codes.dim() != 1 ||
      codes.size(0) != size_of_codes(before)) {
    throw StorageError("saved codes of categories must be a vector of " +
                       std::to_string(size_of_codes(before)) + " int64");
  }
  const auto* code = codes.data_ptr<std::int64_t>();
  for (std::size_t c = 0; c < before.columns.size(); ++c) {
    const std::int64_t most = size_of(after.columns[c].categories);
    for (std::int64_t i = 0; i <= size_of(before.columns[c].categories); ++i, ++code) {
      if (*code < -1 || *code >= most)
        throw StorageError("saved codes of categories are not those of any category");
    }
  }
}

std::string codes_key(std::size_t port) {
  return "input_" + std::to_string(port) + "_codes";
}

}  // namespace

RareCategories::RareCategories(const Config& config)
    : choice_(config, "rare_categories"),
      min_count_(config.get_or("min_count", std::int64_t{10})),
      max_categories_(config.get_or("max_categories", std::numeric_limits<std::int64_t>::max())),
      name_(config.get_or("name", std::string("rare"))) {}

RareCategories::~RareCategories() = default;

std::vector<std::vector<bool>> RareCategories::choose(const DataSpec& spec) const {
  std::vector<std::vector<bool>> chosen = choice_.choose(
      spec, has_categories, "is not a category; list it in \"categorical\" of the data");
  if (!any_chosen(chosen)) {
    throw DataError(
        "rare_categories: no input has categories; list columns in \"categorical\" of the data, or "
        "leave the transform out; the inputs are " +
        described_inputs(spec));
  }
  return chosen;
}

RareCategories::Merged RareCategories::merged(const std::vector<std::int64_t>& counts,
                                              const Column& column) const {
  std::vector<std::size_t> by_count(counts.size());
  std::iota(by_count.begin(), by_count.end(), std::size_t{0});
  std::stable_sort(by_count.begin(), by_count.end(),
                   [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });
  std::vector<bool> is_kept(counts.size(), false);
  const auto most =
      std::min<std::int64_t>(max_categories_, static_cast<std::int64_t>(counts.size()));
  for (std::int64_t i = 0; i < most; ++i) {
    const std::size_t category = by_count[static_cast<std::size_t>(i)];
    is_kept[category] = counts[category] >= min_count_;
  }
  Merged result{{-1}, {}};
  for (std::size_t category = 0; category < counts.size(); ++category) {
    result.codes.push_back(is_kept[category] ? size_of(result.categories) : -1);
    if (is_kept[category])
      result.categories.push_back(column.categories[category]);
  }
  if (result.categories.size() == counts.size())
    return result;
  // Behind the others, unless one of them is called so already.
  const auto named = std::find(result.categories.begin(), result.categories.end(), name_);
  const std::int64_t rare = named - result.categories.begin();
  if (named == result.categories.end())
    result.categories.push_back(name_);
  for (std::size_t category = 0; category < counts.size(); ++category) {
    if (!is_kept[category])
      result.codes[category + 1] = rare;
  }
  return result;
}

void RareCategories::do_fit(const RowReader& reader, const RowList& training_rows) {
  const DataSpec& spec = reader.spec();
  const std::vector<std::vector<bool>> chosen = choose(spec);
  before_.inputs = spec.inputs;
  after_ = spec.inputs;
  // One pass over the rows: a count for each entry of the codes.
  std::vector<at::Tensor> counts(spec.inputs.size());
  std::vector<at::Tensor> offsets(spec.inputs.size());
  for (std::size_t p = 0; p < chosen.size(); ++p) {
    if (spec.inputs[p].role != Role::kCategories)
      continue;
    offsets[p] = offsets_of(spec.inputs[p]);
    counts[p] = at::zeros({size_of_codes(spec.inputs[p])}, at::kLong);
  }
  for_each_chunk(reader, training_rows, [&](const Batch& batch) {
    for (std::size_t p = 0; p < counts.size(); ++p) {
      if (counts[p].defined()) {
        counts[p] +=
            at::bincount((batch.inputs[p] + offsets[p]).reshape(-1), {}, counts[p].size(0));
      }
    }
  });
  codes_.assign(spec.inputs.size(), at::Tensor());
  for (std::size_t p = 0; p < counts.size(); ++p) {
    if (!counts[p].defined())
      continue;
    codes_[p] = at::empty_like(counts[p]);
    auto* codes = codes_[p].data_ptr<std::int64_t>();
    const auto* count = counts[p].data_ptr<std::int64_t>();
    for (std::size_t c = 0; c < chosen[p].size(); ++c) {
      const Column& column = spec.inputs[p].columns[c];
      const auto width = static_cast<std::ptrdiff_t>(column.categories.size()) + 1;
      if (chosen[p][c]) {
        Merged result = merged({count + 1, count + width}, column);
        std::copy(result.codes.begin(), result.codes.end(), codes);
        after_[p].columns[c].categories = std::move(result.categories);
      } else {
        std::iota(codes, codes + width, std::int64_t{-1});
      }
      codes += width;
      count += width;
    }
  }
  prepare();
}

void RareCategories::prepare() {
  offsets_.assign(codes_.size(), at::Tensor());
  for (std::size_t p = 0; p < codes_.size(); ++p) {
    if (codes_[p].defined())
      offsets_[p] = offsets_of(before_.inputs[p]);
  }
}

DataSpec RareCategories::do_output_spec(const DataSpec& before) const {
  DataSpec after = before;
  for (std::size_t p = 0; p < after_.size() && p < after.inputs.size(); ++p) {
    for (std::size_t c = 0; c < after.inputs[p].columns.size(); ++c)
      after.inputs[p].columns[c].categories = after_[p].columns[c].categories;
  }
  return after;
}

void RareCategories::do_apply(Batch& batch, const ApplyContext&) const {
  TREADLE_EXPECTS(batch.inputs.size() == codes_.size(),
                  "the batch has other inputs than the data this transform was fitted on");
  for (std::size_t p = 0; p < codes_.size(); ++p) {
    if (!codes_[p].defined())
      continue;
    at::Tensor& values = batch.inputs[p];
    TREADLE_EXPECTS(values.size(-1) == offsets_[p].size(0),
                    "the batch has other columns than the data this transform was fitted on");
    values =
        at::index_select(codes_[p], 0, (values + offsets_[p]).reshape(-1)).reshape(values.sizes());
  }
}

StateDict RareCategories::do_state() const {
  DataSpec after;
  after.inputs = after_;
  StateDict state;
  state.put("before", to_json(before_));
  state.put("after", to_json(after));
  for (std::size_t p = 0; p < codes_.size(); ++p) {
    if (codes_[p].defined())
      state.put(codes_key(p), codes_[p]);
  }
  return state;
}

void RareCategories::do_load_state(const StateDict& state) {
  before_.inputs = data_spec_from_json(state.value("before")).inputs;
  after_ = data_spec_from_json(state.value("after")).inputs;
  if (after_.size() != before_.inputs.size())
    throw StorageError("saved categories are not those of the inputs");
  codes_.assign(before_.inputs.size(), at::Tensor());
  for (std::size_t p = 0; p < codes_.size(); ++p) {
    if (after_[p].columns.size() != before_.inputs[p].columns.size())
      throw StorageError("saved categories are not those of the inputs");
    if (before_.inputs[p].role != Role::kCategories)
      continue;
    codes_[p] = state.tensor(codes_key(p));
    expect_codes(codes_[p], before_.inputs[p], after_[p]);
  }
  prepare();
}

}  // namespace treadle::transforms
