#include <treadle/host/catalog/latency_model.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/base/json_words.h>

// Why the bias is that of a call, so that a network takes the sum over its layers: for the 21
// built-in networks of `workflow-runner latency`, from 3 to 480 us, a bias for each network leaves
// a mean relative error of 1.35, one for each call 0.53, both with an R² of 0.86 (two measurements,
// one core, libtorch 1.13). Without the small networks there is no difference.

namespace treadle {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormat = "treadle_latency";
constexpr int kVersion = 1;
constexpr double kGiga = 1e9;
constexpr std::size_t kUnknowns = 3;
/// Of a column's length: what is left of it after the columns before it, if it depends on them.
constexpr double kDependent = 1e-10;

using Column = std::vector<double>;

double dot(const Column& a, const Column& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += a[i] * b[i];
  return sum;
}

/// a - factor · b
void subtract(Column& a, double factor, const Column& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    a[i] -= factor * b[i];
}

/// Least squares by modified Gram-Schmidt: columns = Q·R, R·x = Qᵀ·y. Columns have units of their
/// own, so dependence is judged by each one's length. Nothing where one depends on others.
bool solve(std::array<Column, kUnknowns> columns, Column y,
           std::array<double, kUnknowns>& solution) {
  std::array<std::array<double, kUnknowns>, kUnknowns> r{};
  std::array<double, kUnknowns> right{};
  for (std::size_t j = 0; j < kUnknowns; ++j) {
    const double length = std::sqrt(dot(columns[j], columns[j]));
    for (std::size_t i = 0; i < j; ++i) {
      r[i][j] = dot(columns[i], columns[j]);
      subtract(columns[j], r[i][j], columns[i]);
    }
    r[j][j] = std::sqrt(dot(columns[j], columns[j]));
    if (!(r[j][j] > kDependent * length))
      return false;
    for (double& value : columns[j])
      value /= r[j][j];
    right[j] = dot(columns[j], y);
    subtract(y, right[j], columns[j]);
  }
  for (std::size_t j = kUnknowns; j-- > 0;) {
    solution[j] = right[j];
    for (std::size_t k = j + 1; k < kUnknowns; ++k)
      solution[j] -= r[j][k] * solution[k];
    solution[j] /= r[j][j];
  }
  return true;
}

void expect_measured(std::span<const LatencyModel::Pass> passes) {
  for (const LatencyModel::Pass& pass : passes) {
    const bool is_counted = std::isfinite(pass.flops + pass.bytes + pass.calls) &&
                            std::min({pass.flops, pass.bytes, pass.calls}) >= 0;
    if (!is_counted || !std::isfinite(pass.seconds) || pass.seconds <= 0) {
      throw DataError("the measurement " + quote_text(pass.name) +
                      " is none: expected FLOPs, bytes and calls from 0 on, and seconds above 0");
    }
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

LatencyModel::Fit LatencyModel::fit(std::span<const Pass> passes, double peak_gflops,
                                    double bandwidth) {
  if (passes.size() < kUnknowns) {
    throw DataError("a model of a machine has three unknowns, and there are " +
                    std::to_string(passes.size()) +
                    " measurements; measure at least three networks of different sizes");
  }
  expect_measured(passes);
  std::array<Column, kUnknowns> columns;
  Column y;
  for (const Pass& pass : passes) {
    columns[0].push_back(pass.flops / (peak_gflops * kGiga));
    columns[1].push_back(pass.bytes / (bandwidth * kGiga));
    columns[2].push_back(pass.calls);
    y.push_back(pass.seconds);
  }
  std::array<double, kUnknowns> solution{};
  if (!solve(columns, y, solution)) {
    throw DataError(
        "the measurements do not tell FLOPs, bytes and calls of layers apart: one of them is a "
        "multiple of the others in all networks; add networks of other widths and depths");
  }
  Fit result;
  result.model.alpha_ = solution[0];
  result.model.beta_ = solution[1];
  result.model.bias_ = solution[2];
  result.model.peak_gflops_ = peak_gflops;
  result.model.bandwidth_ = bandwidth;
  double mean = 0;
  for (const double seconds : y)
    mean += seconds / static_cast<double>(y.size());
  double errors = 0;
  double deviations = 0;
  std::vector<double> relative;
  for (const Pass& pass : passes) {
    const double error = result.model.seconds(pass.flops, pass.bytes, pass.calls) - pass.seconds;
    errors += error * error;
    deviations += (pass.seconds - mean) * (pass.seconds - mean);
    relative.push_back(std::abs(error) / pass.seconds);
  }
  result.r_squared = deviations > 0 ? 1 - errors / deviations : 0;
  result.relative_error = median(std::move(relative));
  return result;
}

LatencyModel LatencyModel::read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream)
    throw StorageError(file.string() + ": cannot be read: no such file, or not readable");
  const Json json = parse_json(stream);
  const auto refuse = [&](const std::string& why) {
    throw StorageError(file.string() + ": is no model of a machine: " + why +
                       "; \"workflow-runner latency --output FILE\" makes one");
  };
  if (!json.is_object() || !json.contains(kFormat))
    refuse("it has no \"" + std::string(kFormat) + "\"");
  if (json.at(kFormat) != kVersion)
    refuse("its format is " + json.at(kFormat).dump() + ", and this version reads 1");
  const Json model = json.value("model", Json());
  const Json numbers = LatencyModel().json();
  for (const auto& [key, unused] : numbers.items()) {
    if (!model.is_object() || !model.contains(key) || !model.at(key).is_number())
      refuse("its \"model\" has no number \"" + key + "\"");
    if (key.ends_with("_gflops") || key.ends_with("_gbs")) {
      if (!(model.at(key).get<double>() > 0))
        refuse("\"" + key + "\" is not above 0");
    }
  }
  return from_json(model);
}

LatencyModel LatencyModel::from_json(const Json& json) {
  LatencyModel model;
  model.alpha_ = json.value("alpha", model.alpha_);
  model.beta_ = json.value("beta", model.beta_);
  model.bias_ = json.value("bias", model.bias_);
  model.peak_gflops_ = json.value("peak_gflops", model.peak_gflops_);
  model.bandwidth_ = json.value("bandwidth_gbs", model.bandwidth_);
  return model;
}

Json LatencyModel::json() const {
  return {{"alpha", alpha_},
          {"beta", beta_},
          {"bias", bias_},
          {"peak_gflops", peak_gflops_},
          {"bandwidth_gbs", bandwidth_}};
}

double LatencyModel::seconds(double flops, double bytes, double calls) const {
  return alpha_ * flops / (peak_gflops_ * kGiga) + beta_ * bytes / (bandwidth_ * kGiga) +
         bias_ * calls;
}

Json latency_file(const LatencyModel::Fit& fit, std::span<const LatencyModel::Pass> passes) {
  Json measurements = Json::array();
  for (const LatencyModel::Pass& pass : passes) {
    measurements.push_back({{"name", pass.name},
                            {"flops", pass.flops},
                            {"bytes", pass.bytes},
                            {"calls", pass.calls},
                            {"seconds", pass.seconds}});
  }
  return {{kFormat, kVersion},
          {"model", fit.model.json()},
          {"r_squared", fit.r_squared},
          {"relative_error", fit.relative_error},
          {"measurements", std::move(measurements)}};
}

}  // namespace treadle
