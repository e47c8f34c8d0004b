#include "compare/row_comparison.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include <ATen/ops/bincount.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/quoted_text.h>

#include "terminal/result_text.h"
#include "terminal/text_table.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

/// As many as a person reads; --rows writes all rows, and JSON has all pairs.
constexpr std::size_t kMostListed = 10;

bool has_classes(const ComparedPredictions::Target& target) {
  return target.spec.kind != TargetKind::kNumbers;
}

/// "[2]": the number of a run in tables whose columns are runs.
std::string tag(std::size_t run) {
  return "[" + std::to_string(run + 1) + "]";
}

std::string pair_text(std::size_t first, std::size_t second) {
  return tag(first) + " " + tag(second);
}

/// How near to 1 a coverage is. `commonest`: the share of rows of the commonest class, which who
/// always answers it covers.
std::string_view grade(double coverage, double commonest) {
  if (coverage <= commonest)
    return "as one class";
  constexpr double kPerfect = 0.999;
  constexpr double kExcellent = 0.9;
  return coverage >= kPerfect ? "perfect" : coverage > kExcellent ? "excellent" : "good";
}

std::string shortest(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string shown(double value) {
  return number_text(value);
}

/// The classes of an answer: "red", or labels with a semicolon between them.
std::string answer_text(const TargetSpec& spec, const at::Tensor& answers, std::int64_t row) {
  const std::int64_t width = answers.size(1);
  const std::int64_t* const answer = answers.data_ptr<std::int64_t>() + row * width;
  if (width == 1 && spec.kind != TargetKind::kLabels)
    return spec.class_names[static_cast<std::size_t>(*answer)];
  std::string text;
  for (std::int64_t k = 0; k < width; ++k) {
    if (answer[k] != 0)
      text += (text.empty() ? "" : ";") + spec.class_names[static_cast<std::size_t>(k)];
  }
  return text;
}

/// The answers of a target and of all runs, converted once.
struct Answers {
  explicit Answers(const ComparedPredictions::Target& target)
      : actual(decided_target(target).contiguous()) {
    for (const at::Tensor& predicted : target.predicted) {
      of_runs.push_back(decided(target.spec, predicted).contiguous());
      probabilities.push_back(
          std::get<0>(predicted.reshape({-1, predicted.size(-1)}).max(-1)).contiguous());
    }
  }

  at::Tensor actual;
  std::vector<at::Tensor> of_runs;
  std::vector<at::Tensor> probabilities;  // of the likeliest class
};

/// The share of positions that have the commonest class; 0 where a position may have several.
double commonest_share(const ComparedPredictions::Target& target) {
  const at::Tensor actual = decided_target(target);
  if (target.spec.kind == TargetKind::kLabels || actual.numel() == 0)
    return 0;
  const at::Tensor counts = at::bincount(actual.reshape(-1));
  return counts.max().item<double>() / static_cast<double>(actual.numel());
}

/// How many positions a row of a target with classes has.
std::int64_t positions_of(const ComparedPredictions::Target& target) {
  const std::int64_t rows = target.actual.size(0);
  const at::Tensor& values = target.predicted.front();
  return values.numel() / (values.size(-1) * rows);
}

/// The name of a number of a target: "y", or "y.2" where it has several.
std::string number_name(const TargetSpec& spec, std::int64_t number, std::int64_t count) {
  return count == 1 ? spec.name : spec.name + "." + std::to_string(number);
}

/// Throws a UsageError where one file cannot have all targets.
std::int64_t common_positions(const std::vector<ComparedPredictions::Target>& targets) {
  const auto lines_of = [](const ComparedPredictions::Target& target) {
    return has_classes(target) ? positions_of(target) : 1;
  };
  for (const ComparedPredictions::Target& target : targets) {
    if (lines_of(target) != lines_of(targets.front())) {
      throw UsageError("--rows: the targets " + quote_text(targets.front().spec.name) + " and " +
                       quote_text(target.spec.name) +
                       " have different positions, so one file cannot hold both; leave --rows out");
    }
  }
  return lines_of(targets.front());
}

// Columns of CSV, each with its head.

std::vector<Cells> class_columns(const ComparedPredictions::Target& target,
                                 const ClassDisagreement& found,
                                 const std::vector<std::string>& runs, const std::string& prefix) {
  const Answers answers(target);
  const at::Tensor right = found.right.contiguous();
  const auto texts = [&](const std::string& name, const at::Tensor& of) {
    Cells column{name};
    for (std::int64_t row = 0; row < found.rows; ++row)
      column.push_back(csv_field(answer_text(target.spec, of, row)));
    return column;
  };
  std::vector<Cells> columns{texts(target.spec.name, answers.actual)};
  Cells& disagree = columns.emplace_back(Cells{prefix + "disagree"});
  disagree.resize(static_cast<std::size_t>(found.rows) + 1, "0");
  for (const std::int64_t row : found.disagreements)
    disagree[static_cast<std::size_t>(row) + 1] = "1";
  for (std::size_t run = 0; run < runs.size(); ++run) {
    columns.push_back(texts(prefix + runs[run], answers.of_runs[run]));
    Cells probability{prefix + runs[run] + "/p"};
    Cells is_right{prefix + runs[run] + "/right"};
    const double* const p = answers.probabilities[run].data_ptr<double>();
    const bool* const is = right.data_ptr<bool>() + static_cast<std::int64_t>(run) * found.rows;
    for (std::int64_t row = 0; row < found.rows; ++row) {
      probability.push_back(shortest(p[row]));
      is_right.emplace_back(is[row] ? "1" : "0");
    }
    columns.push_back(std::move(probability));
    columns.push_back(std::move(is_right));
  }
  return columns;
}

std::vector<Cells> number_columns(const ComparedPredictions::Target& target,
                                  const NumberDisagreement& found,
                                  const std::vector<std::string>& runs, const std::string& prefix) {
  std::vector<Cells> columns;
  const auto add = [&](const at::Tensor& values, const auto& name) {
    const at::Tensor flat = values.reshape({found.rows, -1}).contiguous();
    const std::int64_t width = flat.size(1);
    for (std::int64_t k = 0; k < width; ++k) {
      Cells& column = columns.emplace_back(Cells{name(k, width)});
      for (std::int64_t row = 0; row < found.rows; ++row)
        column.push_back(shortest(flat.data_ptr<double>()[row * width + k]));
    }
  };
  const auto number = [&](std::int64_t k, std::int64_t width) {
    return number_name(target.spec, k, width);
  };
  add(target.actual, number);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    add(target.predicted[run], [&](std::int64_t k, std::int64_t width) {
      return width == 1 ? prefix + runs[run] : runs[run] + "/" + number(k, width);
    });
  }
  add(found.spread, [&](std::int64_t, std::int64_t) { return prefix + "spread"; });
  return columns;
}

