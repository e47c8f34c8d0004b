#include "compare/comparison_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <treadle/base/text_wrap.h>

#include "terminal/result_text.h"
#include "terminal/text_table.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;
using compare::Check;
using compare::Interval;
using compare::is_of_one_class;
using compare::MeasuredRun;
using compare::Method;
using compare::MethodComparison;
using compare::NumberVerdict;
using compare::PairComparison;
using compare::Sameness;
using compare::Spread;
using Design = PairComparison::Design;

/// Of a number that has a direction.
std::string better_word(const MetricValue& number) {
  return number.direction == Direction::kHigherIsBetter ? "higher" : "lower";
}

std::string signed_text(double value) {
  const std::string text = number_text(value);
  return value > 0 ? "+" + text : text;
}

std::string interval_text(const std::optional<Interval>& interval) {
  return interval ? number_text(interval->first) + " to " + number_text(interval->second) : "-";
}

std::string p_text(const std::optional<double>& p) {
  constexpr double kTooSmallToShow = 0.0001;
  return !p ? "-" : *p < kTooSmallToShow ? "< 0.0001" : number_text(*p);
}

std::string design_text(const PairComparison& pair, const MethodComparison& comparison) {
  const std::string count = std::to_string(pair.pairs);
  switch (pair.design) {
    case Design::kSeeds:
      return "paired t over " + count + " seeds";
    case Design::kSplits:
      return "corrected t over " + count + " splits";
    case Design::kUnpaired:
      return "Welch's t of " + std::to_string(comparison.methods[pair.first].runs.size()) +
             " and " + std::to_string(comparison.methods[pair.second].runs.size()) + " runs";
    case Design::kNone:
      break;
  }
  return "none: too few runs";
}

std::string_view design_word(Design design) {
  constexpr std::array<std::string_view, 4> kWords{"none", "paired t", "corrected resampled t",
                                                   "Welch t"};
  return kWords[static_cast<std::size_t>(design)];
}

bool is_tested(const NumberVerdict& verdict) {
  return std::any_of(verdict.pairs.begin(), verdict.pairs.end(),
                     [](const PairComparison& pair) { return pair.test.has_value(); });
}

std::string verdict_text(const NumberVerdict& verdict, const MethodComparison& comparison) {
  const auto label = [&](std::size_t method) { return comparison.methods[method].label; };
  const std::string best = "best mean: " + label(verdict.best);
  if (!is_tested(verdict))
    return best;
  if (verdict.has_winner())
    return best + ", and the difference from every other is significant";
  std::string others;
  for (const std::size_t method : verdict.not_distinguishable) {
    if (method != verdict.best)
      others += (others.empty() ? "" : ", ") + label(method);
  }
  return best + "; not distinguishable from it: " + others;
}

/// The differences of the other methods from the best one, a line for each that is tested.
std::vector<Cells> lines_from_the_best(const NumberVerdict& verdict,
                                       const MethodComparison& comparison) {
  std::vector<Cells> lines;
  for (const PairComparison& pair : verdict.pairs) {
    if (!pair.test || (pair.first != verdict.best && pair.second != verdict.best))
      continue;
    const bool is_turned = pair.second == verdict.best;
    const std::size_t other = is_turned ? pair.first : pair.second;
    const Interval& found = pair.test->interval;
    const Interval interval = is_turned ? Interval(-found.second, -found.first) : found;
    lines.push_back({"best - " + comparison.methods[other].label, design_text(pair, comparison),
                     signed_text((is_turned ? -1 : 1) * pair.test->difference),
                     interval_text(interval), p_text(pair.test->p), p_text(pair.p_holm),
                     pair.ranks ? p_text(pair.ranks->p) : "-"});
  }
  return lines;
}

std::string_view mark(Sameness sameness) {
  constexpr std::array<std::string_view, 3> kMarks{"same", "note", "?"};
  return kMarks[static_cast<std::size_t>(sameness)];
}

std::string_view verdict_word(Sameness sameness) {
  constexpr std::array<std::string_view, 3> kWords{"same", "differs", "unknown"};
  return kWords[static_cast<std::size_t>(sameness)];
}

}  // namespace

std::string methods_text(const MethodComparison& comparison, const Terminal& terminal) {
  Cells head{"method", "runs"};
  head.insert(head.end(), comparison.keys.begin(), comparison.keys.end());
  const std::size_t words = head.size();
  for (const MetricValue& number : comparison.numbers) {
    if (!is_of_one_class(number.name))
      head.insert(head.end(), {number.name, "deviation", "95 % interval"});
  }
  std::vector<Cells> cells;
  for (const Method& method : comparison.methods) {
    Cells& line = cells.emplace_back(Cells{method.label, std::to_string(method.runs.size())});
    for (const Json& setting : method.settings)
      line.push_back(setting_text(setting));
    for (std::size_t at = 0; at < comparison.numbers.size(); ++at) {
      if (is_of_one_class(comparison.numbers[at].name))
        continue;
      const Spread& spread = method.spreads[at];
      const std::string few =
          spread.n == static_cast<std::int64_t>(method.runs.size())
              ? ""
              : " (of " + std::to_string(spread.n) + (spread.n == 1 ? " run)" : " runs)");
      line.push_back(number_text(spread.mean) + few);
      line.push_back(spread.deviation ? number_text(*spread.deviation) : "-");
      line.push_back(interval_text(spread.interval));
    }
  }
  return table_text(head, cells, words, terminal);
}

