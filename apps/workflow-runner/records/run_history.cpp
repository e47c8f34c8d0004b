#include "records/run_history.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <system_error>

namespace treadle::cli {
namespace {

constexpr std::string_view kLastBeforeMetrics = "val_loss";

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');)
    fields.push_back(field);
  return fields;
}

bool comes_after_metrics(const std::string& column) {
  return column == "best" || column == "decisions" || column.starts_with("log.");
}

}  // namespace

RunHistory::RunHistory(const std::filesystem::path& folder) {
  std::ifstream file(folder / "history.csv");
  std::string line;
  if (!std::getline(file, line))
    return;
  names_ = fields_of(line);
  while (std::getline(file, line) && !file.eof()) {
    std::vector<std::string> fields = fields_of(line);
    if (fields.size() == names_.size())
      lines_.push_back(std::move(fields));
  }
}

std::string RunHistory::text(std::size_t line, std::string_view column) const {
  const auto found = std::find(names_.begin(), names_.end(), column);
  return found == names_.end() ? std::string()
                               : lines_[line][static_cast<std::size_t>(found - names_.begin())];
}

std::optional<double> RunHistory::number(std::size_t line, std::string_view column) const {
  const std::string field = text(line, column);
  double number = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  if (error != std::errc() || end != field.data() + field.size())
    return std::nullopt;
  return number;
}

std::vector<std::string> RunHistory::metrics() const {
  auto begin = std::find(names_.begin(), names_.end(), kLastBeforeMetrics);
  if (begin == names_.end())
    return {};
  ++begin;
  return {begin, std::find_if(begin, names_.end(), comes_after_metrics)};
}

std::map<std::string, std::vector<ValidatedEpoch>> validated_epochs(const RunHistory& history) {
  std::map<std::string, std::vector<ValidatedEpoch>> epochs;
  std::map<std::string, double> seconds;
  const std::vector<std::string> metrics = history.metrics();
  for (std::size_t line = 0; line < history.size(); ++line) {
    const std::string fit = history.text(line, "fit");
    seconds[fit] += history.number(line, "seconds").value_or(0);
    const std::optional<double> loss = history.number(line, kLastBeforeMetrics);
    if (!loss)
      continue;
    ValidatedEpoch epoch{history.number(line, "step").value_or(0), seconds[fit], {{"loss", *loss}}};
    for (const std::string& metric : metrics) {
      if (const std::optional<double> value = history.number(line, metric))
        epoch.values[metric] = *value;
    }
    epochs[fit].push_back(std::move(epoch));
  }
  return epochs;
}

}  // namespace treadle::cli