std::string legend(const std::vector<std::string>& runs) {
  std::string text;
  for (std::size_t run = 0; run < runs.size(); ++run)
    text += "  " + tag(run) + " " + runs[run] + "\n";
  return text;
}

}  // namespace

RowComparison::RowComparison(ComparedPredictions predictions, std::vector<std::string> runs,
                             double min_coverage)
    : predictions_(std::move(predictions)), runs_(std::move(runs)), min_coverage_(min_coverage) {
  for (const ComparedPredictions::Target& target : predictions_.targets) {
    classes_.emplace_back();
    numbers_.emplace_back();
    if (has_classes(target)) {
      classes_.back() = class_disagreement(target);
    } else {
      numbers_.back() = number_disagreement(target);
    }
    if (classes_.back()) {
      std::erase_if(classes_.back()->pairs, [min_coverage](const ClassDisagreement::Pair& pair) {
        return pair.coverage < min_coverage;
      });
    }
  }
}

std::string RowComparison::rows_text(const std::string& file) const {
  const auto count = static_cast<std::int64_t>(predictions_.rows.size());
  const auto [least, most] =
      std::minmax_element(predictions_.candidates.begin(), predictions_.candidates.end());
  const std::string kind = predictions_.have_validated ? " validation rows"
                           : file.empty()              ? " test rows"
                                                       : " rows";
  std::string text = std::to_string(count) + kind + (file.empty() ? "" : " of " + file) +
                     " that no run was trained on";
  if (*most > count) {
    text += " (each held out " + std::to_string(*least) +
            (*least == *most ? "" : " to " + std::to_string(*most)) +
            "; another run was trained on the rest)";
  }
  return text + (predictions_.have_validated ? ". They took part in choices, such as the epoch; "
                                               "test rows (--on test) did not."
                                             : ".");
}

