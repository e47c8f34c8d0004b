#include "predict/continued_forecast.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>

#include <treadle/base/error.h>

#include "predict/draw_requests.h"

namespace treadle::internal {
namespace {

/// A single step as the first of one: [B, width] as [B, 1, width].
void give_steps(Predictions& predictions) {
  for (Prediction& prediction : predictions) {
    if (prediction.values.dim() > 2)
      continue;
    for_each_tensor(prediction, [](at::Tensor& tensor, std::int64_t rows) {
      tensor = tensor.unsqueeze(rows + 1);
    });
  }
}

/// Some steps after others.
void append(Predictions& all, const Predictions& more) {
  for (std::size_t i = 0; i < all.size(); ++i)
    append(all[i], more[i], /*dimension=*/1);
}

void keep_first_steps(Predictions& predictions, std::int64_t steps) {
  for (Prediction& prediction : predictions) {
    for_each_tensor(prediction, [&](at::Tensor& values, std::int64_t rows) {
      values = values.narrow(rows + 1, 0, steps).contiguous();
    });
  }
}

/// Each window once for every path; the windows of the first path come first.
Batch repeated(const Batch& windows, std::int64_t paths) {
  const auto repeat = [paths](const at::Tensor& of_windows) {
    std::vector<std::int64_t> times(static_cast<std::size_t>(of_windows.dim()), 1);
    times[0] = paths;
    return of_windows.repeat(times);
  };
  Batch all;
  for (const at::Tensor& input : windows.inputs)
    all.inputs.push_back(repeat(input));
  if (windows.groups.defined())
    all.groups = repeat(windows.groups);
  all.rows = at::arange(windows.size() * paths, at::kLong);
  return all;
}

/// Of samples [paths, ...]: the smallest that a share of at least `level` of them does not exceed.
at::Tensor quantile_of(const at::Tensor& samples, double level) {
  constexpr double kRounding = 1e-9;
  const std::int64_t paths = samples.size(0);
  const auto place =
      static_cast<std::int64_t>(std::ceil(level * static_cast<double>(paths) - kRounding)) - 1;
  return std::get<0>(samples.sort(0)).select(0, std::clamp<std::int64_t>(place, 0, paths - 1));
}

/// Predictions for the windows of all paths, with one sample each, as those of the windows.
void join_paths(Predictions& predictions, std::int64_t paths) {
  for (Prediction& prediction : predictions) {
    const auto by_path = [&](const at::Tensor& values) {
      std::vector<std::int64_t> sizes = values.sizes().vec();
      sizes[0] /= paths;
      sizes.insert(sizes.begin(), paths);
      return values.reshape(sizes);
    };
    const auto mean_of = [&](const at::Tensor& values) {
      return by_path(values).to(at::kDouble).mean(0).to(values.scalar_type());
    };
    prediction.samples = by_path(prediction.samples.select(0, 0));
    prediction.values = mean_of(prediction.values);
    for (Prediction::Extra& extra : prediction.extras) {
      extra.values = std::isnan(extra.level) ? mean_of(extra.values)
                                             : quantile_of(prediction.samples, extra.level);
    }
  }
}

}  // namespace

std::vector<PredictedNumber> predicted_columns(const RowReader& rows) {
  constexpr std::int64_t kRowsCompared = 4096;
  const std::int64_t count = std::min(rows.rows(), kRowsCompared);
  std::vector<std::int64_t> last(static_cast<std::size_t>(count));
  std::iota(last.begin(), last.end(), rows.rows() - count);
  Batch batch;
  rows.gather(last, batch);
  const PortSpec& port = rows.spec().inputs.front();
  std::vector<PredictedNumber> columns;
  for (std::int64_t column = 0; column < batch.inputs[0].size(1); ++column) {
    std::optional<PredictedNumber> found;
    for (std::size_t t = 0; t < batch.targets.size() && !found; ++t) {
      const at::Tensor& values = batch.targets[t];
      for (std::int64_t k = 0; values.dim() == 2 && k < values.size(1) && !found; ++k) {
        if (values.select(1, k).equal(batch.inputs[0].select(1, column)))
          found = PredictedNumber{t, k};
      }
    }
    if (!found) {
      const auto index = static_cast<std::size_t>(column);
      throw DataError("input column " +
                      (index < port.columns.size() ? "\"" + port.columns[index].name + "\""
                                                   : std::to_string(column)) +
                      " is not among the targets, so nothing is known of it beyond the model's "
                      "horizon; predict no more steps than that");
    }
    columns.push_back(*found);
  }
  return columns;
}

Predictions ContinuedForecast::of(Batch windows, std::int64_t steps,
                                  const SampleOptions& samples) const {
  const std::unique_ptr<engine::DrawRequest> request = request_of(samples);
  const at::Tensor series = windows.rows.contiguous();
  Predictions all = predict_(windows, request.get());
  give_steps(all);
  if (request != nullptr && steps > horizon_) {
    windows = repeated(windows, samples.count);
    request->count = 1;
  }
  for (std::int64_t done = horizon_; done < steps; done += horizon_) {
    move_on(windows, all, done - horizon_, samples.count);
    if (request != nullptr) {
      request->seed = [&](std::int64_t row, std::int64_t /*sample*/, std::size_t target) {
        const std::int64_t of = series.data_ptr<std::int64_t>()[row % series.numel()];
        return draw_seed(samples.seed, of, row / series.numel(), done, target);
      };
    }
    Predictions more = predict_(windows, request.get());
    give_steps(more);
    if (request != nullptr)
      join_paths(more, samples.count);
    append(all, more);
  }
  keep_first_steps(all, steps);
  return all;
}

/// The steps from `from` on are given as if they had been seen.
void ContinuedForecast::move_on(Batch& windows, const Predictions& seen, std::int64_t from,
                                std::int64_t paths) const {
  std::vector<at::Tensor> next;  // by column: [windows, horizon]
  for (const PredictedNumber& column : columns_) {
    const Prediction& prediction = seen[column.target];
    next.push_back(
        paths == 0
            ? prediction.values.narrow(1, from, horizon_).select(2, column.number)
            : prediction.samples.narrow(2, from, horizon_).select(3, column.number).flatten(0, 1));
  }
  at::Tensor& window = windows.inputs[0];
  const std::int64_t lookback = window.size(1);
  const at::Tensor longer = at::cat({window, at::stack(next, 2).to(window.scalar_type())}, 1);
  window = longer.narrow(1, longer.size(1) - lookback, lookback).contiguous();
}

}  // namespace treadle::internal
