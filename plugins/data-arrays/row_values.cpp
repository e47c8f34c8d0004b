#include "row_values.h"

#include <limits>
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

/// Classes of an array, from integers to indices of class names.
class ClassReader {
 public:
  ClassReader(const ArrayFiles& array, const Targets* known, Reading& reading)
      : array_(array), known_(known), reading_(reading) {
    if (known_ != nullptr) {
      labels_ = LabelNumbers(known_->labels);
    } else if (const auto& names = reading.options.classes) {
      for (std::size_t i = 0; i < names->size(); ++i)
        labels_.add(static_cast<std::int64_t>(i));
    }
  }

  Targets read(const std::string& name) {
    expect_one_per_row(array_, "classes");
    Targets targets;
    targets.values = at::empty({array_.rows()}, at::kLong);
    auto* const out = targets.values.data_ptr<std::int64_t>();
    for_each_number(array_, reading_.hash, [&](std::int64_t row, std::size_t, auto value) {
      out[row] = reading_.is_dropped(row) ? 0 : number_of(row, value);
    });
    reading_.problems.throw_if_any();
    if (known_ != nullptr) {
      targets.spec = known_->spec;
      targets.labels = known_->labels;
      return targets;
    }
    targets.spec = {name, TargetKind::kClasses, 1, {}};
    sort_labels(targets);
    return targets;
  }

 private:
  template <typename T>
  std::int64_t number_of(std::int64_t row, T value) {
    if (is_nan(value)) {
      take_missing(array_, row, reading_);
      return 0;
    }
    std::int64_t label = 0;
    if (!as_integer(value, label)) {
      problem(row, number_text(value) +
                       " is no class; classes are integers (for numbers, set \"task\": "
                       "\"regression\" in \"data\" and take a loss that works on numbers)");
      return 0;
    }
    const bool is_open = known_ == nullptr && !reading_.options.classes;
    const std::int64_t number = is_open ? labels_.add(label) : labels_.find(label);
    if (number < 0) {
      const auto count = std::to_string(labels_.labels().size());
      problem(row, known_ != nullptr
                       ? "unknown class " + std::to_string(label) + "; the model knows " +
                             label_list(labels_.labels())
                       : "class " + std::to_string(label) + " has no name: \"classes\" names the " +
                             count + " classes from 0 on");
      return 0;
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
    if (reading_.options.classes) {
      targets.spec.class_names = *reading_.options.classes;
      return;
    }
    const LabelNumbers places(sorted);
    std::vector<std::int64_t> new_numbers;
    for (const std::int64_t label : labels_.labels())
      new_numbers.push_back(places.find(label));
    for (const std::int64_t label : sorted)
      targets.spec.class_names.push_back(std::to_string(label));
    auto* const numbers = targets.values.data_ptr<std::int64_t>();
    for (std::int64_t row = 0; row < array_.rows(); ++row)
      numbers[row] = new_numbers[static_cast<std::size_t>(numbers[row])];
  }

  const ArrayFiles& array_;
  const Targets* known_;
  Reading& reading_;
  LabelNumbers labels_;
};

template <typename To>
at::Tensor read_numbers(const ArrayFiles& array, Reading& reading) {
  const std::size_t width = array.row_items();
  at::Tensor values =
      at::empty({array.rows(), static_cast<std::int64_t>(width)}, reading.request.dtype);
  To* const out = values.data_ptr<To>();
  for_each_number(array, reading.hash, [&](std::int64_t row, std::size_t item, auto value) {
    out[static_cast<std::size_t>(row) * width + item] = static_cast<To>(value);
    if (is_nan(value))
      return take_missing(array, row, reading);
    if (std::abs(static_cast<double>(value)) > std::numeric_limits<To>::max()) {
      reading.problems.add([&] {
        return array.place_of(row) + ": got " + number_text(value) +
               (std::isinf(static_cast<double>(value))
                    ? ": infinity cannot be trained on"
                    : ", which is too large for float32; \"dtype\": \"float64\" holds more");
      });
    }
  });
  return values;
}

bool are_classes(const ArrayFiles& array, const Targets* known, const Reading& reading) {
  if (known != nullptr)
    return known->spec.kind == TargetKind::kClasses;
  if (reading.request.task != Task::kAuto)
    return reading.request.task == Task::kClassification;
  if (reading.request.loss_target != TargetKind::kNone)
    return reading.request.loss_target == TargetKind::kClasses;
  return reading.options.classes || (is_integer(array.item()) && array.row_items() == 1);
}

}  // namespace

