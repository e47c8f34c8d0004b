#include "terminal/reasons_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <treadle/base/json_words.h>

#include "terminal/result_text.h"
#include "terminal/text_table.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kWidestColumns = 32;
constexpr std::size_t kMostImportances = 20;  // --json has all
constexpr std::size_t kMostRows = 5;
constexpr std::size_t kMostSubgroups = 10;
constexpr std::size_t kBarWidth = 20;

std::string joined_texts(const Json& list, const char* separator) {
  std::string text;
  for (const Json& one : list)
    text += (text.empty() ? "" : separator) + one.get<std::string>();
  return text;
}

std::string name_cell(const std::string& name) {
  return cut_to(plain_text(name), kWidestColumns);
}

std::string titled(const std::string& title, const Terminal& terminal) {
  return "\n" + terminal.bold(title) + "\n";
}

/// The decisions of the run that the rows took part in; empty where they chose nothing.
std::string choices_text(const Json& chose) {
  return chose.empty() ? "" : "; they also chose: " + joined_texts(chose, ", ");
}

std::string rows_text(const Json& reasons) {
  const auto rows = reasons.at("rows").get<std::int64_t>();
  const auto available = reasons.value("rows_available", rows);
  const std::string count = std::to_string(rows) + (rows == 1 ? " row" : " rows");
  const std::string some =
      rows < available ? count + " drawn from " + std::to_string(available) : count;
  const std::string from = reasons.at("rows_from").get<std::string>();
  if (from == "file")
    return some + " of the file, predicted by the run's model";
  const std::size_t parts = reasons.at("parts").size();
  const std::string by = parts > 1 ? "each predicted by the fold that was not trained on it"
                                   : "predicted by a model that was not trained on them";
  return some + " of " + from + ", " + by + choices_text(reasons.at("rows_chose"));
}

/// As long as the share of the largest; nothing below 0.
std::string bar_of(double value, double most) {
  if (!(value > 0) || !(most > 0))
    return "";
  std::string bar;
  const auto length = static_cast<std::size_t>(std::lround(kBarWidth * value / most));
  for (std::size_t i = 0; i < length; ++i)
    bar += "█";
  return bar;
}

std::string importance_text(const Json& target, const Terminal& terminal) {
  const Json& importance = target.at("importance");
  double most = 0;
  for (const Json& one : importance.at("columns")) {
    if (one.at("mean").is_number())
      most = std::max(most, one.at("mean").get<double>());
  }
  std::vector<Cells> rows;
  std::string reason;
  for (const Json& one : importance.at("columns")) {
    if (one.contains("undefined"))
      reason = plain_text(one.at("undefined").get<std::string>());
    if (rows.size() == kMostImportances)
      break;
    const Json& mean = one.at("mean");
    rows.push_back(
        {name_cell(joined_texts(one.at("columns"), " + ")), value_text(mean),
         value_text(one.at("deviation")),
         mean.is_number() ? left_aligned(bar_of(mean.get<double>(), most), kBarWidth) : ""});
  }
  const bool is_more = importance.at("direction") == "maximize";
  std::string text =
      titled("Importance (" + std::string(is_more ? "loss of " : "rise of ") +
                 importance.at("measure").get<std::string>() + " when a column is permuted)",
             terminal) +
      table_text({"column", "mean", "std", ""}, rows, 1, terminal);
  const std::size_t all = importance.at("columns").size();
  if (all > rows.size())
    text += "and " + std::to_string(all - rows.size()) + " more; --json has all\n";
  if (!reason.empty())
    text += paragraph("undefined: " + reason, terminal);
  return text;
}

std::string cell_of(const Json& value) {
  if (value.is_string())
    return name_cell(value.get<std::string>());
  if (!value.is_array())
    return value_text(value);
  std::string text;
  for (const Json& one : value)
    text += (text.empty() ? "" : ", ") + value_text(one);
  return cut_to(text, kWidestColumns);
}

std::string rows_table(const Json& target, const char* list, const char* key,
                       const std::string& title, const Terminal& terminal) {
  if (!target.contains(list) || target.at(list).empty())
    return "";
  std::vector<Cells> rows;
  for (const Json& one : target.at(list)) {
    if (rows.size() == kMostRows)
      break;
    rows.push_back({plain_text(one.at("place").get<std::string>()), cell_of(one.at("actual")),
                    cell_of(one.at("predicted")), value_text(one.at(key))});
  }
  return titled(title, terminal) +
         table_text({"row", "actual", "predicted", key}, rows, 3, terminal);
}

std::string subgroups_text(const Json& target, const Terminal& terminal) {
  const Json& subgroups = target.at("subgroups");
  const std::string tried = std::to_string(subgroups.at("tried").get<std::int64_t>());
  if (tried == "0")
    return "";  // of images, or of too few rows
  if (subgroups.at("found").empty())
    return "\nNo subgroup of " + tried + " is significantly worse than the other rows.\n";
  std::vector<Cells> rows;
  for (const Json& one : subgroups.at("found")) {
    if (rows.size() == kMostSubgroups)
      break;
    std::string where;
    for (const Json& condition : one.at("where"))
      where += (where.empty() ? "" : ", ") + condition.at("column").get<std::string>() + ": " +
               condition.at("level").get<std::string>();
    rows.push_back({plain_text(where), std::to_string(one.at("rows").get<std::int64_t>()),
                    value_text(one.at("mean_loss")), value_text(one.at("mean_loss_outside")),
                    value_text(one.at("p_value"))});
  }
  return titled("Worse subgroups (of " + tried + "; p corrected by Holm)", terminal) +
         table_text({"where", "rows", "mean loss", "outside", "p"}, rows, 1, terminal);
}

}  // namespace

std::string reasons_text(const Json& reasons, const Terminal& terminal) {
  std::string text =
      terminal.bold("Reasons") + "\n" + paragraph("on " + rows_text(reasons), terminal);
  const Json& targets = reasons.at("targets");
  for (const Json& target : targets) {
    if (targets.size() > 1)
      text += titled("Target " + plain_text(target.at("target").get<std::string>()), terminal);
    const std::string loss = target.at("loss").at("name").get<std::string>();
    text += importance_text(target, terminal);
    text += rows_table(target, "worst_rows", "loss", "Worst rows (by " + loss + ")", terminal);
    text +=
        rows_table(target, "confident_wrong", "confidence", "Most confident and wrong", terminal);
    text += rows_table(target, "doubtful_rows", "doubt", "Most doubtful", terminal);
    text += subgroups_text(target, terminal);
  }
  return text;
}

}  // namespace treadle::cli
