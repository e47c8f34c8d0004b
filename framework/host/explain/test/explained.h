#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <treadle/base/random.h>
#include <treadle/host/explain/explained_rows.h>

/// Rows for tests, with a function of the columns as the model; reference.json, which reference.py
/// computes with numpy, scipy and scikit-learn.
namespace treadle::explain {

inline const nlohmann::json& reference() {
  static const nlohmann::json kReference = [] {
    std::ifstream file(std::string(std::getenv("TREADLE_SOURCE")) +
                       "/framework/host/explain/test/reference.json");
    return nlohmann::json::parse(file);
  }();
  return kReference;
}

/// float64 [n] or [n, d].
inline at::Tensor numbers_of(const nlohmann::json& json) {
  std::vector<double> values;
  for (const nlohmann::json& row : json) {
    for (const nlohmann::json& value : row.is_array() ? row : nlohmann::json::array({row}))
      values.push_back(value.get<double>());
  }
  const at::Tensor flat = at::tensor(values, at::kDouble);
  return json.front().is_array() ? flat.view({static_cast<std::int64_t>(json.size()), -1}) : flat;
}

/// Standard normal numbers, [rows, columns].
inline at::Tensor normal_numbers(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  RandomBits bits(seed);
  std::vector<double> values;
  for (std::int64_t i = 0; i < rows * columns; ++i)
    values.push_back(bits.normal());
  return at::tensor(values, at::kDouble).view({rows, columns});
}

/// [B, F] to [B] or [B, K].
using Function = std::function<at::Tensor(const at::Tensor&)>;

inline ExplainedPart part_of(const at::Tensor& x, const at::Tensor& y, TargetKind kind,
                             Function function) {
  ExplainedPart part;
  part.name = "final";
  part.rows.inputs = {x};
  part.rows.targets = part.rows.original_targets = {y};
  part.rows.rows = at::arange(x.size(0), at::kLong);
  part.predict = [kind, function = std::move(function)](const Batch& rows) -> Predictions {
    at::Tensor values = function(rows.inputs.front());
    return {{kind, values.dim() == 1 ? values.unsqueeze(1) : values}};
  };
  return part;
}

inline DataSpec table_of(std::int64_t columns) {
  PortSpec port{.name = "features", .shape = {columns}, .dtype = at::kDouble};
  for (std::int64_t i = 0; i < columns; ++i)
    port.columns.push_back({"x" + std::to_string(i)});
  return {.inputs = {port}};
}

/// One number a row is predicted. `x`: float64 [N, D], `y`: float64 [N].
inline ExplainedRows regression(const at::Tensor& x, const at::Tensor& y, Function function) {
  ExplainedRows rows{{number_target("y")}, columns_of(table_of(x.size(1))), {}};
  rows.parts.push_back(part_of(x, y.unsqueeze(1), TargetKind::kNumbers, std::move(function)));
  return rows;
}

/// The model of reference.py.
inline ExplainedRows reference_rows() {
  return regression(numbers_of(reference().at("x")), numbers_of(reference().at("y")),
                    [](const at::Tensor& x) {
                      return x.select(1, 0) * x.select(1, 1) + (x.select(1, 2) * 2).sin() +
                             x.select(1, 0) * 0.5 + x.select(1, 3) * 0.1;
                    });
}

}  // namespace treadle::explain