std::string differences_text(const MethodComparison& comparison, const Terminal& terminal) {
  constexpr std::size_t kWords = 2;
  const Cells head{"difference", "test", "mean", "95 % interval", "p", "p (Holm)", "p (Wilcoxon)"};
  std::string text;
  bool is_any_untested = false;
  for (const NumberVerdict& verdict : comparison.verdicts) {
    const MetricValue& number = comparison.numbers[verdict.number];
    if (is_of_one_class(number.name))
      continue;
    is_any_untested = is_any_untested || !is_tested(verdict);
    const std::vector<Cells> lines = lines_from_the_best(verdict, comparison);
    text += paragraph(terminal.bold(number.name) + " (" + better_word(number) +
                          " is better): " + verdict_text(verdict, comparison),
                      terminal);
    if (!lines.empty())
      text += table_text(head, lines, kWords, terminal) + "\n";
  }
  if (is_any_untested) {
    text += paragraph(
        "Only a test shows whether a difference is more than chance. Run each method with the "
        "same seeds, three or more.",
        terminal);
  }
  while (text.ends_with("\n\n"))
    text.pop_back();
  return text;
}

Json comparison_json(const MethodComparison& comparison, const std::vector<MeasuredRun>& measured) {
  const auto names = [&](const std::vector<std::size_t>& runs) {
    Json list = Json::array();
    for (const std::size_t run : runs)
      list.push_back(measured[run].name);
    return list;
  };
  const auto interval_json = [](const std::optional<Interval>& interval) {
    return interval ? Json({interval->first, interval->second}) : Json();
  };
  Json list = Json::array();
  for (const Method& method : comparison.methods) {
    Json named = Json::object();
    for (std::size_t i = 0; i < comparison.keys.size(); ++i)
      named[comparison.keys[i]] = method.settings[i];
    Json metrics = Json::object();
    for (std::size_t i = 0; i < comparison.numbers.size(); ++i) {
      const Spread& spread = method.spreads[i];
      metrics[comparison.numbers[i].name] = {
          {"n", spread.n},
          {"mean", spread.n > 0 ? Json(spread.mean) : Json()},
          {"std", spread.deviation ? Json(*spread.deviation) : Json()},
          {"interval", interval_json(spread.interval)}};
    }
    list.push_back({{"label", method.label},
                    {"runs", names(method.runs)},
                    {"repeats", names(method.repeats)},
                    {"settings", std::move(named)},
                    {"metrics", std::move(metrics)}});
  }
  Json differences = Json::object();
  for (const NumberVerdict& verdict : comparison.verdicts) {
    Json pairs = Json::array();
    for (const PairComparison& pair : verdict.pairs) {
      Json one{{"methods", {pair.first, pair.second}},
               {"test", design_word(pair.design)},
               {"pairs", pair.pairs},
               {"difference", pair.test ? Json(pair.test->difference) : Json()},
               {"interval", pair.test ? interval_json(pair.test->interval) : Json()},
               {"t", pair.test ? Json(pair.test->t) : Json()},
               {"degrees_of_freedom", pair.test ? Json(pair.test->degrees_of_freedom) : Json()},
               {"p", pair.test ? Json(pair.test->p) : Json()},
               {"p_holm", pair.p_holm ? Json(*pair.p_holm) : Json()}};
      if (pair.ranks)
        one["wilcoxon"] = {
            {"n", pair.ranks->n}, {"w", pair.ranks->statistic}, {"p", pair.ranks->p}};
      pairs.push_back(std::move(one));
    }
    differences[comparison.numbers[verdict.number].name] = {
        {"better", better_word(comparison.numbers[verdict.number])},
        {"best_mean", verdict.best},
        {"not_distinguishable", verdict.not_distinguishable},
        {"winner", verdict.has_winner() ? Json(verdict.best) : Json()},
        {"pairs", std::move(pairs)}};
  }
  return {{"methods", std::move(list)}, {"differences", std::move(differences)}};
}

std::string checks_text(const std::vector<Check>& checks, const Terminal& terminal) {
  std::size_t width = 0;
  for (const Check& check : checks)
    width = std::max(width, columns_of(check.about));
  std::string text;
  for (const Check& check : checks) {
    const std::string left = "  " + left_aligned(mark(check.sameness), 6) + check.about;
    text += hanging_text(left, width + 10, check.text, terminal.width());
  }
  return text;
}

Json checks_json(const std::vector<Check>& checks) {
  Json list = Json::array();
  for (const Check& check : checks)
    list.push_back(
        {{"about", check.about}, {"verdict", verdict_word(check.sameness)}, {"text", check.text}});
  return list;
}

}  // namespace treadle::cli
