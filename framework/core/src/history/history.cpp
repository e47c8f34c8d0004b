#include <treadle/core/history/history.h>

#include <algorithm>
#include <iterator>

namespace treadle {
namespace {

struct RowNumber {
  std::string_view name;
  std::optional<Number> (*value)(const EpochSummary&);
  Direction direction;
};
constexpr RowNumber kNumbers[] = {
    {"train_loss", [](const EpochSummary& row) { return std::optional(row.train_loss); },
     Direction::kLowerIsBetter},
    {"val_loss", [](const EpochSummary& row) { return row.val_loss; }, Direction::kLowerIsBetter},
    {"learning_rate",
     [](const EpochSummary& row) { return std::optional<Number>(row.learning_rate); },
     Direction::kNone},
};

std::optional<MetricValue> find_in(const std::vector<MetricValue>& values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const MetricValue& value) { return value.name == name; });
  return found == values.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

std::optional<MetricValue> find_value(const EpochSummary& row, std::string_view name) {
  for (const RowNumber& number : kNumbers) {
    if (number.name != name)
      continue;
    const std::optional<Number> value = number.value(row);
    if (!value)
      return std::nullopt;
    return MetricValue{std::string(name), *value, number.direction};
  }
  const auto metric = find_in(row.metrics, name);
  return metric ? metric : find_in(row.logged, name);
}

Trend trend_of(std::span<const EpochSummary> history, std::string_view name) {
  std::vector<double> values;
  Direction direction = Direction::kNone;
  for (const EpochSummary& row : history) {
    const auto value = find_value(row, name);
    if (!value || value->value.is_undefined())
      continue;
    values.push_back(value->value);
    direction = value->direction;
  }
  return Trend(std::move(values), direction);
}

}  // namespace treadle
