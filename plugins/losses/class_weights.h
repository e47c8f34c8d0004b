#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/core/devices/device_constant.h>

namespace treadle::losses {

/// How much each class counts: the parameter `class_weights` of a loss.
///
/// A list in the order of the classes is known at once. Weights by name, and "balanced", need a
/// target: they come from fit() by way of load(), and until then each class counts 1.
class ClassWeights {
 public:
  explicit ClassWeights(const Config& config);

  /// Whether the classes count differently. True also before load().
  bool is_given() const { return is_balanced_ || !by_name_.empty() || are_known(); }

  /// Throws a DocumentError unless the weights are for the classes of `target`.
  void expect_classes_of(const TargetSpec& target) const;

  /// What load() takes; empty where nothing has to be found out. Balanced: positions / (classes x
  /// positions of the class), over the positions of `rows` that count. A class that has none there
  /// is not one of the classes and has weight 1.
  StateDict fit(const RowReader& data, const RowList& rows, std::size_t target) const;
  void load(const StateDict& fitted);

  /// [C] with the dtype of `like`; undefined: 1 each.
  at::Tensor of_classes(const at::Tensor& like) const;
  /// The weight of the class at each position, times that of the position: [N], the dtype of
  /// `like`. `weights` may be undefined. Expects weights that are known.
  at::Tensor of_positions(const at::Tensor& classes, const at::Tensor& weights,
                          const at::Tensor& like) const;
  /// What a loss of classes divides by: the sum of of_positions(), 0-dim, of the weights' dtype or
  /// float32.
  at::Tensor sum_over(const TargetBatch& target) const;

  /// Whether load() or a list has made them known.
  bool are_known() const { return weights_.is_defined(); }

 private:
  at::Tensor by_name(const TargetSpec& target) const;
  void set(at::Tensor weights);

  Config config_;  // for messages
  bool is_balanced_ = false;
  std::map<std::string, double> by_name_;
  DeviceConstant weights_;  // [C]; undefined: 1 each
};

}  // namespace treadle::losses
