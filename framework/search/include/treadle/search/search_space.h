#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/base/random.h>

namespace treadle {

/// One value per dimension of a search space: the number itself, or the index of a choice. A
/// dimension whose condition does not hold is inactive and has no value.
class Point {
 public:
  Point() = default;
  /// Every dimension inactive.
  explicit Point(std::size_t dimensions);

  std::size_t size() const noexcept { return values_.size(); }
  bool is_active(std::size_t dimension) const;
  /// NaN for an inactive dimension.
  double operator[](std::size_t dimension) const { return values_[dimension]; }
  /// The index of the choice. Expects an active dimension.
  std::size_t choice(std::size_t dimension) const;
  void set(std::size_t dimension, double value) { values_[dimension] = value; }
  void deactivate(std::size_t dimension);

  /// Equal bits; inactive dimensions are equal to each other.
  bool operator==(const Point& other) const;

 private:
  std::vector<double> values_;
};

/// One dimension of a search space. Make it with uniform(), log_uniform(), integers(),
/// log_integers() or choice().
struct Dimension {
  enum class Kind { kFloat, kInteger, kChoice };

  /// Active only where `parent` is active and has one of these choices.
  struct Condition {
    std::string parent;
    std::vector<std::size_t> choices;  ///< indices into the parent's choices
    bool operator==(const Condition&) const = default;
  };

  std::string name;  ///< path of the value in the document: "optimizer.learning_rate"
  Kind kind = Kind::kFloat;
  double low = 0;   ///< the least value
  double high = 1;  ///< the greatest value, itself included
  double step = 0;  ///< distance of neighbouring values; 0: any value between low and high
  bool log = false;
  std::vector<nlohmann::json> choices;
  /// How often each choice is drawn: above 0, with a sum of 1. Empty: all equally often.
  std::vector<double> weights = {};
  std::optional<Condition> when;

  /// How many values there are; 0 where any value between low and high is one.
  std::int64_t count() const;
  /// The value with this index. Expects 0 <= index < count().
  double value(std::int64_t index) const;
  /// The index of the value nearest to `number`. Expects count() > 0.
  std::int64_t index(double number) const;
  /// The value nearest to `number`, on the scale of the numbers themselves.
  double nearest(double number) const;
  /// Whether `number` is a value: in the range, and on the steps.
  bool contains(double number) const;

  /// How often a choice is drawn: its weight, or the same for all.
  double share(std::size_t choice) const;

  /// The value at `position` of the unit interval: floats spread evenly, or evenly in their
  /// logarithm; each of several values has a part of the interval, a choice as long as its share.
  /// Positions outside are taken as the nearer end.
  double from_unit(double position) const;
  /// The position of a value: from_unit() returns the same value for it, up to the rounding of a
  /// float.
  double to_unit(double value) const;

  /// The value as it stands in a document: a number, an integer, or the choice itself.
  nlohmann::json json(double value) const;
  /// The value that json() writes so; nothing for what is no value of the dimension.
  std::optional<double> read(const nlohmann::json& written) const;

  bool operator==(const Dimension&) const = default;
};

Dimension uniform(std::string name, double low, double high, double step = 0);
Dimension log_uniform(std::string name, double low, double high);
Dimension integers(std::string name, std::int64_t low, std::int64_t high, std::int64_t step = 1);
Dimension log_integers(std::string name, std::int64_t low, std::int64_t high);
/// `weights` need not add up to 1; a SearchSpace divides them by their sum.
Dimension choice(std::string name, std::vector<nlohmann::json> choices,
                 std::vector<double> weights = {});
/// The same dimension, active only where `parent` has one of these choices.
Dimension when(Dimension dimension, std::string parent, std::vector<std::size_t> choices);

/// The space of a hyperparameter search: which values of a document are tried, and between which
/// bounds. Tuners get it with every suggestion.
///
/// In a document it is an object from paths to dimensions:
///
///     {"optimizer": {"choice": [{"use": "sgd"}, {"use": "adamw"}]},
///      "optimizer.learning_rate": {"log_uniform": [1e-4, 1e-1]},
///      "optimizer.momentum": {"uniform": [0, 0.9], "step": 0.1,
///                             "when": {"optimizer": [{"use": "sgd"}]}},
///      "model.activation": {"choice": ["relu", "gelu"], "weights": [3, 1]},
///      "model.layers": {"int": [1, 8]},
///      "training.batch_size": {"log_int": [8, 512]}}
///
/// "step" goes with "uniform" and "int" and divides the range. "weights" go with "choice": a random
/// point has the first of these activations three times out of four. "when" names one choice and
/// lists the values with which the dimension is active; the choice may have a condition of its own.
///
/// Dimensions are in the order of their names, in whatever order a document has them. Immutable:
/// safe to read from any thread.
class SearchSpace {
 public:
  /// Reads `space`, the object above. Throws DocumentError with every problem.
  static SearchSpace parse(const Config& space);
  /// A space made in code. Throws DocumentError as parse() does, also for two equal names.
  explicit SearchSpace(std::vector<Dimension> dimensions);

