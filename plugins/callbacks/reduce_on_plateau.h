#pragma once

#include <string>

#include "monitor.h"

namespace treadle::callbacks {

/// Lowers the learning rate when a number has not got better for a while.
///
/// A value is an improvement when it is better than the best so far by more than min_delta; after
/// `patience` epochs without one, the rate is multiplied by `factor`, though not below `min_rate`,
/// and the count begins anew. A value that is not a number is no improvement.
class ReduceOnPlateau final : public TrainingCallback {
 public:
  explicit ReduceOnPlateau(const Config& config);

 private:
  void do_begin(TrainingControl& control) override;
  void do_after_epoch(const EpochSummary& epoch, TrainingControl& control) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  bool improves(const MetricValue& value) const;
  void reduce(TrainingControl& control, std::int64_t epochs);

  Monitor monitor_;
  Duration length_;
  double factor_;
  double min_delta_;
  double min_rate_;
  Duration cooldown_length_;

  bool is_active_ = false;
  std::int64_t patience_ = 0;  // epochs
  std::int64_t cooldown_ = 0;  // epochs
  bool has_best_ = false;
  double best_ = 0;
  std::int64_t since_ = 0;       // the epoch from which the count runs
  std::int64_t last_epoch_ = 0;  // that was evaluated
  std::int64_t cool_until_ = 0;  // the last epoch that does not count
};

}  // namespace treadle::callbacks
