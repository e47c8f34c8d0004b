#include <treadle/core/validation/time_steps.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <treadle/base/error.h>

#include "data/source_runs.h"
#include "validation/request_runs.h"

namespace treadle {

class TimeSteps::Order {
 public:
  virtual ~Order() = default;
  virtual std::int64_t count() const = 0;
  virtual std::int64_t first(std::int64_t row) const = 0;
  virtual std::int64_t last(std::int64_t row) const = 0;
  virtual bool is_given() const = 0;
  virtual RowList beginning_in(std::int64_t begin, std::int64_t end) const = 0;
};

namespace {

at::Tensor as_doubles(const at::Tensor& times) {
  return times.defined() ? times.to(at::kDouble).contiguous() : times;
}

void expect_one_series(const SplitRequest& request) {
  if (request.samples == nullptr || !request.groups.defined())
    return;
  const at::Tensor numbers = request.groups.to(at::kLong).contiguous();
  const auto* const first = numbers.data_ptr<std::int64_t>();
  const auto* const end = first + numbers.numel();
  if (std::adjacent_find(first, end, std::not_equal_to<>()) != end) {
    throw DataError(
        "the data has several series and no times, so it is unknown which of their samples are "
        "earlier; name a column with the time of each row (\"time\")");
  }
}

/// All rows of the request as one run; nothing where there is none.
std::optional<SampleRun> single_run(const SplitRequest& request) {
  std::optional<SampleRun> run;
  bool is_single = true;
  for_each_source_run(request, RowList::range(0, request.rows), [&](const SampleRun& next) {
    is_single = is_single && !run;
    run = next;
  });
  return is_single ? run : std::nullopt;
}

/// When the targets of rows begin and end: timestamps, or the rows of the data themselves.
class TargetTimes {
 public:
  explicit TargetTimes(const SplitRequest& request)
      : request_(request), run_(single_run(request)), stamps_(as_doubles(request.timestamps)) {
    if (!stamps_.defined())
      return;
    ends_ = as_doubles(request.label_ends);
    if (request.samples != nullptr && request.data != nullptr)
      of_data_ = as_doubles(request.data->timestamps());
  }

  double first(std::int64_t row) const {
    return stamps_.defined() ? stamps_.data_ptr<double>()[row]
                             : static_cast<double>(targets(row).begin);
  }
  double last(std::int64_t row) const { return std::max(first(row), end(row)); }

  /// All rows, where they are one run.
  const std::optional<SampleRun>& run() const { return run_; }
  /// Of the rows to split, and of the data's own; undefined: there are none.
  const at::Tensor& stamps() const { return stamps_; }
  const at::Tensor& of_data() const { return of_data_; }

 private:
  double end(std::int64_t row) const {
    if (ends_.defined())
      return ends_.data_ptr<double>()[row];
    if (stamps_.defined() && !of_data_.defined())
      return first(row);
    const std::int64_t source = targets(row).end - 1;
    return of_data_.defined() ? of_data_.data_ptr<double>()[source] : static_cast<double>(source);
  }

  RowRange targets(std::int64_t row) const {
    return run_ ? run_->rows.after(row * run_->step).targets : request_.source_rows(row).targets;
  }

  const SplitRequest request_;
  const std::optional<SampleRun> run_;
  const at::Tensor stamps_;
  at::Tensor ends_;
  at::Tensor of_data_;
};

/// Rising times, each a step: first, first + distance, … or what a tensor has.
class RisingTimes {
 public:
  RisingTimes(std::int64_t first, std::int64_t distance, std::int64_t count)
      : first_(first), distance_(distance), count_(count) {}
  explicit RisingTimes(at::Tensor times) : count_(times.numel()), times_(std::move(times)) {}

