#include "row_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::arrays {
namespace {

constexpr std::size_t kMostClasses = 65536;

void take_missing(const ArrayFiles& array, std::int64_t row, Reading& reading) {
  if (reading.drops_rows())
    return reading.drop(row);
  reading.problems.add([&] {
    return array.place_of(row) + ": the value is missing (NaN)" +
           (reading.options.missing == Missing::kNan ? "; \"missing\": \"nan\" is for inputs only"
            : reading.is_later                       ? ""
                               : "; \"missing\": \"drop_row\" leaves such rows out");
  });
}

void expect_one_per_row(const ArrayFiles& array, const char* what) {
  if (array.row_items() == 1)
    return;
  throw DataError(array.shown() + ": " + what + " are one number per row, got rows of the shape " +
                  shape_text(array.row_shape()));
}

/// The integer that a number is; false when it is none.
template <typename T>
bool as_integer(T value, std::int64_t& integer) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr double kLargest = 9007199254740992;  // 2^53: above, a float stands for several
    if (!(std::abs(value) <= kLargest) || value != std::trunc(value))
      return false;
  }
  integer = static_cast<std::int64_t>(value);
  return true;
}

/// all_rows_in_map() of an array with one number a row: [N].
at::Tensor one_per_row_in_map(const ArrayPtr& array, at::ScalarType dtype, Reading& reading) {
  const at::Tensor numbers = all_rows_in_map(array, dtype, reading);
  return numbers.defined() ? numbers.view({array->rows()}) : numbers;
}

/// Numbers one after the other as they are met.
class LabelNumbers {
 public:
  LabelNumbers() = default;
  explicit LabelNumbers(const std::vector<std::int64_t>& labels) {
    for (const std::int64_t label : labels)
      add(label);
  }

  std::int64_t add(std::int64_t label) {
    const auto [entry, is_new] = numbers_.emplace(label, labels_.size());
    if (is_new)
      labels_.push_back(label);
    return static_cast<std::int64_t>(entry->second);
  }
  /// -1 when it is not there.
  std::int64_t find(std::int64_t label) const {
    const auto found = numbers_.find(label);
    return found == numbers_.end() ? -1 : static_cast<std::int64_t>(found->second);
  }
  const std::vector<std::int64_t>& labels() const { return labels_; }

 private:
  std::vector<std::int64_t> labels_;
  std::unordered_map<std::int64_t, std::size_t> numbers_;
};

