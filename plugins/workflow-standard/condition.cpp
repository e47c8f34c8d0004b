#include "condition.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

namespace treadle {

/// What can be said of a trend, and how.
struct Condition::Word {
  const char* key;
  Kind kind;
  bool has_tolerance;
  std::string_view said;
};

const Condition::Word Condition::kWords[] = {
    {"stalled", Kind::kStalled, true, "stalled"},
    {"improving", Kind::kImproving, false, "improving"},
    {"not_improving", Kind::kNotImproving, false, "not improving"},
    {"converged", Kind::kConverged, true, "converged"},
};

Condition Condition::configured_by(const Config& config) {
  Condition condition(config);
  if (config.has("trend")) {
    const nlohmann::json& trend = config.json().at("trend");
    condition.names_ = trend.is_string()
                           ? std::vector<std::string>{config.get<std::string>("trend")}
                           : config.get<std::vector<std::string>>("trend");
  }
  for (const Word& word : kWords) {
    if (!config.has(word.key))
      continue;
    if (condition.kind_ != Kind::kNone)
      config.fail(word.key, "a condition says one thing of its trends; write another for this one");
    condition.kind_ = word.kind;
    if (word.has_tolerance) {
      const auto numbers = config.get<std::vector<double>>(word.key);
      if (numbers[0] != std::floor(numbers[0]))
        config.fail(word.key, "the first number counts epochs: expected a whole number");
      condition.window_ = static_cast<std::int64_t>(numbers[0]);
      condition.tolerance_ = numbers[1];
      if (!(condition.tolerance_ > 0))
        config.fail(word.key,
                    "the second number is what is still taken for still: it must be above 0");
    } else {
      condition.window_ = config.get<std::int64_t>(word.key);
    }
    if (condition.window_ < 2)
      config.fail(word.key, "one epoch has no trend: expected at least 2 epochs");
  }
  condition.after_ = config.find<Duration>("after");
  condition.any_ = config.get_or<std::string>("of", "all") == "any";
  if (config.has("better")) {
    condition.better_ = config.get<std::string>("better") == "higher" ? Direction::kHigherIsBetter
                                                                      : Direction::kLowerIsBetter;
  }
  if ((condition.kind_ == Kind::kNone) != condition.names_.empty()) {
    config.fail("",
                "a trend and what must be true of it belong together: {\"trend\": \"loss\", "
                "\"stalled\": [5, 1e-4]}");
  }
  if (condition.kind_ == Kind::kNone && !condition.after_)
    config.fail("", "expected a trend and what must be true of it, or \"after\"");
  return condition;
}

bool Condition::holds_for(const Trend& trend) const {
  if (static_cast<std::int64_t>(trend.size()) < window_)
    return false;
  const Trend judged(trend.values(), better_ == Direction::kNone ? trend.direction() : better_);
  switch (kind_) {
    case Kind::kStalled:
      return judged.stalled(window_, tolerance_);
    case Kind::kImproving:
      return judged.improving(window_);
    case Kind::kNotImproving:
      return !judged.improving(window_);
    case Kind::kConverged:
      return judged.converged(window_, tolerance_);
    case Kind::kNone:
      break;
  }
  return true;
}

bool Condition::holds(std::int64_t epochs, std::int64_t steps_per_epoch, std::int64_t total_steps,
                      const std::function<Trend(const std::string&)>& trend_of) const {
  if (after_ && epochs * steps_per_epoch < after_->steps(steps_per_epoch, total_steps))
    return false;
  const auto fulfils = [&](const std::string& name) { return holds_for(trend_of(name)); };
  return any_ ? std::any_of(names_.begin(), names_.end(), fulfils)
              : std::all_of(names_.begin(), names_.end(), fulfils);
}

std::string Condition::text() const {
  std::string text;
  for (std::size_t i = 0; i < names_.size(); ++i)
    text += (i == 0 ? "" : any_ ? " or " : " and ") + names_[i];
  const auto word = std::find_if(std::begin(kWords), std::end(kWords),
                                 [&](const Word& known) { return known.kind == kind_; });
  if (word != std::end(kWords))
    text += " " + std::string(word->said) + " for " + std::to_string(window_) + " epochs";
  if (after_ && names_.empty())
    text = "after " + after_->text();
  return text;
}

}  // namespace treadle
