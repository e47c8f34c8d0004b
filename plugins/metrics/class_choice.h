#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/target_spec.h>

namespace treadle::metrics {

/// The parameters "class" and "average" of a metric that is computed for one class against the
/// rest: the class, or how the values of all classes (or labels) become one.
///
/// Without either it is the second of two classes, and the macro average of more classes or of
/// labels.
class ClassChoice {
 public:
  enum class Average { kMacro, kMicro, kWeighted };

  /// Throws DocumentError where both parameters are given.
  explicit ClassChoice(const Config& config);

  /// Throws DocumentError when the target has no such class.
  void start(const TargetSpec& target);

  /// The index of the class; nothing: average() of all.
  std::optional<std::int64_t> one() const { return one_; }
  Average average() const { return average_; }

  /// `metric`, or for a class named in the document "<metric>.<class>": two may stand side by side.
  std::string value_name(std::string_view metric) const;
  const std::vector<std::string>& class_names() const { return class_names_; }
  /// In quotes.
  std::string quoted_class(std::int64_t index) const;

 private:
  Config config_;
  Average average_ = Average::kMacro;
  std::optional<std::int64_t> one_;
  std::vector<std::string> class_names_;
};

}  // namespace treadle::metrics