std::string label_list(const std::vector<std::int64_t>& labels) {
  constexpr std::size_t kMostListed = 10;
  std::string text;
  for (std::size_t i = 0; i < labels.size() && i < kMostListed; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(labels[i]);
  if (labels.size() > kMostListed)
    text += " and " + std::to_string(labels.size() - kMostListed) + " more";
  return text;
}

/// Which numbers of a row are no padding, and of no position that is ignored.
class RealItems {
 public:
  /// `lengths` are undefined without padding, `weights` where every position counts.
  RealItems(const at::Tensor& lengths, const at::Tensor& weights, const ArrayFiles& array)
      : items_(array.row_items()) {
    if (lengths.defined()) {
      lengths_ = lengths.data_ptr<std::int64_t>();
      inner_ = static_cast<std::int64_t>(items_) / array.row_shape().at(0);
    }
    if (weights.defined()) {
      counts_ = weights.gt(0);
      positions_ = static_cast<std::size_t>(weights[0].numel());
    }
  }
  bool has(std::int64_t row, std::size_t item) const {
    if (lengths_ != nullptr && static_cast<std::int64_t>(item) >= lengths_[row] * inner_)
      return false;
    return !counts_.defined() ||
           counts_.data_ptr<bool>()[static_cast<std::size_t>(row) * positions_ +
                                    item * positions_ / items_];
  }

 private:
  std::size_t items_;
  const std::int64_t* lengths_ = nullptr;
  std::int64_t inner_ = 1;
  at::Tensor counts_;
  std::size_t positions_ = 1;
};

// Shapes of one row: of classes, the positions; of other kinds the positions and the width.
std::vector<std::int64_t> target_shape(const TargetRequest& request, bool classes) {
  std::vector<std::int64_t> shape = request.array->row_shape();
  const bool padded = request.lengths.defined();
  if (classes && request.array->row_items() == 1 && shape.size() <= 1 && !padded)
    return {};
  if (!classes && (shape.empty() || (padded && shape.size() == 1)))
    shape.push_back(1);
  return shape;
}

/// The same with the dimension that varies.
std::vector<std::int64_t> spec_shape(const TargetRequest& request, bool classes) {
  std::vector<std::int64_t> shape = target_shape(request, classes);
  if (request.lengths.defined())
    shape[0] = kVaries;
  return shape;
}

at::Tensor make_values(const TargetRequest& request, bool classes, at::ScalarType dtype) {
  std::vector<std::int64_t> shape = target_shape(request, classes);
  shape.insert(shape.begin(), request.array->rows());
  return at::empty(shape, dtype);
}

/// A number from which a weight is read; problems and rows to drop go to the reading.
template <typename T>
double weight_of(const ArrayFiles& array, std::int64_t row, T value, Reading& reading) {
  const auto weight = static_cast<double>(value);
  if (is_nan(value)) {
    take_missing(array, row, reading);
    return 0;
  }
  if (!(weight >= 0 && weight <= std::numeric_limits<float>::max())) {
    reading.problems.add([&] {
      return array.place_of(row) + ": a weight must be a number >= 0, got " + number_text(value);
    });
    return 0;
  }
  return weight;
}

at::Tensor read_position_weights(const TargetRequest& request, bool classes, Reading& reading) {
  const ArrayFiles& array = *request.weights;
  std::vector<std::int64_t> shape = target_shape(request, classes);
  if (!classes)
    shape.pop_back();
  const bool fits = shape.empty() ? array.row_items() == 1 : array.row_shape() == shape;
  if (!fits) {
    throw DataError(array.shown() + ": the weights of target " + quote_text(request.name) +
                    " are one number per position, of the shape " + shape_text(shape) +
                    " in each row, got rows of the shape " + shape_text(array.row_shape()));
  }
  const RealItems real(request.lengths, {}, array);
  shape.insert(shape.begin(), array.rows());
  at::Tensor weights = at::empty(shape, at::kDouble);
  auto* const out = weights.data_ptr<double>();
  const std::size_t items = array.row_items();
  bool any = false;
  for_each_number(array, reading.hash, [&](std::int64_t row, std::size_t item, auto value) {
    const double weight = real.has(row, item) ? weight_of(array, row, value, reading) : 0;
    out[static_cast<std::size_t>(row) * items + item] = weight;
    any = any || (weight > 0 && !reading.is_dropped(row));
  });
  reading.problems.throw_if_any();
  if (!any)
    throw DataError(array.shown() + ": every position has the weight 0");
  return weights;
}

at::Tensor position_weights_of(const TargetRequest& request, TargetKind kind, Reading& reading) {
  if (request.weights == nullptr)
    return {};
  return read_position_weights(request, kind == TargetKind::kClasses, reading);
}

void expect_known_shape(const TargetRequest& request, const TargetSpec& spec) {
  if (request.known == nullptr || request.known->spec.shape == spec.shape)
    return;
  const TargetSpec& known = request.known->spec;
  if (known.shape.size() == 1 && spec.shape.size() == 1 && known.shape[0] != kVaries) {
    throw DataError(request.array->shown() + ": rows have " + std::to_string(spec.shape[0]) +
                    " numbers, but the model was trained to predict " +
                    std::to_string(known.shape[0]));
  }
  throw DataError(
      request.array->shown() + ": rows have the shape " + shape_text(request.array->row_shape()) +
      ", but the model was trained to predict " + std::string(treadle::name_of(known.kind)) +
      " of the shape " + shape_text(known.shape));
}

/// Classes of an array, from integers to indices of class names.
class ClassReader {
 public:
  ClassReader(const TargetRequest& request, const at::Tensor& weights, Reading& reading)
      : request_(request),
        array_(*request.array),
        known_(request.known),
        names_(request.option.classes),
        real_(request.lengths, weights, *request.array),
        reading_(reading) {
    if (known_ != nullptr) {
      labels_ = LabelNumbers(known_->labels);
    } else if (names_) {
      for (std::size_t i = 0; i < names_->size(); ++i)
        labels_.add(static_cast<std::int64_t>(i));
    }
  }

  Targets read() {
    if (!is_integer(array_.item()))
      expect_one_per_row(array_, "classes");
    Targets targets;
    targets.spec = {request_.name,
                    TargetKind::kClasses,
                    spec_shape(request_, true),
                    {},
                    request_.option.padded_like};
    expect_known_shape(request_, targets.spec);
    targets.values = make_values(request_, true, at::kLong);
    auto* const out = targets.values.data_ptr<std::int64_t>();
    const std::size_t items = array_.row_items();
    for_each_number(array_, reading_.hash, [&](std::int64_t row, std::size_t item, auto value) {
      out[static_cast<std::size_t>(row) * items + item] =
          reading_.is_dropped(row) || !real_.has(row, item) ? kNoClass : number_of(row, value);
    });
    reading_.problems.throw_if_any();
    if (known_ != nullptr) {
      targets.spec = known_->spec;
      targets.labels = known_->labels;
    } else {
      sort_labels(targets);
    }
    targets.values.clamp_(0);
    return targets;
  }

 private:
  static constexpr std::int64_t kNoClass = -1;  // of what is no real item, and of dropped rows

  template <typename T>
  std::int64_t number_of(std::int64_t row, T value) {
    if (is_nan(value)) {
      take_missing(array_, row, reading_);
      return kNoClass;
    }
    std::int64_t label = 0;
    if (!as_integer(value, label)) {
      problem(row, number_text(value) +
                       " is no class; classes are integers (for numbers, set \"task\": "
                       "\"regression\" in \"data\" and take a loss that works on numbers)");
      return kNoClass;
    }
    const bool is_open = known_ == nullptr && !names_;
    const std::int64_t number = is_open ? labels_.add(label) : labels_.find(label);
    if (number < 0) {
      const auto count = std::to_string(labels_.labels().size());
      problem(row, known_ != nullptr
                       ? "unknown class " + std::to_string(label) + "; the model's classes are " +
                             label_list(labels_.labels())
                       : "class " + std::to_string(label) + " has no name: \"classes\" names the " +
                             count + " classes from 0 on");
      return kNoClass;
    }
    if (labels_.labels().size() > kMostClasses) {
      throw DataError(array_.place_of(row) + ": there are more than " +
                      std::to_string(kMostClasses) +
                      " different values; that is too many for classes (for numbers, set \"task\": "
                      "\"regression\" in \"data\" and take a loss that works on numbers)");
    }
    return number;
  }

  void problem(std::int64_t row, const std::string& what) {
    reading_.problems.add([&] { return array_.place_of(row) + ": " + what; });
  }

  // Class names are in the order of what stands for them.
  void sort_labels(Targets& targets) {
    std::vector<std::int64_t>& sorted = targets.labels;
    sorted = labels_.labels();
    std::sort(sorted.begin(), sorted.end());
    if (sorted.size() < 2) {
      throw DataError(array_.shown() + ": there is one class only (" + label_list(sorted) +
                      "); a classifier needs at least two");
    }
    if (names_) {
      targets.spec.class_names = *names_;
      return;
    }
    const LabelNumbers places(sorted);
    std::vector<std::int64_t> new_numbers;
    for (const std::int64_t label : labels_.labels())
      new_numbers.push_back(places.find(label));
    for (const std::int64_t label : sorted)
      targets.spec.class_names.push_back(std::to_string(label));
    auto* const numbers = targets.values.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < targets.values.numel(); ++i) {
      if (numbers[i] != kNoClass)
        numbers[i] = new_numbers[static_cast<std::size_t>(numbers[i])];
    }
  }

  const TargetRequest& request_;
  const ArrayFiles& array_;
  const Targets* known_;
  const std::optional<std::vector<std::string>>& names_;
  RealItems real_;
  Reading& reading_;
  LabelNumbers labels_;
};

