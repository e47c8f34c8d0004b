#include "series_rows.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/calendar.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/time_text.h>

namespace treadle::series {
namespace {

/// One step of a series: the rows of it, by their place in the order of time; none where it is
/// filled.
struct Step {
  double time = 0;
  double ahead = 0;  ///< of UTC, its clock
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The steps of all series, one series after the other.
struct Steps {
  std::vector<std::int64_t> order;  // rows of the source
  std::vector<Step> steps;
  std::vector<std::pair<std::size_t, std::size_t>> series;  // of steps: from, to
};

using Aggregate = double (*)(double so_far, double next);

struct Rule {
  const char* name;
  Aggregate add;
  bool is_mean = false;
};

const Rule kRules[] = {{"mean", [](double a, double b) { return a + b; }, true},
                       {"sum", [](double a, double b) { return a + b; }},
                       {"first", [](double a, double) { return a; }},
                       {"last", [](double, double b) { return b; }},
                       {"min", [](double a, double b) { return std::min(a, b); }},
                       {"max", [](double a, double b) { return std::max(a, b); }}};

const Rule& rule_called(const std::string& name) {
  for (const Rule& rule : kRules) {
    if (name == rule.name)
      return rule;
  }
  return kRules[0];  // "error": no step has two rows
}

Steps steps_of(const RowReader& source, const SeriesOptions& options,
               const at::Tensor& utc_offsets) {
  if (!source.timestamps().defined()) {
    throw DataError(
        "the data series needs the times of its rows, and the source has none; name "
        "their column in its \"time\"");
  }
  const bool are_dates = source.spec().has_dates;
  if (options.grid && options.grid->is_of_dates() != are_dates) {
    throw DataError(are_dates ? "the times are dates, so \"frequency\" is a text such as \"1h\""
                              : "the times are numbers, so \"frequency\" is a number");
  }
  const at::Tensor times = source.timestamps().contiguous();
  const at::Tensor groups = source.groups().defined() ? source.groups().contiguous() : at::Tensor();
  const auto* const time = times.data_ptr<double>();
  const auto* const group = groups.defined() ? groups.data_ptr<std::int64_t>() : nullptr;
  const at::Tensor clocks = utc_offsets.defined() ? utc_offsets.contiguous() : at::Tensor();
  const auto ahead_of = [&](std::int64_t row) {
    return clocks.defined() ? clocks.data_ptr<double>()[row] : 0;
  };
  // Of a clock where steps are its days, so that they begin with its midnights.
  const auto step_at = [&](std::int64_t row) {
    return options.grid->step_of(time[row] + (options.grid->is_of_days() ? ahead_of(row) : 0));
  };
  const auto begin_of = [&](std::int64_t step, std::int64_t row) {
    return options.grid->time_of(step) - (options.grid->is_of_days() ? ahead_of(row) : 0);
  };
  Steps all;
  all.order.resize(static_cast<std::size_t>(source.rows()));
  std::iota(all.order.begin(), all.order.end(), 0);
  std::unordered_map<std::int64_t, std::int64_t> rank;  // of groups, by their first rows
  for (std::int64_t row = 0; group != nullptr && row < source.rows(); ++row)
    rank.emplace(group[row], static_cast<std::int64_t>(rank.size()));
  const auto rank_of = [&](std::int64_t row) { return group == nullptr ? 0 : rank.at(group[row]); };
  std::stable_sort(all.order.begin(), all.order.end(), [&](std::int64_t a, std::int64_t b) {
    const std::int64_t rank_a = rank_of(a);
    const std::int64_t rank_b = rank_of(b);
    return rank_a != rank_b ? rank_a < rank_b : time[a] < time[b];
  });
  std::int64_t number = 0;  // of the step that was added last
  for (std::size_t i = 0; i < all.order.size(); ++i) {
    const std::int64_t row = all.order[i];
    const auto place = static_cast<std::int64_t>(i);
    const bool begins = i == 0 || rank_of(row) != rank_of(all.order[i - 1]);
    if (begins)
      all.series.emplace_back(all.steps.size(), all.steps.size());
    const bool same =
        !begins && (options.grid ? step_at(row) == number : time[row] == time[all.order[i - 1]]);
    if (same) {
      if (!options.grid || options.aggregate == "error") {
        throw DataError(
            source.describe_row(row) + ": " +
            (options.grid ? "a second row in the step of " : "a second row of the series at ") +
            time_text(time[row], are_dates) +
            (options.grid ? "; state in \"aggregate\" what they become"
                          : "; set \"frequency\", so that rows of a step become one"));
      }
      all.steps.back().end = place + 1;
      continue;
    }
    if (!options.grid) {
      all.steps.push_back({time[row], ahead_of(row), place, place + 1});
    } else {
      const std::int64_t next = step_at(row);
      constexpr std::int64_t kMostFilled = 100'000'000;
      if (!begins && next - number > kMostFilled)
        throw DataError(source.describe_row(row) + ": " + std::to_string(next - number - 1) +
                        " steps without a row come before it; set a longer \"frequency\"");
      for (std::int64_t step = number + 1; !begins && step < next; ++step) {
        if (options.fill == SeriesOptions::Fill::kError) {
          throw DataError(source.describe_row(row) + ": there is no row for " +
                          time_text(options.grid->time_of(step), are_dates) +
                          " before it; state in \"fill\" what such steps become");
        }
        const std::int64_t before = all.order[i - 1];
        all.steps.push_back({begin_of(step, before), ahead_of(before), place, place});
      }
      number = next;
      all.steps.push_back({begin_of(next, row), ahead_of(row), place, place + 1});
    }
  }
  for (std::size_t i = 0; i < all.series.size(); ++i)
    all.series[i].second = i + 1 < all.series.size() ? all.series[i + 1].first : all.steps.size();
  return all;
}

/// Makes values of steps from those of rows.
class Resampler {
 public:
  Resampler(const Steps& steps, const SeriesOptions& options)
      : steps_(steps), rule_(rule_called(options.aggregate)), fill_(options.fill) {}