  /// Nothing where they do not rise.
  static std::optional<RisingTimes> of(const at::Tensor& times) {
    const auto* const begin = times.data_ptr<double>();
    const auto* const end = begin + times.numel();
    return std::adjacent_find(begin, end, std::greater_equal<>()) == end
               ? std::optional(RisingTimes(times))
               : std::nullopt;
  }

  std::int64_t count() const { return count_; }
  /// The last step that is not after `time`; the first, where all are.
  std::int64_t step_at(double time) const {
    if (times_.defined()) {
      const auto* const begin = times_.data_ptr<double>();
      return std::max<std::int64_t>(std::upper_bound(begin, begin + count_, time) - begin - 1, 0);
    }
    const std::int64_t step = (static_cast<std::int64_t>(std::floor(time)) - first_) / distance_;
    return std::clamp<std::int64_t>(step, 0, count_ - 1);
  }

 private:
  std::int64_t first_ = 0;
  std::int64_t distance_ = 1;
  std::int64_t count_ = 0;
  at::Tensor times_;
};

/// Rows that are in order of time as they are.
class GivenOrder final : public TimeSteps::Order {
 public:
  GivenOrder(TargetTimes times, RisingTimes steps, std::int64_t rows)
      : times_(std::move(times)), steps_(std::move(steps)), rows_(rows) {}

  std::int64_t count() const override { return steps_.count(); }
  std::int64_t first(std::int64_t row) const override { return steps_.step_at(times_.first(row)); }
  std::int64_t last(std::int64_t row) const override { return steps_.step_at(times_.last(row)); }
  bool is_given() const override { return true; }
  RowList beginning_in(std::int64_t begin, std::int64_t end) const override {
    return RowList::range(rows_before(begin), rows_before(end));
  }

 private:
  /// How many rows begin before the step.
  std::int64_t rows_before(std::int64_t step) const {
    std::int64_t begin = 0;
    for (std::int64_t end = rows_; begin < end;) {
      const std::int64_t middle = begin + (end - begin) / 2;
      first(middle) < step ? begin = middle + 1 : end = middle;
    }
    return begin;
  }

