#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/core/training/parameter_view.h>

namespace treadle {

/// An update rule from gradients to parameters: a function on flat vectors.
///
/// It holds no state of its own: it declares state in slots(), which the framework owns, saves and
/// restores. Written in tensor operations a rule runs on every device and in every dtype; a loop of
/// its own for the CPU is a choice (ParameterView::host()).
///
/// Segments that no backward pass wrote, or that are frozen, are not in the view's pieces: they and
/// their slots stay as they are, weight decay included. A step whose gradients are not finite
/// changes nothing either: the framework makes no update on a CPU, and elsewhere the setters of
/// pieces keep every bit.
class Optimizer : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.optimizer/0";

  ~Optimizer() override;

  /// The base rate, which schedules scale.
  double learning_rate() const;

  std::vector<SlotSpec> slots() const;

  /// One update, after begin_step() of the view. Reads gradients, never writes them. No gradients
  /// are recorded. [training thread]
  void update(ParameterView& view) const;

 private:
  virtual double do_learning_rate() const = 0;
  virtual std::vector<SlotSpec> do_slots() const = 0;
  virtual void do_update(ParameterView& view) const = 0;
};

class LearningRateSchedule;

/// Parameters with an optimizer of their own: another rate, no decay. What it points to is
/// borrowed.
struct ParameterGroup {
  const Optimizer* optimizer = nullptr;
  std::vector<std::string> parameters;  ///< names of segments
  /// Of the optimizer's rate; null: it changes as that of the parameters in no group does.
  const LearningRateSchedule* schedule = nullptr;
};

}  // namespace treadle