  /// Whether steps without rows have values that nobody observed. Zeros are an observation: nothing
  /// happened.
  bool has_guesses() const {
    return fill_ != SeriesOptions::Fill::kZero &&
           std::any_of(steps_.steps.begin(), steps_.steps.end(),
                       [](const Step& step) { return step.begin == step.end; });
  }

  /// float64 [rows, width] -> [steps, width]. NaN (missing) takes no part.
  at::Tensor numbers(const at::Tensor& rows) const { return numbers(rows, fill_); }
  /// What was known of them at each step: a line between two rows is not, before the second.
  at::Tensor known_numbers(const at::Tensor& rows) const {
    return numbers(rows,
                   fill_ == SeriesOptions::Fill::kLinear ? SeriesOptions::Fill::kForward : fill_);
  }
  at::Tensor numbers(const at::Tensor& rows, SeriesOptions::Fill how) const {
    const at::Tensor from = rows.to(at::kDouble).contiguous();
    const std::int64_t width = from.size(1);
    at::Tensor to = at::empty({count(), width}, at::kDouble);
    const auto* const in = from.data_ptr<double>();
    auto* const out = to.data_ptr<double>();
    for (std::int64_t step = 0; step < count(); ++step) {
      for (std::int64_t k = 0; k < width; ++k)
        out[step * width + k] = aggregated(in, width, k, at(step));
    }
    for (const auto& [begin, end] : steps_.series)
      fill(how, out, width, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
    return to;
  }

  /// [rows] -> [steps]: those of guesses are 0.
  at::Tensor weights(const at::Tensor& rows) const {
    at::Tensor weights = numbers(rows.unsqueeze(1), SeriesOptions::Fill::kForward).squeeze(1);
    weights = weights.nan_to_num(0);
    auto* const weight = weights.data_ptr<double>();
    const bool zero_guesses = has_guesses();
    for (std::int64_t step = 0; step < count(); ++step) {
      if (zero_guesses && is_filled(step))
        weight[step] = 0;
    }
    return weights;
  }

  /// RowReader::known_from() of steps: undefined where all are known at their times.
  at::Tensor known_from(const at::Tensor& times) const {
    if (fill_ != SeriesOptions::Fill::kLinear || !has_guesses())
      return {};
    at::Tensor known = times.clone();
    auto* const time = known.data_ptr<double>();
    for (std::int64_t step = count() - 2; step >= 0; --step) {
      if (is_filled(step))
        time[step] = time[step + 1];  // the last step of a series has a row
    }
    return known;
  }

  /// int64 [rows, ...] -> [steps, ...]: the last row of the step, or of the one before it.
  at::Tensor last(const at::Tensor& rows) const {
    std::vector<std::int64_t> chosen;
    for (const Step& step : steps_.steps)
      chosen.push_back(steps_.order[static_cast<std::size_t>(
          step.end > step.begin ? step.end - 1 : step.begin - 1)]);
    return rows.index_select(0, at::tensor(chosen, at::kLong)).contiguous();
  }

 private:
  std::int64_t count() const { return static_cast<std::int64_t>(steps_.steps.size()); }
  const Step& at(std::int64_t step) const { return steps_.steps[static_cast<std::size_t>(step)]; }
  bool is_filled(std::int64_t step) const { return at(step).begin == at(step).end; }

  double aggregated(const double* in, std::int64_t width, std::int64_t k, const Step& step) const {
    double value = std::numeric_limits<double>::quiet_NaN();
    std::int64_t rows = 0;
    for (std::int64_t place = step.begin; place < step.end; ++place) {
      const double next = in[steps_.order[static_cast<std::size_t>(place)] * width + k];
      if (next != next)
        continue;
      value = rows == 0 ? next : rule_.add(value, next);
      ++rows;
    }
    return rule_.is_mean && rows > 1 ? value / static_cast<double>(rows) : value;
  }

  void fill(SeriesOptions::Fill how, double* out, std::int64_t width, std::int64_t begin,
            std::int64_t end) const {
    for (std::int64_t step = begin; step < end; ++step) {
      if (!is_filled(step))
        continue;
      std::int64_t after = step;
      while (after < end && is_filled(after))
        ++after;
      const std::int64_t before = step - 1;  // the first step of a series has a row, as the last
      for (; step < after; ++step) {
        const double share =
            static_cast<double>(step - before) / static_cast<double>(after - before);
        for (std::int64_t k = 0; k < width; ++k) {
          const double left = out[before * width + k];
          const double right = out[after * width + k];
          out[step * width + k] = how == SeriesOptions::Fill::kZero ? 0
                                  : how == SeriesOptions::Fill::kLinear
                                      ? left + share * (right - left)
                                      : left;
        }
      }
    }
  }

  const Steps& steps_;
  const Rule& rule_;
  const SeriesOptions::Fill fill_;
};

bool is_table(const PortSpec& port) {
  return (port.role == Role::kFeatures || port.role == Role::kCategories) &&
         port.shape.size() == 1 && port.shape[0] != kVaries && !port.is_auxiliary();
}

void check(const DataSpec& spec) {
  for (const PortSpec& port : spec.inputs) {
    if (!is_table(port)) {
      throw DataError("the data series takes tables of numbers and categories, and input " +
                      quote_text(port.name) + " is none");
    }
  }
  for (const TargetSpec& target : spec.targets) {
    if (target.position_dimensions() != 0 || !target.padded_like.empty()) {
      throw DataError("the data series takes targets with one value or vector a row, and target " +
                      quote_text(target.name) + " has several positions");
    }
  }
}

/// The steps that stay, of those whose lags exist.
std::vector<std::int64_t> with_history(const Steps& steps, std::int64_t history) {
  std::vector<std::int64_t> kept;
  for (const auto& [begin, end] : steps.series) {
    for (std::size_t step = begin + static_cast<std::size_t>(history); step < end; ++step)
      kept.push_back(static_cast<std::int64_t>(step));
  }
  return kept;
}

/// Columns behind those of a table [steps, width].
class FurtherColumns {
 public:
  FurtherColumns(PortSpec& port, at::Tensor table) : port_(port), tables_{std::move(table)} {}