  const TargetTimes times_;
  const RisingTimes steps_;
  const std::int64_t rows_;
};

/// Rows in any order, sorted.
class SortedOrder final : public TimeSteps::Order {
 public:
  SortedOrder(const TargetTimes& times, std::int64_t rows, std::vector<double> steps) {
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    count_ = static_cast<std::int64_t>(steps.size());
    const auto step_at = [&](double time) {
      return std::upper_bound(steps.begin(), steps.end(), time) - steps.begin() - 1;
    };
    for (std::int64_t row = 0; row < rows; ++row) {
      first_.push_back(std::max<std::int64_t>(step_at(times.first(row)), 0));
      last_.push_back(std::max<std::int64_t>(step_at(times.last(row)), first_.back()));
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

  std::int64_t count() const override { return count_; }
  std::int64_t first(std::int64_t row) const override {
    return first_[static_cast<std::size_t>(row)];
  }
  std::int64_t last(std::int64_t row) const override {
    return last_[static_cast<std::size_t>(row)];
  }
  bool is_given() const override { return false; }
  RowList beginning_in(std::int64_t begin, std::int64_t end) const override {
    return std::vector<std::int64_t>(order_.begin() + beginning_[static_cast<std::size_t>(begin)],
                                     order_.begin() + beginning_[static_cast<std::size_t>(end)]);
  }

 private:
  std::int64_t count_ = 0;
  std::vector<std::int64_t> first_;
  std::vector<std::int64_t> last_;
  std::vector<std::int64_t> order_;      // rows by first_
  std::vector<std::int64_t> beginning_;  // of each step in order_, and its end
};

/// Which steps there are.
enum class Steps {
  kOfRows,        ///< the times of the rows to split
  kOfDataWithin,  ///< those of the data's own rows, from the first row's to the last one's
  kOfData         ///< all of them
};

/// The steps of rows that are in order of time as they are; nothing where they are not, or nobody
/// knows without looking at each.
std::optional<RisingTimes> given_steps(const SplitRequest& request, const TargetTimes& times,
                                       Steps steps) {
  const std::optional<SampleRun>& run = times.run();
  std::optional<RisingTimes> own;
  if (times.stamps().defined()) {
    own = RisingTimes::of(times.stamps());
  } else if (run) {
    const bool is_by_sample = steps == Steps::kOfRows;
    own = RisingTimes(run->rows.targets.begin, is_by_sample ? run->step : 1,
                      is_by_sample ? run->count : (run->count - 1) * run->step + 1);
  }
  if (!own || steps == Steps::kOfRows)
    return own;
  if (!times.of_data().defined())
    return steps == Steps::kOfData ? RisingTimes(0, 1, request.data->rows()) : own;
  if (steps == Steps::kOfData)
    return RisingTimes::of(times.of_data());
  const auto* const begin = times.of_data().data_ptr<double>();
  const auto* const end = begin + times.of_data().numel();
  if (!std::is_sorted(begin, end))
    return std::nullopt;
  const auto* const first = std::lower_bound(begin, end, times.first(0));
  const auto* const last = std::upper_bound(first, end, times.first(request.rows - 1));
  return RisingTimes::of(times.of_data().slice(0, first - begin, last - begin));
}

std::vector<double> all_steps(const SplitRequest& request, const TargetTimes& times, Steps which) {
  std::vector<double> own;
  for (std::int64_t row = 0; which != Steps::kOfData && row < request.rows; ++row)
    own.push_back(times.first(row));
  if (which == Steps::kOfRows)
    return own;
  std::vector<double> steps;
  if (times.of_data().defined()) {
    const auto* const data = times.of_data().data_ptr<double>();
    steps.assign(data, data + times.of_data().numel());
  } else {
    steps.resize(static_cast<std::size_t>(request.data->rows()));
    std::iota(steps.begin(), steps.end(), 0.0);
  }
  if (which == Steps::kOfDataWithin) {
    const auto ends = std::minmax_element(own.begin(), own.end());
    std::erase_if(steps, [&](double step) { return step < *ends.first || step > *ends.second; });
  }
  return steps;
}

}  // namespace

TimeSteps::TimeSteps(const SplitRequest& request, Axis axis) {
  if (!request.timestamps.defined())
    expect_one_series(request);
  const bool has_data = request.samples != nullptr && request.data != nullptr && request.rows > 0;
  const Steps which = !has_data             ? Steps::kOfRows
                      : axis == Axis::kData ? Steps::kOfData
                                            : Steps::kOfDataWithin;
  TargetTimes times(request);
  if (std::optional<RisingTimes> steps = given_steps(request, times, which)) {
    order_ = std::make_shared<const GivenOrder>(std::move(times), *std::move(steps), request.rows);
    return;
  }
  std::vector<double> steps = all_steps(request, times, which);
  order_ = std::make_shared<const SortedOrder>(times, request.rows, std::move(steps));
}

std::int64_t TimeSteps::count() const {
  return order_->count();
}

std::int64_t TimeSteps::first(std::int64_t row) const {
  return order_->first(row);
}

std::int64_t TimeSteps::last(std::int64_t row) const {
  return order_->last(row);
}

bool TimeSteps::are_in_order() const {
  return order_->is_given();
}

RowList TimeSteps::beginning_in(std::int64_t begin, std::int64_t end) const {
  begin = std::clamp<std::int64_t>(begin, 0, count());
  end = std::clamp<std::int64_t>(end, begin, count());
  return order_->beginning_in(begin, end);
}

RowList TimeSteps::within(std::int64_t begin, std::int64_t end) const {
  RowList::Builder rows;
  for (const std::int64_t row : beginning_in(begin, end)) {
    if (last(row) < end)
      rows.add(row);
  }
  return rows.done();
}

}  // namespace treadle
