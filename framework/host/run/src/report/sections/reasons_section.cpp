#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "report/sections/sections.h"

namespace treadle::report {
namespace {

/// Of a table of rows of data.
constexpr std::size_t kMostColumns = 12;
constexpr std::size_t kShownBars = 15;
constexpr std::size_t kShownRows = 5;

std::string joined_texts(const Json& list, const char* separator) {
  std::string text;
  for (const Json& one : list)
    text += (text.empty() ? "" : separator) + one.get<std::string>();
  return text;
}

/// "Importance: price" where the model has several targets.
std::string titled(const char* title, const std::string& target) {
  return target.empty() ? title : std::string(title) + ": " + target;
}

Json rows_note(const Json& reasons) {
  const std::string from = reasons.at("rows_from").get<std::string>();
  const std::size_t parts = reasons.at("parts").size();
  List text{as("count", reasons.at("rows"))};
  if (reasons.at("rows") < reasons.at("rows_available"))
    append(text, {" rows, drawn from ", as("count", reasons.at("rows_available"))});
  append(text, {" rows of " + from + ", each predicted by " +
                (parts > 1 ? "the fold that was not trained on it."
                           : "a model that was not trained on it.")});
  if (!reasons.at("rows_chose").empty())
    text.push_back(" These rows also chose: " + joined_texts(reasons.at("rows_chose"), ", ") + ".");
  return note(std::move(text));
}

Json effects(List rows, std::size_t shown) {
  if (rows.empty())
    return {};
  return {{"block", "effects"}, {"rows", std::move(rows)}, {"shown", shown}};
}

Json importance_card(const Json& importance, const std::string& target) {
  List rows;
  for (const Json& one : importance.at("columns")) {
    Json value = one.at("mean");
    if (one.contains("undefined"))
      value = as("unknown", one.at("undefined"));
    rows.push_back({{"label", joined_texts(one.at("columns"), " + ")},
                    {"value", std::move(value)},
                    {"deviation", one.at("deviation")}});
  }
  const bool is_loss = importance.at("direction") == "maximize";
  const std::string measure = importance.at("measure").get<std::string>();
  return card(titled("Importance of columns", target),
              {effects(std::move(rows), kShownBars),
               note((is_loss ? "Loss of " : "Rise of ") + measure +
                    " when the column is permuted: mean ± deviation over repeats. Columns that are "
                    "strongly correlated are permuted together.")});
}

Json shap_card(const Json& of_target, const std::string& target) {
  const Json& shap = of_target.at("shap");
  const Json& outputs = of_target.at("outputs");
  List text{"Mean absolute contribution to a prediction of ", as("count", shap.at("rows").size()),
            " rows, beside the mean prediction for ", as("count", shap.at("background_rows")),
            shap.at("background_rows") == 1 ? " other row" : " other rows"};
  if (outputs.size() == 1) {
    List rows;
    for (const Json& one : shap.at("mean_abs"))
      rows.push_back({{"label", one.at("column")}, {"value", one.at("values").front()}});
    text.push_back(outputs.front() == of_target.at("target")
                       ? "."
                       : ", of the probability of " + outputs.front().get<std::string>() + ".");
    return card(titled("SHAP values", target),
                {effects(std::move(rows), kShownBars), note(std::move(text))});
  }
  List columns{"column"};
  append(columns, List(outputs.begin(), outputs.end()));
  List rows;
  for (const Json& one : shap.at("mean_abs")) {
    List row{one.at("column")};
    append(row, List(one.at("values").begin(), one.at("values").end()));
    rows.push_back(std::move(row));
  }
  text.push_back(".");
  return card(
      titled("SHAP values", target),
      {table(std::move(columns), std::move(rows), kShownBars, "columns"), note(std::move(text))});
}

Json dependence_card(const Json& of_target, const std::string& target) {
  const Json& views = of_target.at("partial_dependence");
  if (views.empty())
    return {};
  return card(titled("Partial dependence", target),
              {chart("dependence", {{"views", views},
                                    {"outputs", of_target.at("outputs")},
                                    {"classes", of_target.at("kind") != "numbers"}}),
               note("The mean prediction where all rows have the column's value.")});
}

/// The columns of the data by their importance.
std::vector<std::string> columns_by_importance(const Json& of_target) {
  std::vector<std::string> names;
  for (const Json& one : of_target.at("importance").at("columns")) {
    for (const Json& name : one.at("columns"))
      names.push_back(name.get<std::string>());
  }
  return names;
}

Json cell(const Json& value) {
  if (!value.is_array())
    return value;
  List parts;
  for (const Json& one : value)
    append(parts, parts.empty() ? List{one} : List{", ", one});
  return parts;
}

Json rows_card(const Json& of_target, const char* list, const char* key, std::string title,
               bool is_folded) {
  const Json& given = of_target.value(list, Json::array());
  if (given.empty())
    return {};
  List columns{"row", "actual", "predicted", key};
  std::vector<std::string> names;
  for (std::string& name : columns_by_importance(of_target)) {
    if (given.front().at("values").contains(name) && names.size() < kMostColumns) {
      columns.emplace_back(name);
      names.push_back(std::move(name));
    }
  }
  List rows;
  List pictures;
  for (const Json& one : given) {
    List row{as("path", one.at("place")), cell(one.at("actual")), cell(one.at("predicted")),
             one.at(key)};
    for (const std::string& name : names) {
      const Json& value = one.at("values").at(name);
      row.push_back(value.is_number() ? as("setting", value) : value);
    }
    rows.push_back(std::move(row));
    if (one.contains("picture")) {
      pictures.push_back({{"picture", one.at("picture")},
                          {"label", List{one.at("place"), ": ", cell(one.at("actual")),
                                         ", predicted ", cell(one.at("predicted"))}}});
    }
  }
  const Json gallery =
      pictures.empty() ? Json() : Json{{"block", "gallery"}, {"pictures", std::move(pictures)}};
  return card(std::move(title),
              {gallery, table(std::move(columns), std::move(rows), kShownRows, "rows")}, is_folded);
}

Json subgroups_card(const Json& of_target, const std::string& target) {
  const Json& subgroups = of_target.at("subgroups");
  if (subgroups.at("tried") == 0)
    return {};
  List rows;
  for (const Json& one : subgroups.at("found")) {
    List where;
    for (const Json& condition : one.at("where")) {
      const std::string text = condition.at("column").get<std::string>() + ": " +
                               condition.at("level").get<std::string>();
      where.push_back((where.empty() ? "" : ", ") + text);
    }
    rows.push_back(List{where, as("count", one.at("rows")), one.at("mean_loss"),
                        one.at("mean_loss_outside"), one.at("p_value")});
  }
  List text{rows.empty() ? "None of " : "Of ", as("count", subgroups.at("tried")),
            rows.empty() ? " levels and pairs of levels with at least "
                         : " levels and pairs of levels that were tried, with at least ",
            as("count", subgroups.at("least_rows")),
            rows.empty() ? " rows is significantly worse than the other rows."
                         : " rows. Mean loss of rows; p by Welch's test, corrected by Holm."};
  return card(titled("Worse subgroups", target),
              {table({"where", "rows", "mean loss", "outside", "p"}, std::move(rows)),
               note(std::move(text))});
}

}  // namespace

List reasons_section(const Json& reasons) {
  if (!reasons.is_object())
    return {};
  List blocks{card("Reasons", {rows_note(reasons)})};
  const Json& targets = reasons.at("targets");
  for (const Json& one : targets) {
    const std::string target =
        targets.size() > 1 ? one.at("target").get<std::string>() : std::string();
    const std::string loss = one.at("loss").at("name").get<std::string>();
    append(blocks,
           {group({importance_card(one.at("importance"), target), shap_card(one, target)}),
            dependence_card(one, target), subgroups_card(one, target),
            rows_card(one, "worst_rows", "loss",
                      titled("Worst rows", target) + " (by " + loss + ")", false),
            rows_card(one, "confident_wrong", "confidence",
                      titled("Most confident and wrong", target), true),
            rows_card(one, "doubtful_rows", "doubt", titled("Most doubtful rows", target), true)});
  }
  return blocks;
}

}  // namespace treadle::report
