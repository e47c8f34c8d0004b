#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/validation/metric_computer.h>

#include "positions.h"

namespace treadle::metrics {

/// A score of a class is made of these: weights of positions, per class (or label) or over all of
/// them.
struct Counts {
  double hits = 0;       ///< of the class and predicted as it
  double predicted = 0;  ///< predicted as the class
  double actual = 0;     ///< of the class
  double all = 0;        ///< all positions

  bool occurs() const { return predicted + actual > 0; }
};

/// Adds each class's weights (1 each where undefined) to `counts`, float64 [classes].
void add_counts(at::Tensor counts, const at::Tensor& classes, const at::Tensor& weights);

/// Adds positions to the rows of Counts, float64 [4, classes or labels].
void add_class_counts(at::Tensor& counts, const Positions& positions);

/// Reads "counts". Throws StorageError unless they are of as many classes.
void load_counts(at::Tensor& counts, const StateDict& state);

/// A metric computed from the counts of each class or label decided for: see decided().
///
/// Memory: four numbers a class. Without weights counts are whole numbers, and the result does not
/// depend on the order of batches or merges.
class ClassCountsMetric : public MetricComputer {
 protected:
  /// `name` is the component's, of static storage.
  ClassCountsMetric(std::string_view name, bool takes_labels)
      : name_(name), takes_labels_(takes_labels) {}

  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::string_view name() const { return name_; }
  bool is_of_labels() const { return is_of_labels_; }
  /// One a class.
  std::vector<Counts> counts() const;
  /// The name, in quotes.
  std::string quoted_class(std::size_t index) const;

 private:
  std::string_view name_;
  bool takes_labels_;
  bool is_of_labels_ = false;
  std::vector<std::string> class_names_;
  at::Tensor counts_;  // float64 [4, classes]: the rows of Counts
};

}  // namespace treadle::metrics