std::string RowComparison::text(const std::string& file, const Terminal& terminal) const {
  std::string said =
      paragraph(terminal.bold("Rows") + ": " + rows_text(file), terminal) + legend(runs_);
  for (std::size_t i = 0; i < predictions_.targets.size(); ++i) {
    said += "\n";
    if (predictions_.targets.size() > 1)
      said += terminal.bold(predictions_.targets[i].spec.name) + "\n";
    said += classes_[i] ? class_text(i, terminal) : number_text(i, terminal);
  }
  return said;
}

std::string RowComparison::class_text(std::size_t index, const Terminal& terminal) const {
  const ComparedPredictions::Target& target = predictions_.targets[index];
  const ClassDisagreement& found = *classes_[index];
  std::string said = "All runs are right on " + std::to_string(found.all_right) + " of " +
                     std::to_string(found.rows) + ", none on " + std::to_string(found.none_right) +
                     "; they disagree on " + std::to_string(found.disagreements.size()) + ".\n\n";

  Cells head{"same prediction"};
  for (std::size_t run = 0; run < runs_.size(); ++run)
    head.push_back(tag(run));
  head.insert(head.end(), {"accuracy", "right alone"});
  std::vector<Cells> cells;
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    Cells& line = cells.emplace_back(Cells{tag(run)});
    for (std::size_t other = 0; other < runs_.size(); ++other) {
      line.push_back(
          shown(found.agreement[static_cast<std::int64_t>(run)][static_cast<std::int64_t>(other)]
                    .item<double>()));
    }
    line.push_back(shown(found.accuracy[run]));
    line.push_back(std::to_string(found.alone[run]));
  }
  said += table_text(head, cells, 1, terminal) + "\n";

  cells.clear();
  const double commonest = commonest_share(predictions_.targets[index]);
  for (std::size_t i = 0; i < std::min(found.pairs.size(), kMostListed); ++i) {
    const ClassDisagreement::Pair& pair = found.pairs[i];
    cells.push_back({pair_text(pair.first, pair.second),
                     shown(pair.coverage) + " " + std::string(grade(pair.coverage, commonest)),
                     shown(pair.overlap), shown(pair.averaged_accuracy),
                     std::to_string(pair.only_first), std::to_string(pair.only_second),
                     shown(pair.p), shown(pair.p_holm)});
  }
  if (cells.empty()) {
    said += "No pair covers " + shown(min_coverage_) + " of the rows.\n";
  } else {
    constexpr std::size_t kWords = 2;
    said += table_text(
        {"pair", "coverage", "overlap", "averaged", "only first", "only second", "p", "p (Holm)"},
        cells, kWords, terminal);
    said += paragraph(
        "coverage: share of rows on which at least one is right, a bound that no combination of "
        "the two exceeds; overlap: both are; averaged: accuracy of their mean probabilities; p: "
        "McNemar's exact test",
        terminal);
    if (found.pairs.size() > kMostListed) {
      said += std::to_string(found.pairs.size() - kMostListed) + " more pairs: --json\n";
    }
  }
  if (found.disagreements.empty())
    return said;

  const Answers answers(target);
  const std::int64_t positions = positions_of(target);
  head = {"row", target.spec.name};
  for (std::size_t run = 0; run < runs_.size(); ++run)
    head.push_back(tag(run));
  head.emplace_back("place");
  cells.clear();
  for (std::size_t i = 0; i < std::min(found.disagreements.size(), kMostListed); ++i) {
    const std::int64_t at = found.disagreements[i];
    const std::int64_t row = predictions_.rows[static_cast<std::size_t>(at / positions)];
    Cells& line = cells.emplace_back(
        Cells{std::to_string(row) + (positions == 1 ? "" : ":" + std::to_string(at % positions)),
              answer_text(target.spec, answers.actual, at)});
    for (std::size_t run = 0; run < runs_.size(); ++run)
      line.push_back(answer_text(target.spec, answers.of_runs[run], at));
    line.push_back(predictions_.describe(row));
  }
  said += "\n" + table_text(head, cells, head.size(), terminal);
  if (found.disagreements.size() > kMostListed) {
    said += std::to_string(found.disagreements.size() - kMostListed) +
            " more rows: --rows FILE writes all\n";
  }
  return said;
}

