#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace treadle {

/// A number that a run reports, in one of three states:
///
/// - known: finite;
/// - undefined, because of the rows or weights it is computed from: the AUC of rows of one class, a
///   mean over weight 0. It has a reason;
/// - not finite: computed, and NaN or infinite.
///
/// An undefined number chooses nothing, is part of no mean, prunes and ends nothing, and is shown
/// as a dash. As a `double` it is NaN, so that it compares as neither better nor worse.
class Number {
 public:
  Number() = default;
  Number(double value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  /// `why`: what the rows lack, in a few words that follow a colon: "all rows are of class
  /// \"yes\"". Not empty.
  static Number undefined(std::string why) {
    Number number(std::numeric_limits<double>::quiet_NaN());
    number.why_ = std::move(why);
    return number;
  }

  operator double() const { return value_; }  // NOLINT(google-explicit-constructor)
  double value() const { return value_; }
  bool is_known() const { return std::isfinite(value_); }
  bool is_undefined() const { return !why_.empty(); }
  /// Why it is undefined; empty in the other states.
  const std::string& why() const { return why_; }

 private:
  double value_ = 0;
  std::string why_;
};

/// A number, or null where it is not known. Found by nlohmann::json.
template <typename Json>
void to_json(Json& json, const Number& number) {
  if (number.is_known()) {
    json = number.value();
  } else {
    json = nullptr;
  }
}

/// Which way is better; decides what "best" means and how early stopping looks at it.
enum class Direction { kLowerIsBetter, kHigherIsBetter, kNone };

struct MetricValue {
  std::string name;  ///< "accuracy", "recall.setosa"
  Number value;
  Direction direction = Direction::kNone;
};

/// The mean of a sum over rows; undefined over weight 0, as where there are no rows.
inline Number weighted_mean(double sum, double weight) {
  return weight > 0 ? Number(sum / weight) : Number::undefined("no row has a weight above 0");
}

}  // namespace treadle