  std::size_t size() const noexcept { return dimensions_.size(); }
  std::span<const Dimension> dimensions() const noexcept { return dimensions_; }
  const Dimension& operator[](std::size_t dimension) const { return dimensions_[dimension]; }
  std::optional<std::size_t> find(std::string_view name) const;

  /// Whether any dimension has a condition.
  bool is_conditional() const noexcept { return is_conditional_; }
  /// Whether the dimension has its condition fulfilled by the choices in `point`.
  bool is_enabled(std::size_t dimension, const Point& point) const;
  /// Indices of all dimensions, each behind the choice that its condition names.
  std::span<const std::size_t> order() const noexcept { return order_; }
  /// The dimensions whose condition is about `dimension`.
  std::span<const std::size_t> children(std::size_t dimension) const {
    return children_[dimension];
  }
  /// The choice that the dimension's condition is about.
  std::optional<std::size_t> parent(std::size_t dimension) const { return parents_[dimension]; }

  /// Whether exactly the enabled dimensions are active, and each has one of its values.
  bool contains(const Point& point) const;

  /// A point whose enabled dimensions have the positions given, one number in [0, 1] per dimension;
  /// positions of other dimensions have no effect.
  Point from_unit(std::span<const double> positions) const;
  /// The positions of a point; 0.5 for inactive dimensions.
  std::vector<double> to_unit(const Point& point) const;
  /// A point drawn uniformly, choices by their weights: each enabled dimension by itself. Takes one
  /// number per dimension from `bits`, active or not.
  Point random(RandomBits& bits) const;
  /// The same, but for the values in `given`, of one element per dimension: an enabled dimension
  /// has what is given for it.
  Point random(RandomBits& bits, std::span<const std::optional<double>> given) const;

  /// The active values by name, as they stand in a document.
  nlohmann::json to_json(const Point& point) const;
  /// The point with these values. Throws StorageError, which names the first value that does not
  /// fit the space.
  Point from_json(const nlohmann::json& values) const;
  /// The space as parse() reads it: to store, and to compare with a stored one.
  nlohmann::json to_json() const;

  bool operator==(const SearchSpace& other) const { return dimensions_ == other.dimensions_; }

 private:
  std::vector<Dimension> dimensions_;
  std::vector<std::optional<std::size_t>> parents_;
  std::vector<std::vector<std::size_t>> children_;
  std::vector<std::size_t> order_;
  bool is_conditional_ = false;
};

/// All combinations of some values of each dimension, without those that differ only in inactive
/// dimensions: every choice and every step; of a range without steps, and of integers in steps of
/// 1, at most `points` values from low to high, evenly spread on the dimension's scale.
///
/// Points are computed from their index, so a large grid takes no memory. The last dimension
/// changes fastest. Refers to the space.
class SearchGrid {
 public:
  /// Expects points >= 2.
  SearchGrid(const SearchSpace& space, std::int64_t points);

  /// The number of points; the largest std::int64_t where there are more.
  std::int64_t size() const noexcept { return size_; }
  /// Expects 0 <= index < size().
  Point at(std::int64_t index) const;

 private:
  /// Combinations of a dimension and all below it, with the dimension's value fixed.
  std::int64_t below(std::size_t dimension, double value) const;
  void fill(std::size_t dimension, std::int64_t index, Point& point) const;

  const SearchSpace* space_;
  std::vector<std::vector<double>> values_;
  std::vector<std::int64_t> counts_;  // of a dimension and all below it
  std::int64_t size_ = 1;
};

}  // namespace treadle