  void add(const std::vector<std::string>& names, const at::Tensor& values, bool may_be_missing) {
    for (const std::string& name : names) {
      for (const Column& column : port_.columns) {
        if (column.name == name) {
          throw DataError("the data series would add a column " + quote_text(name) +
                          ", and the source has one of that name");
        }
      }
      port_.columns.push_back({name, {}, may_be_missing});
    }
    tables_.push_back(values);
  }

  /// The number of an input column. Throws DataError.
  std::int64_t place(const std::string& name, const char* key) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < port_.columns.size(); ++i) {
      if (port_.columns[i].name == name)
        return static_cast<std::int64_t>(i);
      names.push_back(port_.columns[i].name);
    }
    throw DataError("\"" + std::string(key) + "\" of the data series: input " +
                    quote_text(port_.name) + " has no column " + quote_text(name) + "; it has " +
                    quoted_list(names) + did_you_mean(name, names));
  }

  const at::Tensor& table() const { return tables_.front(); }
  at::Tensor joined() const {
    port_.shape = {static_cast<std::int64_t>(port_.columns.size())};
    return at::cat(tables_, 1);
  }

 private:
  PortSpec& port_;
  std::vector<at::Tensor> tables_;
};

/// Expects a name that the schema has.
const CalendarFeature& feature_named(const std::string& name) {
  const CalendarFeature* const feature = find_calendar_feature(name);
  TREADLE_EXPECTS(feature != nullptr, "a feature of the calendar is one that the schema has");
  return *feature;
}

/// The columns of a feature at some times: float64 [N, width].
at::Tensor values_at(const CalendarFeature& feature, const at::Tensor& times) {
  const auto width = static_cast<std::int64_t>(feature.width());
  at::Tensor values = at::empty({times.size(0), width}, at::kDouble);
  const auto* const time = times.data_ptr<double>();
  auto* out = values.data_ptr<double>();
  for (std::int64_t row = 0; row < times.size(0); ++row, out += width)
    feature.write(time[row], out);
  return values;
}

}  // namespace

SeriesOptions::SeriesOptions(const Config& config)
    : aggregate(config.get_or<std::string>("aggregate", "mean")),
      calendar(config.get_or("calendar", std::vector<std::string>())) {
  static const std::map<std::string, Fill> kFills = {{"error", Fill::kError},
                                                     {"forward", Fill::kForward},
                                                     {"linear", Fill::kLinear},
                                                     {"zero", Fill::kZero}};
  fill = kFills.at(config.get_or<std::string>("fill", "error"));
  if (config.has("frequency")) {
    const nlohmann::json& given = config.json().at("frequency");
    grid = given.is_string() ? TimeGrid(given.get<std::string>()) : TimeGrid(given.get<double>());
  }
  for (const auto& [key, is_difference] :
       {std::pair("lags", false), std::pair("differences", true)}) {
    if (!config.has(key))
      continue;
    for (const Config& item : config.children(key)) {
      for (const std::int64_t steps : item.get<std::vector<std::int64_t>>("steps"))
        lags.push_back({item.get<std::string>("column"), steps, is_difference});
    }
  }
}

MatrixRows::Matrices series_rows(const RowReader& source, const SeriesOptions& options,
                                 const at::Tensor& utc_offsets) {
  check(source.spec());
  const Steps steps = steps_of(source, options, utc_offsets);
  const Resampler resampler(steps, options);
  std::vector<std::int64_t> every(static_cast<std::size_t>(source.rows()));
  std::iota(every.begin(), every.end(), 0);
  Batch rows;
  source.gather(every, rows);

  MatrixRows::Matrices made;
  made.spec = source.spec();
  std::int64_t history = 0;
  for (const SeriesOptions::Lag& lag : options.lags)
    history = std::max(history, lag.steps);
  const at::Tensor kept = at::tensor(with_history(steps, history), at::kLong);
  if (kept.size(0) == 0) {
    throw DataError("no series has more than the " + std::to_string(history) +
                    " steps that the longest lag leaves out");
  }
  const auto keep = [&](const at::Tensor& of_steps, at::ScalarType dtype) {
    return of_steps.index_select(0, kept).to(dtype).contiguous();
  };
  at::Tensor times = at::empty({static_cast<std::int64_t>(steps.steps.size())}, at::kDouble);
  at::Tensor clock_times = at::empty_like(times);
  for (std::size_t i = 0; i < steps.steps.size(); ++i) {
    times.data_ptr<double>()[i] = steps.steps[i].time;
    clock_times.data_ptr<double>()[i] = steps.steps[i].time + steps.steps[i].ahead;
  }

  bool has_numbers = false;
  for (std::size_t i = 0; i < made.spec.inputs.size(); ++i) {
    PortSpec& port = made.spec.inputs[i];
    if (port.role == Role::kCategories) {
      made.inputs.push_back(keep(resampler.last(rows.inputs[i]), at::kLong));
      continue;
    }
    port.dtype = at::kDouble;  // differences of large numbers may be small
    at::Tensor table = resampler.numbers(rows.inputs[i]);
    if (!std::exchange(has_numbers, true)) {
      FurtherColumns columns(port, table);
      const at::Tensor known = resampler.known_numbers(rows.inputs[i]);
      for (const SeriesOptions::Lag& lag : options.lags) {
        const std::int64_t place =
            columns.place(lag.column, lag.is_difference ? "differences" : "lags");
        const at::Tensor values = known.select(1, place);
        // Only kept steps are read, whose history lies in their series.
        const at::Tensor before = values.roll(lag.steps, 0);
        columns.add({lag.name()}, (lag.is_difference ? values - before : before).unsqueeze(1),
                    port.columns[static_cast<std::size_t>(place)].may_be_missing);
      }
      for (const std::string& name : options.calendar) {
        if (!source.spec().has_dates)
          throw DataError("\"calendar\" of the data series needs dates, and the times are numbers");
        const CalendarFeature& feature = feature_named(name);
        columns.add(feature.column_names(), values_at(feature, clock_times), false);
      }
      table = columns.joined();
    }
    made.inputs.push_back(keep(table, at::kDouble));
  }
  if (!has_numbers && (!options.lags.empty() || !options.calendar.empty()))
    throw DataError("the data series adds columns to an input of numbers, and the source has none");
  for (std::size_t t = 0; t < made.spec.targets.size(); ++t) {
    const at::Tensor& values =
        rows.original_targets.empty() ? rows.targets[t] : rows.original_targets[t];
    made.targets.push_back(made.spec.targets[t].kind == TargetKind::kClasses
                               ? keep(resampler.last(values), at::kLong)
                               : keep(resampler.numbers(values), at::kDouble));
  }
  if (rows.weights.defined() || resampler.has_guesses()) {
    made.spec.has_weights = true;
    made.weights =
        keep(resampler.weights(rows.weights.defined() ? rows.weights : at::ones({source.rows()})),
             at::kDouble);
  }
  if (source.groups().defined())
    made.groups = keep(resampler.last(source.groups()), at::kLong);
  made.timestamps = keep(times, at::kDouble);
  if (const at::Tensor known_from = resampler.known_from(times); known_from.defined())
    made.known_from = keep(known_from, at::kDouble);
  std::vector<std::int64_t> first(static_cast<std::size_t>(kept.size(0)));
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Step& step = steps.steps[static_cast<std::size_t>(kept.data_ptr<std::int64_t>()[i])];
    const bool is_filled = step.begin == step.end;
    // A filled step is described by the row before it: ~row.
    const std::int64_t row =
        steps.order[static_cast<std::size_t>(is_filled ? step.begin - 1 : step.begin)];
    first[i] = is_filled ? ~row : row;
  }
  made.describe_row = [&source, first = std::move(first)](std::int64_t row) {
    const std::int64_t of = first[static_cast<std::size_t>(row)];
    return of >= 0 ? source.describe_row(of) : "filled after " + source.describe_row(~of);
  };
  return made;
}

}  // namespace treadle::series