std::string RowComparison::number_text(std::size_t index, const Terminal& terminal) const {
  const ComparedPredictions::Target& target = predictions_.targets[index];
  const NumberDisagreement& found = *numbers_[index];
  std::vector<Cells> cells;
  for (std::size_t run = 0; run < runs_.size(); ++run)
    cells.push_back({tag(run), shown(found.rmse[run])});
  std::string said = table_text({"run", "rmse"}, cells, 1, terminal) + "\n";

  cells.clear();
  for (std::size_t i = 0; i < std::min(found.pairs.size(), kMostListed); ++i) {
    const NumberDisagreement::Pair& pair = found.pairs[i];
    cells.push_back(
        {pair_text(pair.first, pair.second), pair.correlation ? shown(*pair.correlation) : "-",
         shown(pair.averaged_rmse), shown(pair.difference),
         pair.interval ? shown(pair.interval->first) + " to " + shown(pair.interval->second) : "-",
         shown(pair.p), shown(pair.p_holm)});
  }
  said += table_text(
      {"pair", "correlation", "averaged", "difference", "95 % interval", "p", "p (Holm)"}, cells, 1,
      terminal);
  said += paragraph(
      "correlation: of their errors; averaged: rmse of their mean; difference: of mean squared "
      "errors, with the interval of a paired bootstrap; p: Wilcoxon's signed ranks of squared "
      "errors",
      terminal);
  if (found.pairs.size() > kMostListed)
    said += std::to_string(found.pairs.size() - kMostListed) + " more pairs: --json\n";

  const std::int64_t width = target.actual.numel() / found.rows;
  if (width > 1)
    return said;
  Cells head{"row", target.spec.name};
  for (std::size_t run = 0; run < runs_.size(); ++run)
    head.push_back(tag(run));
  head.insert(head.end(), {"spread", "place"});
  cells.clear();
  const at::Tensor actual = target.actual.flatten().contiguous();
  for (std::size_t i = 0; i < std::min(found.disagreements.size(), kMostListed); ++i) {
    const std::int64_t at = found.disagreements[i];
    const std::int64_t row = predictions_.rows[static_cast<std::size_t>(at)];
    Cells& line =
        cells.emplace_back(Cells{std::to_string(row), shown(actual.data_ptr<double>()[at])});
    for (const at::Tensor& predicted : target.predicted)
      line.push_back(shown(predicted.flatten().data_ptr<double>()[at]));
    line.push_back(shown(found.spread.data_ptr<double>()[at]));
    line.push_back(predictions_.describe(row));
  }
  said += "\n" + table_text(head, cells, 1, terminal);
  if (found.disagreements.size() > kMostListed) {
    said += std::to_string(found.disagreements.size() - kMostListed) +
            " more rows, with less between the runs: --rows FILE writes all\n";
  }
  return said;
}