at::Tensor read_weights(const ArrayFiles& array, Reading& reading) {
  expect_one_per_row(array, "weights");
  const at::Tensor weights = at::empty({array.rows()}, at::kDouble);
  double* const out = weights.data_ptr<double>();
  bool any = false;
  for_each_number(array, reading.hash, [&](std::int64_t row, std::size_t, auto value) {
    out[row] = static_cast<double>(value);
    if (is_nan(value))
      return take_missing(array, row, reading);
    any = any || (out[row] > 0 && !reading.is_dropped(row));
    if (!(out[row] >= 0 && out[row] <= std::numeric_limits<float>::max())) {
      reading.problems.add([&] {
        return array.place_of(row) + ": a weight must be a number >= 0, got " + number_text(value);
      });
    }
  });
  reading.problems.throw_if_any();
  if (!any)
    throw DataError(array.shown() + ": every row has the weight 0");
  return weights.to(reading.request.dtype);
}

at::Tensor read_groups(const ArrayFiles& array, Reading& reading) {
  expect_one_per_row(array, "groups");
  at::Tensor groups = at::empty({array.rows()}, at::kLong);
  auto* const out = groups.data_ptr<std::int64_t>();
  for_each_number(array, reading.hash, [&](std::int64_t row, std::size_t, auto value) {
    out[row] = 0;
    if (is_nan(value))
      return take_missing(array, row, reading);
    if (!as_integer(value, out[row])) {
      reading.problems.add([&] {
        return array.place_of(row) + ": a group is an integer, got " + number_text(value);
      });
    }
  });
  return groups;
}

at::Tensor read_times(const ArrayFiles& array, Reading& reading) {
  expect_one_per_row(array, "times");
  at::Tensor times = at::empty({array.rows()}, at::kDouble);
  double* const out = times.data_ptr<double>();
  for_each_number(array, reading.hash, [&](std::int64_t row, std::size_t, auto value) {
    out[row] = static_cast<double>(value);
    if (is_nan(value))
      return take_missing(array, row, reading);
    if (std::isinf(out[row])) {
      reading.problems.add([&] {
        return array.place_of(row) + ": a time is a finite number, got " + number_text(value);
      });
    }
  });
  return times;
}

Targets read_targets(const ArrayFiles& array, const std::string& name, const Targets* known,
                     Reading& reading) {
  if (are_classes(array, known, reading))
    return ClassReader(array, known, reading).read(name);
  if (reading.options.classes && known == nullptr) {
    throw DataError(array.shown() +
                    ": \"classes\" names classes, but the target is numbers; set \"task\": "
                    "\"classification\" in \"data\", or leave \"classes\" out");
  }
  if (array.row_shape().size() > 1) {
    throw DataError(array.shown() + ": a target is one row of numbers per row, got rows of the " +
                    "shape " + shape_text(array.row_shape()));
  }
  const auto width = static_cast<std::int64_t>(array.row_items());
  if (known != nullptr && known->spec.width != width) {
    throw DataError(array.shown() + ": rows have " + std::to_string(width) +
                    " numbers, but the model was trained to predict " +
                    std::to_string(known->spec.width));
  }
  Targets targets;
  targets.spec = known != nullptr ? known->spec : TargetSpec{name, TargetKind::kNumbers, width, {}};
  targets.values = reading.request.dtype == at::kFloat ? read_numbers<float>(array, reading)
                                                       : read_numbers<double>(array, reading);
  return targets;
}

}  // namespace treadle::arrays