// Labels must be 0 or 1, a distribution's numbers at each position sum to 1.
void check_value(const TargetRequest& request, TargetKind kind, std::int64_t row, double value,
                 Reading& reading) {
  const bool is_wrong = kind == TargetKind::kLabels         ? value != 0 && value != 1
                        : kind == TargetKind::kDistribution ? value < 0
                                                            : false;
  if (!is_wrong)
    return;
  reading.problems.add([&] {
    return request.array->place_of(row) +
           (kind == TargetKind::kLabels ? ": a label must be 0 or 1, got "
                                        : ": a probability must be >= 0, got ") +
           number_text(value);
  });
}

template <typename To>
void check_sums(const TargetRequest& request, const RealItems& real, const at::Tensor& values,
                Reading& reading) {
  constexpr double kTolerance = 1e-3;
  const auto width = static_cast<std::size_t>(values.size(-1));
  const std::size_t items = request.array->row_items();
  const To* number = values.data_ptr<To>();
  for (std::int64_t row = 0; row < request.array->rows(); ++row) {
    for (std::size_t item = 0; item < items; item += width, number += width) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i)
        sum += number[i];
      if (std::abs(sum - 1) <= kTolerance || !real.has(row, item) || reading.is_dropped(row))
        continue;
      reading.problems.add([&] {
        return request.array->place_of(row) + ": the distribution sums to " +
               number_text(static_cast<float>(sum)) + "; its numbers must sum to 1";
      });
    }
  }
}