Json RowComparison::class_json(std::size_t index) const {
  const ClassDisagreement& found = *classes_[index];
  Json agreement = Json::array();
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    const at::Tensor row = found.agreement[static_cast<std::int64_t>(run)].contiguous();
    agreement.push_back(
        std::vector<double>(row.data_ptr<double>(), row.data_ptr<double>() + row.numel()));
  }
  Json pairs = Json::array();
  const double commonest = commonest_share(predictions_.targets[index]);
  for (const ClassDisagreement::Pair& pair : found.pairs) {
    pairs.push_back({{"runs", {pair.first, pair.second}},
                     {"coverage", pair.coverage},
                     {"grade", grade(pair.coverage, commonest)},
                     {"overlap", pair.overlap},
                     {"averaged_accuracy", pair.averaged_accuracy},
                     {"only_first", pair.only_first},
                     {"only_second", pair.only_second},
                     {"mcnemar_p", pair.p},
                     {"p_holm", pair.p_holm}});
  }
  return {{"rows", found.rows},
          {"all_right", found.all_right},
          {"none_right", found.none_right},
          {"disagreements", found.disagreements.size()},
          {"accuracy", found.accuracy},
          {"right_alone", found.alone},
          {"agreement", std::move(agreement)},
          {"pairs", std::move(pairs)}};
}

Json RowComparison::number_json(std::size_t index) const {
  const NumberDisagreement& found = *numbers_[index];
  Json pairs = Json::array();
  for (const NumberDisagreement::Pair& pair : found.pairs) {
    pairs.push_back(
        {{"runs", {pair.first, pair.second}},
         {"error_correlation", pair.correlation ? Json(*pair.correlation) : Json()},
         {"averaged_rmse", pair.averaged_rmse},
         {"difference", pair.difference},
         {"interval", pair.interval ? Json({pair.interval->first, pair.interval->second}) : Json()},
         {"wilcoxon_p", pair.p},
         {"p_holm", pair.p_holm}});
  }
  return {{"rows", found.rows}, {"rmse", found.rmse}, {"pairs", std::move(pairs)}};
}

Json RowComparison::json() const {
  Json targets = Json::object();
  for (std::size_t i = 0; i < predictions_.targets.size(); ++i)
    targets[predictions_.targets[i].spec.name] = classes_[i] ? class_json(i) : number_json(i);
  return {{"runs", runs_},
          {"rows", predictions_.rows.size()},
          {"held_out", predictions_.candidates},
          {"have_validated", predictions_.have_validated},
          {"targets", std::move(targets)}};
}

std::string RowComparison::csv() const {
  std::vector<Cells> columns;
  const std::int64_t positions = common_positions(predictions_.targets);
  for (std::size_t i = 0; i < predictions_.targets.size(); ++i) {
    const ComparedPredictions::Target& target = predictions_.targets[i];
    const std::string prefix = predictions_.targets.size() > 1 ? target.spec.name + "/" : "";
    for (Cells& column : classes_[i] ? class_columns(target, *classes_[i], runs_, prefix)
                                     : number_columns(target, *numbers_[i], runs_, prefix))
      columns.push_back(std::move(column));
  }
  std::string text = positions == 1 ? "row" : "row,position";
  for (const Cells& column : columns)
    text += "," + csv_field(column.front());
  text += "\n";
  const auto per_row = static_cast<std::size_t>(positions);
  for (std::size_t line = 0; line < predictions_.rows.size() * per_row; ++line) {
    text += std::to_string(predictions_.rows[line / per_row]);
    if (positions > 1)
      text += "," + std::to_string(line % per_row);
    for (const Cells& column : columns)
      text += "," + column[line + 1];
    text += "\n";
  }
  return text;
}

}  // namespace treadle::cli
