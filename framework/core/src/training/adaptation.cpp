#include <treadle/core/training/adaptation.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle {

RecordsAdaptation::~RecordsAdaptation() = default;

namespace {

using Json = nlohmann::json;

bool is_at_least_as_good(const MetricValue& value, double bound) {
  if (!value.value.is_known())
    return false;
  return value.direction == Direction::kLowerIsBetter ? value.value <= bound : value.value >= bound;
}

/// What a window must come to after a change to have that share of the level before it.
std::optional<double> bound_of_share(const MetricValue* before, double share) {
  if (before == nullptr || !(before->value > 0))
    return std::nullopt;
  return before->direction == Direction::kLowerIsBetter ? before->value / share
                                                        : before->value * share;
}

/// The first of `windows` that is as good as `bound`.
std::optional<std::int64_t> first_recovered(std::span<const AdaptationWindow> windows,
                                            const std::string& metric, double bound) {
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const MetricValue* const value = find_number(windows[i].values, metric);
    if (value != nullptr && is_at_least_as_good(*value, bound))
      return static_cast<std::int64_t>(i);
  }
  return std::nullopt;
}

/// The window that contains `row`; windows.size() where none does.
std::size_t window_of(std::span<const AdaptationWindow> windows, std::int64_t row) {
  const auto found = std::find_if(windows.begin(), windows.end(), [&](const AdaptationWindow& one) {
    return row < one.first_row + one.rows;
  });
  return static_cast<std::size_t>(found - windows.begin());
}

/// Names and directions as the windows have them, in the order of their first appearance.
std::vector<MetricValue> names_in(std::span<const AdaptationWindow> windows) {
  std::vector<MetricValue> names;
  for (const AdaptationWindow& window : windows) {
    for (const MetricValue& value : window.values) {
      if (find_number(names, value.name) == nullptr)
        names.push_back(value);
    }
  }
  return names;
}

/// JSON has no word for what is not finite: null. What is undefined is its reason.
Json saved_number(const Number& value) {
  return value.is_known() ? Json(value.value()) : value.is_undefined() ? Json(value.why()) : Json();
}

Number number_of(const Json& saved) {
  return saved.is_number()   ? Number(saved.get<double>())
         : saved.is_string() ? Number::undefined(saved.get<std::string>())
                             : Number(NAN);
}

}  // namespace

const MetricValue* find_number(std::span<const MetricValue> values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const MetricValue& one) { return one.name == name; });
  return found == values.end() ? nullptr : &*found;
}

AdaptationSummary summarize(std::span<const AdaptationWindow> windows,
                            std::span<const TaskChange> changes, const RecoveryRule& rule) {
  AdaptationSummary summary;
  const std::vector<MetricValue> names = names_in(windows);
  if (!names.empty() && find_number(names, rule.metric) == nullptr) {
    std::string known;
    for (const MetricValue& one : names)
      known += (known.empty() ? "" : ", ") + one.name;
    throw UsageError("no window has a number called \"" + rule.metric + "\"; they have " + known);
  }
  for (std::size_t i = 0; i < changes.size(); ++i) {
    ChangeEffect effect;
    effect.change = changes[i];
    const std::size_t window = window_of(windows, changes[i].row);
    if (window == windows.size()) {
      summary.changes.push_back(std::move(effect));
      continue;
    }
    effect.window = window;
    effect.after = windows[window].values;
    if (window > 0)
      effect.before = windows[window - 1].values;
    // The window that contains the next change has rows of another task: whatever it comes to is no
    // recovery from this change.
    const std::size_t end =
        i + 1 < changes.size() ? window_of(windows, changes[i + 1].row) : windows.size();
    const auto following = windows.subspan(window, end - window);
    if (rule.threshold)
      effect.windows_to_threshold = first_recovered(following, rule.metric, *rule.threshold);
    if (rule.share) {
      if (const std::optional<double> bound =
              bound_of_share(find_number(effect.before, rule.metric), *rule.share))
        effect.windows_to_share = first_recovered(following, rule.metric, *bound);
    }
    summary.changes.push_back(std::move(effect));
  }
  for (const MetricValue& one : names) {
    std::vector<double> values;
    for (const AdaptationWindow& window : windows) {
      const MetricValue* const value =
          window.rows > 0 ? find_number(window.values, one.name) : nullptr;
      if (value != nullptr && value->value.is_known())
        values.push_back(value->value);
    }
    double sum = 0;
    for (const double value : values)
      sum += value;
    const auto count = static_cast<double>(values.size());
    const auto over_windows = [&](double total) {
      return values.empty() ? Number::undefined("no window has a value") : Number(total / count);
    };
    const Number mean = over_windows(sum);
    double squares = 0;
    for (const double value : values)
      squares += (value - mean) * (value - mean);
    summary.means.push_back({one.name, mean, one.direction});
    summary.variances.push_back({one.name, over_windows(squares), Direction::kLowerIsBetter});
  }
  return summary;
}