template <typename To>
at::Tensor read_numbers(const TargetRequest& request, TargetKind kind, const at::Tensor& weights,
                        Reading& reading) {
  constexpr at::ScalarType kDtype = std::is_same_v<To, float> ? at::kFloat : at::kDouble;
  const ArrayFiles& array = *request.array;
  const RealItems real(request.lengths, weights, array);
  const std::size_t width = array.row_items();
  at::Tensor values;
  if (!request.lengths.defined() && !weights.defined())  // or some numbers would be 0
    values = all_rows_in_map(request.array, kDtype, reading);
  To* out = nullptr;
  if (values.defined()) {
    std::vector<std::int64_t> shape = target_shape(request, false);
    shape.insert(shape.begin(), array.rows());
    values = values.view(shape);
  } else {
    values = make_values(request, false, kDtype);
    out = values.data_ptr<To>();
  }
  for_each_number(array, reading.hash, [&](std::int64_t row, std::size_t item, auto value) {
    if (out != nullptr) {
      const bool is_real = real.has(row, item);
      out[static_cast<std::size_t>(row) * width + item] = is_real ? static_cast<To>(value) : To{0};
      if (!is_real)
        return;
    }
    if (is_nan(value))
      return take_missing(array, row, reading);
    if (std::isinf(static_cast<double>(value))) {
      reading.problems.add([&] {
        return array.place_of(row) + ": got " + number_text(value) +
               ": infinity cannot be trained on";
      });
      return;
    }
    check_value(request, kind, row, static_cast<double>(value), reading);
  });
  if (kind == TargetKind::kDistribution) {
    reading.problems.throw_if_any();
    check_sums<To>(request, real, values, reading);
  }
  return values;
}

TargetKind kind_of(const TargetRequest& request, const Reading& reading) {
  if (request.known != nullptr)
    return request.known->spec.kind;
  switch (request.option.kind) {
    case KindAsked::kClasses:
      return TargetKind::kClasses;
    case KindAsked::kNumbers:
      return TargetKind::kNumbers;
    case KindAsked::kLabels:
      return TargetKind::kLabels;
    case KindAsked::kDistribution:
      return TargetKind::kDistribution;
    case KindAsked::kAuto:
      break;
  }
  const OpenRequest& open = reading.request;
  if (const auto asked = open.asked_kind(request.name))
    return *asked;
  const bool is_one = request.array->row_items() == 1;
  const bool is_whole = is_integer(request.array->item());
  if (request.option.classes.has_value() || (is_whole && is_one))
    return TargetKind::kClasses;
  if (open.takes(request.name, TargetKind::kNumbers))
    return TargetKind::kNumbers;
  if (is_one && open.takes(request.name, TargetKind::kClasses))
    return TargetKind::kClasses;
  return !is_whole && open.takes(request.name, TargetKind::kDistribution)
             ? TargetKind::kDistribution
             : TargetKind::kNumbers;
}

}  // namespace

at::Tensor read_lengths(const ArrayFiles& array, std::int64_t longest, const ArrayFiles& of,
                        Reading& reading) {
  expect_one_per_row(array, "lengths");
  at::Tensor lengths = at::empty({array.rows()}, at::kLong);
  auto* const out = lengths.data_ptr<std::int64_t>();
  for_each_number(array, reading.hash, [&](std::int64_t row, std::size_t, auto value) {
    if (as_integer(value, out[row]) && out[row] >= 0 && out[row] <= longest)
      return;
    out[row] = 0;
    reading.problems.add([&] {
      return array.place_of(row) + ": a length is an integer from 0 to " + std::to_string(longest) +
             ", as rows of " + of.shown() + " have, got " + number_text(value);
    });
  });
  reading.problems.throw_if_any();
  return lengths;
}

