#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "report/sections/sections.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;

constexpr std::size_t kShownChanges = 50;

/// The metric that recovery is measured by, then the other metrics and the loss.
std::vector<std::string> names_in(const Json& record) {
  std::vector<std::string> names{text_at_path(record, {"recovery", "metric"})};
  for (const Json& metric : at_path(record, {"metric_list"}))
    names.push_back(text_at_path(metric, {"name"}));
  names.emplace_back("loss");
  const auto again = std::find(names.begin() + 1, names.end(), names.front());
  if (again != names.end())
    names.erase(again);
  return names;
}

Json changes_card(const Json& record) {
  const std::string metric = text_at_path(record, {"recovery", "metric"});
  const Json& threshold = at_path(record, {"recovery", "threshold"});
  const Json& share = at_path(record, {"recovery", "share"});
  List columns{"task", "from row", metric + " before", metric + " after"};
  if (threshold.is_number())
    columns.emplace_back(List{"windows to ", threshold});
  if (share.is_number())
    columns.emplace_back(List{"windows to ", as("share", share), " of before"});
  List rows;
  for (const Json& change : at_path(record, {"changes"})) {
    List row{at_path(change, {"task"}), as("count", at_path(change, {"row"}))};
    if (at_path(change, {"window"}).is_null()) {
      row.emplace_back("not reached");
      row.resize(columns.size(), "");
    } else {
      row.push_back(number_in(at_path(change, {"before"}), metric));
      row.push_back(number_in(at_path(change, {"after"}), metric));
      for (const char* key : {"windows_to_threshold", "windows_to_share"}) {
        if (change.contains(key))
          row.push_back(change.at(key).is_null() ? Json("never") : as("count", change.at(key)));
      }
    }
    rows.emplace_back(std::move(row));
  }
  if (rows.empty())
    return {};
  return card("Changes of the task",
              {table(std::move(columns), std::move(rows), kShownChanges, "changes"),
               note("Before: the window before the one with the change; after: the one with the "
                    "change. Windows are counted from that one, 0 for itself, up to the next "
                    "change.")});
}

Json stability_card(const Json& record) {
  List rows;
  for (const std::string& name : names_in(record)) {
    const Json variance = number_in(at_path(record, {"variances"}), name);
    rows.push_back(List{name, number_in(record, name),
                        variance.is_number() ? Json(std::sqrt(variance.get<double>())) : Json(),
                        variance});
  }
  return card("Over the windows",
              {table({"", "mean", "deviation", "variance"}, std::move(rows)),
               note("Deviation and variance of the population of windows: the smaller, the more "
                    "stable.")});
}

}  // namespace

List adaptation(const Json& result) {
  const Json& record = at_path(result, {"prequential"});
  if (at_path(record, {"windows"}).empty())
    return {};
  return {card(List{"Tested, then trained on, in windows of ",
                    as("count", at_path(record, {"window_rows"})), " rows"},
               {chart("timeline", {{"names", names_in(record)},
                                   {"windows", at_path(record, {"windows"})},
                                   {"changes", at_path(record, {"changes"})}})}),
          changes_card(record), stability_card(record)};
}

}  // namespace treadle::report
