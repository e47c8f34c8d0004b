#include "condition.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "number_text.h"

namespace treadle::callbacks {

/// What can be said of a trend, and how.
struct Condition::Word {
  const char* key;
  Kind kind;
  enum Value { kWindow, kWindowAndTolerance, kBound } value;
  std::string_view said;
};

const Condition::Word Condition::kWords[] = {
    {"stalled", Kind::kStalled, Word::kWindowAndTolerance, "stalled"},
    {"improving", Kind::kImproving, Word::kWindow, "improving"},
    {"not_improving", Kind::kNotImproving, Word::kWindow, "not improving"},
    {"converged", Kind::kConverged, Word::kWindowAndTolerance, "converged"},
    {"above", Kind::kAbove, Word::kBound, "above"},
    {"below", Kind::kBelow, Word::kBound, "below"},
};

Condition Condition::configured_by(const Config& config) {
  Condition condition(config);
  if (config.has("monitor")) {
    condition.names_ = config.json().at("monitor").is_string()
                           ? std::vector<std::string>{config.get<std::string>("monitor")}
                           : config.get<std::vector<std::string>>("monitor");
  }
  for (const Word& word : kWords) {
    if (!config.has(word.key))
      continue;
    if (condition.kind_ != Kind::kNone)
      config.fail(word.key, "a condition has one criterion; write another condition for this one");
    condition.kind_ = word.kind;
    if (word.value == Word::kBound) {
      condition.window_ = 1;
      condition.bound_ = config.get<double>(word.key);
      continue;
    }
    if (word.value == Word::kWindowAndTolerance) {
      const auto numbers = config.get<std::vector<double>>(word.key);
      if (numbers[0] != std::floor(numbers[0]))
        config.fail(word.key, "the first number counts epochs: expected a whole number");
      condition.window_ = static_cast<std::int64_t>(numbers[0]);
      condition.bound_ = numbers[1];
      if (!(condition.bound_ > 0))
        config.fail(word.key, "the second number, the tolerance, must be above 0");
    } else {
      condition.window_ = config.get<std::int64_t>(word.key);
    }
    if (condition.window_ < 2)
      config.fail(word.key, "one epoch has no trend: expected at least 2 epochs");
  }
  condition.after_ = config.find<Duration>("after");
  condition.any_ = config.get_or<std::string>("of", "all") == "any";
  const auto mode = config.get_or<std::string>("mode", "auto");
  if (mode != "auto")
    condition.better_ = mode == "max" ? Direction::kHigherIsBetter : Direction::kLowerIsBetter;
  if ((condition.kind_ == Kind::kNone) != condition.names_.empty()) {
    config.fail("",
                "\"monitor\" and what must be true of it belong together: {\"monitor\": "
                "\"val_loss\", \"stalled\": [5, 1e-4]}");
  }
  if (condition.kind_ == Kind::kNone && !condition.after_)
    config.fail("", "expected \"monitor\" and what must be true of it, or \"after\"");
  return condition;
}

bool Condition::holds_for(const Trend& trend) const {
  if (static_cast<std::int64_t>(trend.size()) < window_)
    return false;
  const Trend directed(trend.values(), better_ == Direction::kNone ? trend.direction() : better_);
  switch (kind_) {
    case Kind::kStalled:
      return directed.stalled(window_, bound_);
    case Kind::kImproving:
      return directed.improving(window_);
    case Kind::kNotImproving:
      return !directed.improving(window_);
    case Kind::kConverged:
      return directed.converged(window_, bound_);
    case Kind::kAbove:
      return directed.latest() > bound_;
    case Kind::kBelow:
      return directed.latest() < bound_;
    case Kind::kNone:
      break;
  }
  return true;
}

bool Condition::holds(const std::function<Trend(const std::string&)>& trend_of) const {
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
  if (word != std::end(kWords)) {
    text += " " + std::string(word->said);
    text += word->value == Word::kBound ? " " + number_text(bound_)
                                        : " for " + std::to_string(window_) + " epochs";
  }
  if (after_ && names_.empty())
    text = "after " + after_->text();
  return text;
}

}  // namespace treadle::callbacks
