#pragma once

#include <memory>
#include <span>
#include <vector>

#include <treadle/core/training/optimizer.h>
#include <treadle/core/training/parameter_arena.h>

namespace treadle::engine {

/// The optimizers of one training: each with its parameters, its memory, and its share of the
/// learning rate.
///
/// Groups whose slots are alike use the same vectors, as no element belongs to two of them; only
/// numbers for everything (scalar slots) are kept for each. What updates have done to float32
/// masters of 16-bit parameters is a part of the memory: it is to be loaded after the model. Owned
/// by a TrainingStep; one training thread.
class GroupedUpdate : public Stateful {
 public:
  /// What no group names is `rest`'s. Throws ContractViolation for a name that is no segment's or
  /// is in two groups.
  GroupedUpdate(ParameterArena& arena, const Optimizer& rest,
                std::span<const ParameterGroup> groups,
                ParameterView::Path path = ParameterView::Path::kFastest);
  ~GroupedUpdate() override;

  /// The rates of the groups in the updates to come, one for each. Empty: a group's is as much
  /// larger or smaller than that of `rest` as its optimizer's own rate is.
  void set_rates(std::span<const double> rates);
  /// Whether an optimizer has EvaluationWeights.
  bool has_evaluation_weights() const;
  /// The arena's parameters, with those in place of their own: a new tensor [arena.size()].
  at::Tensor evaluation_weights() const;

  /// Updates every active segment by its own optimizer. `info` has the rate for `rest`.
  void update(const StepInfo& info);
  /// The same with numbers on the device of the parameters.
  void update(const StepTensors& step);

 private:
  struct Group {
    const Optimizer& optimizer;
    std::unique_ptr<OptimizerSlots> slots;
    std::unique_ptr<ParameterView> view;
    std::vector<bool> members;  // by segment; empty: all
    double rate_share = 1;
    double rate = 0;           // where has_rates_
    at::Tensor device_rate{};  // the same on a device: float64 []; made when it is needed
  };

  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  template <typename Begin>
  void update_each(const Begin& begin);
  std::vector<std::vector<bool>> members_of(std::span<const ParameterGroup> groups) const;
  void share_slots(Group& group, const std::vector<SlotSpec>& specs);

  ParameterArena& arena_;
  const std::vector<SlotSpec> specs_;  // of the first group
  const bool works_with_tensors_;      // numbers of a step are on the device, or as if
  std::vector<Group> groups_;          // the first is the rest
  bool has_rates_ = false;             // set by set_rates()
};

}  // namespace treadle::engine
