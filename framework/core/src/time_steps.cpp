#include <treadle/core/time_steps.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using Rows = std::vector<std::int64_t>;

std::vector<double> values_of(const at::Tensor& times) {
  const at::Tensor values = times.to(at::kDouble).contiguous();
  const auto* const data = values.data_ptr<double>();
  return {data, data + values.numel()};
}

/// The times of the targets of the rows, first and last.
struct Times {
  std::vector<double> first;
  std::vector<double> last;
};

void expect_one_series(const SplitRequest& request) {
  if (request.samples == nullptr || !request.groups.defined())
    return;
  const at::Tensor numbers = request.groups.to(at::kLong).contiguous();
  const auto* const first = numbers.data_ptr<std::int64_t>();
  const Rows groups(first, first + numbers.numel());
  if (std::adjacent_find(groups.begin(), groups.end(), std::not_equal_to<>()) != groups.end()) {
    throw DataError(
        "the data has several series and no times, so it is unknown which of their samples are "
        "earlier; name a column with the time of each row (\"time\")");
  }
}

Times times_of(const SplitRequest& request, const std::vector<double>* data_times) {
  Times times;
  const bool has_times = request.timestamps.defined();
  const std::optional<std::vector<double>> stamps =
      has_times ? std::optional(values_of(request.timestamps)) : std::nullopt;
  const std::optional<std::vector<double>> ends = request.label_ends.defined() && has_times
                                                      ? std::optional(values_of(request.label_ends))
                                                      : std::nullopt;
  for (std::int64_t row = 0; row < request.rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const RowRange targets = request.source_rows(row).targets;
    const double begin = stamps ? (*stamps)[at] : static_cast<double>(targets.begin);
    double end = begin;
    if (ends) {
      end = (*ends)[at];
    } else if (!stamps) {
      end = static_cast<double>(targets.end - 1);
    } else if (data_times != nullptr) {
      end = (*data_times)[static_cast<std::size_t>(targets.end - 1)];
    }
    times.first.push_back(begin);
    times.last.push_back(std::max(begin, end));
  }
  return times;
}

}  // namespace

TimeSteps::TimeSteps(const SplitRequest& request, Axis axis) {
  const bool has_times = request.timestamps.defined();
  if (!has_times)
    expect_one_series(request);
  const bool is_of_samples = request.samples != nullptr && request.data != nullptr;
  const bool has_data_times = has_times && is_of_samples && request.data->timestamps().defined();
  const std::vector<double> data_times =
      has_data_times ? values_of(request.data->timestamps()) : std::vector<double>();
  const Times times = times_of(request, has_data_times ? &data_times : nullptr);
  std::vector<double> steps = times.first;
  if (axis == Axis::kData && has_data_times) {
    steps = data_times;
  } else if (axis == Axis::kData && is_of_samples) {
    steps.resize(static_cast<std::size_t>(request.data->rows()));
    std::iota(steps.begin(), steps.end(), 0.0);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  count_ = static_cast<std::int64_t>(steps.size());
  for (std::size_t row = 0; row < times.first.size(); ++row) {
    const auto step_after = [&](double time) {
      return std::upper_bound(steps.begin(), steps.end(), time) - steps.begin();
    };
    first_.push_back(std::max<std::int64_t>(step_after(times.first[row]) - 1, 0));
    last_.push_back(std::max<std::int64_t>(step_after(times.last[row]) - 1, first_.back()));
  }
  order_.resize(first_.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::int64_t a, std::int64_t b) { return first(a) < first(b); });
  beginning_.assign(static_cast<std::size_t>(count_) + 1, 0);
  for (const std::int64_t step : first_)
    ++beginning_[static_cast<std::size_t>(step) + 1];
  std::partial_sum(beginning_.begin(), beginning_.end(), beginning_.begin());
}

Rows TimeSteps::beginning_in(std::int64_t begin, std::int64_t end) const {
  begin = std::clamp<std::int64_t>(begin, 0, count_);
  end = std::clamp<std::int64_t>(end, begin, count_);
  return {order_.begin() + beginning_[static_cast<std::size_t>(begin)],
          order_.begin() + beginning_[static_cast<std::size_t>(end)]};
}

Rows TimeSteps::within(std::int64_t begin, std::int64_t end) const {
  Rows rows = beginning_in(begin, end);
  std::erase_if(rows, [&](std::int64_t row) { return last(row) >= end; });
  return rows;
}

}  // namespace treadle