at::Tensor read_weights(const ArrayPtr& files, Reading& reading) {
  const ArrayFiles& array = *files;
  expect_one_per_row(array, "weights");
  at::Tensor weights = one_per_row_in_map(files, number_dtype_of(array.item()), reading);
  double* out = nullptr;
  if (!weights.defined()) {
    weights = at::empty({array.rows()}, at::kDouble);
    out = weights.data_ptr<double>();
  }
  bool any = false;
  for_each_number(array, reading.hash, [&](std::int64_t row, std::size_t, auto value) {
    const double weight = weight_of(array, row, value, reading);
    if (out != nullptr)
      out[row] = weight;
    any = any || (weight > 0 && !reading.is_dropped(row));
  });
  reading.problems.throw_if_any();
  if (!any)
    throw DataError(array.shown() + ": every row has the weight 0");
  return weights;
}

at::Tensor read_groups(const ArrayPtr& files, Reading& reading) {
  const ArrayFiles& array = *files;
  expect_one_per_row(array, "groups");
  at::Tensor groups = one_per_row_in_map(files, at::kLong, reading);
  std::int64_t* out = nullptr;
  if (!groups.defined()) {
    groups = at::empty({array.rows()}, at::kLong);
    out = groups.data_ptr<std::int64_t>();
  }
  for_each_number(array, reading.hash, [&](std::int64_t row, std::size_t, auto value) {
    std::int64_t group = 0;
    const bool is_group = as_integer(value, group);
    if (out != nullptr)
      out[row] = group;
    if (is_nan(value))
      return take_missing(array, row, reading);
    if (!is_group) {
      reading.problems.add([&] {
        return array.place_of(row) + ": a group is an integer, got " + number_text(value);
      });
    }
  });
  return groups;
}

at::Tensor read_times(const ArrayPtr& files, Reading& reading) {
  const ArrayFiles& array = *files;
  expect_one_per_row(array, "times");
  at::Tensor times = one_per_row_in_map(files, at::kDouble, reading);
  double* out = nullptr;
  if (!times.defined()) {
    times = at::empty({array.rows()}, at::kDouble);
    out = times.data_ptr<double>();
  }
  for_each_number(array, reading.hash, [&](std::int64_t row, std::size_t, auto value) {
    const auto time = static_cast<double>(value);
    if (out != nullptr)
      out[row] = time;
    if (is_nan(value))
      return take_missing(array, row, reading);
    if (std::isinf(time)) {
      reading.problems.add([&] {
        return array.place_of(row) + ": a time is a finite number, got " + number_text(value);
      });
    }
  });
  return times;
}

Targets read_targets(const TargetRequest& request, Reading& reading) {
  const TargetKind kind = kind_of(request, reading);
  // Before the values: those of ignored positions may be anything.
  const at::Tensor weights = position_weights_of(request, kind, reading);
  if (kind == TargetKind::kClasses) {
    Targets targets = ClassReader(request, weights, reading).read();
    targets.weights = weights;
    return targets;
  }
  const std::optional<std::vector<std::string>>& names = request.option.classes;
  if (kind == TargetKind::kNumbers && names && request.known == nullptr) {
    throw DataError(request.array->shown() +
                    ": \"classes\" names classes, but the target is numbers; set \"task\": "
                    "\"classification\" in \"data\", or leave \"classes\" out");
  }
  Targets targets;
  targets.weights = weights;
  targets.spec = {request.name, kind, spec_shape(request, false), {}, request.option.padded_like};
  expect_known_shape(request, targets.spec);
  if (request.known != nullptr) {
    targets.spec = request.known->spec;
  } else if (kind != TargetKind::kNumbers) {
    const std::int64_t width = targets.spec.width();
    if (names && static_cast<std::int64_t>(names->size()) != width) {
      throw DataError(request.array->shown() + ": has " + std::to_string(width) +
                      " numbers for each position, but \"classes\" has " +
                      std::to_string(names->size()) + " names");
    }
    for (std::int64_t i = 0; i < width; ++i)
      targets.spec.class_names.push_back(names ? (*names)[static_cast<std::size_t>(i)]
                                               : std::to_string(i));
  }
  targets.values = number_dtype_of(request.array->item()) == at::kFloat
                       ? read_numbers<float>(request, kind, weights, reading)
                       : read_numbers<double>(request, kind, weights, reading);
  return targets;
}

}  // namespace treadle::arrays