AdaptationTracker::AdaptationTracker(std::string first_task, std::vector<TaskChange> changes)
    : first_task_(std::move(first_task)), changes_(std::move(changes)) {
  std::int64_t before = 0;
  for (const TaskChange& change : changes_) {
    if (change.row <= before) {
      throw UsageError(
          "the changes of a task come in the order of their rows, from row 1 on; row " +
          std::to_string(change.row) + " follows row " + std::to_string(before));
    }
    before = change.row;
  }
}

void AdaptationTracker::add_change(TaskChange change) {
  TREADLE_EXPECTS(change.row >= first_row_ && change.row > 0 &&
                      (changes_.empty() || changes_.back().row < change.row),
                  "a change of the task is met in the order of the rows");
  changes_.push_back(std::move(change));
}

void AdaptationTracker::count(std::int64_t rows) {
  TREADLE_EXPECTS(rows >= 0, "rows are counted upwards");
  open_rows_ += rows;
}

void AdaptationTracker::end_window(std::vector<MetricValue> values) {
  TREADLE_EXPECTS(open_rows_ > 0, "a window has rows");
  windows_.push_back({first_row_, open_rows_, task_of(first_row_), std::move(values)});
  first_row_ += std::exchange(open_rows_, 0);
}

const std::string& AdaptationTracker::task_of(std::int64_t row) const {
  const auto next = std::upper_bound(
      changes_.begin(), changes_.end(), row,
      [](std::int64_t wanted, const TaskChange& change) { return wanted < change.row; });
  return next == changes_.begin() ? first_task_ : std::prev(next)->task;
}

StateDict AdaptationTracker::do_state() const {
  StateDict state;
  state.put("first_task", Json(first_task_));
  state.put("open_rows", Json(open_rows_));
  state.put("first_row", Json(first_row_));
  Json changes = Json::array();
  for (const TaskChange& change : changes_)
    changes.push_back({change.row, change.task});
  state.put("changes", std::move(changes));
  Json windows = Json::array();
  for (const AdaptationWindow& window : windows_) {
    Json values = Json::array();
    for (const MetricValue& value : window.values)
      values.push_back({value.name, saved_number(value.value), static_cast<int>(value.direction)});
    windows.push_back({window.first_row, window.rows, window.task, std::move(values)});
  }
  state.put("windows", std::move(windows));
  return state;
}

void AdaptationTracker::do_load_state(const StateDict& state) {
  first_task_ = state.value("first_task").get<std::string>();
  open_rows_ = state.value("open_rows").get<std::int64_t>();
  first_row_ = state.value("first_row").get<std::int64_t>();
  changes_.clear();
  for (const Json& change : state.value("changes"))
    changes_.push_back({change.at(0).get<std::int64_t>(), change.at(1).get<std::string>()});
  windows_.clear();
  for (const Json& saved : state.value("windows")) {
    AdaptationWindow window{saved.at(0).get<std::int64_t>(),
                            saved.at(1).get<std::int64_t>(),
                            saved.at(2).get<std::string>(),
                            {}};
    for (const Json& value : saved.at(3)) {
      window.values.push_back({value.at(0).get<std::string>(), number_of(value.at(1)),
                               static_cast<Direction>(value.at(2).get<int>())});
    }
    windows_.push_back(std::move(window));
  }
}

}  // namespace treadle
