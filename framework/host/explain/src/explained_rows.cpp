#include <treadle/host/explain/explained_rows.h>

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::explain {
namespace {

/// Inputs of all rows that are handed to a model at once, and their number.
constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;
constexpr std::int64_t kMostRows = 16384;

/// Rows of columns, or windows of such rows.
bool has_columns(const PortSpec& port) {
  const bool are_values = port.role == Role::kFeatures || port.role == Role::kCategories;
  if (!are_values || port.is_auxiliary() || port.shape.empty() || port.shape.back() == kVaries)
    return false;
  return port.shape.size() == 1 || !port.columns.empty();
}

}  // namespace

std::vector<ExplainedColumn> columns_of(const DataSpec& spec) {
  const auto is_data = [](const PortSpec& port) { return !port.is_auxiliary(); };
  const bool is_only = std::count_if(spec.inputs.begin(), spec.inputs.end(), is_data) == 1;
  std::vector<ExplainedColumn> columns;
  for (std::size_t input = 0; input < spec.inputs.size(); ++input) {
    const PortSpec& port = spec.inputs[input];
    if (port.role == Role::kTokens) {
      throw DataError("input " + quote_text(port.name) +
                      " has tokens of texts, and reasons are given for tables, windows of tables "
                      "and images; leave \"explain\" out");
    }
    if (port.is_auxiliary())
      continue;
    if (!has_columns(port)) {
      ExplainedColumn whole{.name = port.name, .places = {{input, Place::kWhole}}};
      for (std::size_t other = 0; other < spec.inputs.size(); ++other) {
        if (spec.inputs[other].of == port.name)
          whole.places.push_back({other, Place::kWhole});
      }
      columns.push_back(std::move(whole));
      continue;
    }
    const bool has_fixed_shape =
        std::find(port.shape.begin(), port.shape.end(), kVaries) == port.shape.end();
    for (std::int64_t i = 0; i < port.shape.back(); ++i) {
      ExplainedColumn column{
          .name = (is_only ? "" : port.name + ".") + "Feature_" + std::to_string(i),
          .places = {{input, i}},
          .is_category = port.role == Role::kCategories,
          .is_flat = port.shape.size() == 1,
          .has_values = has_fixed_shape};
      if (!port.columns.empty()) {
        column.name = port.columns[static_cast<std::size_t>(i)].name;
        column.names = port.columns[static_cast<std::size_t>(i)].categories;
      }
      columns.push_back(std::move(column));
    }
  }
  return columns;
}

at::Tensor values_of(const ExplainedColumn& column, const Batch& rows) {
  TREADLE_EXPECTS(column.has_values, "a column with a value per row");
  const Place place = column.places.front();
  at::Tensor values = rows.inputs[place.input].select(-1, place.index).to(at::kDouble);
  while (values.dim() > 1)
    values = values.select(1, -1);  // the last step
  if (!column.is_category)
    return values.contiguous();
  return at::where(values.ge(0), values, at::full_like(values, std::nan("")));
}

std::int64_t ExplainedRows::rows() const {
  std::int64_t count = 0;
  for (const ExplainedPart& part : parts)
    count += part.rows.size();
  return count;
}

at::Tensor ExplainedRows::values_of(const ExplainedColumn& column) const {
  std::vector<at::Tensor> values;
  for (const ExplainedPart& part : parts)
    values.push_back(explain::values_of(column, part.rows));
  return at::cat(values);
}

std::int64_t rows_at_once(const Batch& like) {
  std::int64_t bytes = 0;
  for (const at::Tensor& input : like.inputs) {
    bytes += input.numel() / std::max<std::int64_t>(like.size(), 1) *
             static_cast<std::int64_t>(input.element_size());
  }
  return std::clamp<std::int64_t>(kMostBytes / std::max<std::int64_t>(bytes, 1), 1, kMostRows);
}

Batch repeated(const Batch& rows, std::int64_t times) {
  const auto repeat = [&](const at::Tensor& tensor) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(tensor.dim()), 1);
    sizes.front() = times;
    return tensor.repeat(sizes);
  };
  Batch result;
  for (const at::Tensor& input : rows.inputs)
    result.inputs.push_back(repeat(input));
  result.rows = repeat(rows.rows);
  if (rows.groups.defined())
    result.groups = repeat(rows.groups);
  return result;
}

void put_column(const ExplainedColumn& column, const Batch& from, const at::Tensor& order,
                Batch& changed, std::int64_t begin) {
  for (const Place& place : column.places) {
    at::Tensor to = changed.inputs[place.input].narrow(0, begin, order.size(0));
    at::Tensor source = from.inputs[place.input];
    if (place.index != Place::kWhole) {
      to = to.select(-1, place.index);
      source = source.select(-1, place.index);
    }
    to.copy_(source.index_select(0, order));
  }
}

Predictions slice(const Predictions& predictions, std::int64_t begin, std::int64_t count) {
  Predictions part = predictions;
  for (Prediction& prediction : part) {
    for_each_tensor(prediction, [&](at::Tensor& tensor, std::int64_t rows) {
      tensor = tensor.narrow(rows, begin, count);
    });
  }
  return part;
}

at::Tensor explained_outputs(const Prediction& prediction, const TargetSpec& target) {
  at::Tensor values = prediction.values.to(at::kDouble);
  values = values.reshape({values.size(0), -1, values.size(-1)}).mean(1);
  const bool is_binary = target.kind == TargetKind::kClasses && values.size(1) == 2;
  return is_binary ? values.narrow(1, 1, 1) : values;
}

std::vector<std::string> output_names(const TargetSpec& target) {
  if (target.kind == TargetKind::kClasses && target.class_count() == 2)
    return {target.class_names.back()};
  if (!target.class_names.empty())
    return target.class_names;
  if (target.width() == 1)
    return {target.name};
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < target.width(); ++i)
    names.push_back(target.name + "[" + std::to_string(i) + "]");
  return names;
}

}  // namespace treadle::explain
