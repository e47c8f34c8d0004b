#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/parameter_arena.h>

namespace treadle::engine {

/// Which weights of a training are averaged, and how much each counts.
struct AveragingPlan {
  std::int64_t start = 0;  ///< the first are those after so many steps
  std::int64_t every = 1;  ///< steps between two; at least 1
  /// Of all before, in (0, 1); absent: all count the same.
  std::optional<double> decay = std::nullopt;
};

/// An average of the weights that a training passes through, beside the weights it goes on with.
///
/// With a decay d it is the exponential moving average s = d s + (1 - d) p (Polyak & Juditsky
/// 1992), which begins as a copy; the model's floating-point buffers are averaged with it, others
/// are the newest. Without one it is the mean, s = s + (p - s) / (n + 1): stochastic weight
/// averaging (Izmailov et al. 2018); buffers stay the model's. Either way layers with statistics
/// (GathersStatistics) need refresh_statistics() before the average is of use.
///
/// Takes one vector as long as the parameters, another while the average is in the model. One
/// training thread; arena and model outlive it.
class WeightAverage : public Stateful {
 public:
  WeightAverage(ParameterArena& arena, Model& model, AveragingPlan plan);
  ~WeightAverage() override;

  /// After so many steps, 0 for the weights that a training begins with: adds them when the plan
  /// requires it. `skip`, bool [] on the device: where it is true they are not added. Waits for
  /// nothing.
  void add_after(std::int64_t steps, const at::Tensor& skip = {});
  bool is_due_after(std::int64_t steps) const {
    return steps >= plan_.start && (steps - plan_.start) % plan_.every == 0;
  }

  /// The tensors that add_after() changes on a device, by name: not copies. Empty before it has
  /// been called there.
  std::vector<std::pair<std::string, at::Tensor>> memory() const;

  /// How many weights were added; 0: there is no average yet. Waits for the device when skipped
  /// steps are known only there.
  std::int64_t count() const;
  /// Whether there may be any: false before the first step to average. Never waits.
  bool has_begun() const { return average_.defined(); }

  /// Gives the model the average in place of its own weights, which are kept aside for take_out().
  /// Expects an average that is not in the model already.
  void put_in();
  bool is_in_model() const { return own_.defined(); }
  /// The model's own weights and buffers again, bit for bit.
  void take_out();

 private:
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void begin();
  void add(double weight);
  void add_unless(const at::Tensor& skip);

  ParameterArena& arena_;
  Model& model_;
  const AveragingPlan plan_;
  std::int64_t count_ = 0;
  at::Tensor count_on_device_;       // float64 []; undefined: count_ is right
  at::Tensor average_;               // [arena.size()], the arena's dtype
  std::vector<at::Tensor> buffers_;  // with a decay: like the model's
  at::Tensor own_;                   // while the average is in the model
  std::vector<at::Tensor> own_buffers_;
};

}  // namespace treadle::engine
