#pragma once

#include <string_view>

#include <treadle/base/component.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/training/training_session.h>

namespace treadle {

/// The training loop: when to step, with which rate, and when an epoch ends.
///
/// One object per training. What a step is, how it is cut, what is saved and what happens after an
/// epoch belongs to the session and to callbacks (TrainingCallback), so the usual loop is
///
///     while (session.next_epoch()) {
///       while (session.step(session.scheduled_rate())) {
///       }
///       session.finish_epoch();
///     }
///
/// A loop with a memory of its own overrides do_state() and do_load_state(): the state is part of
/// every checkpoint, and is loaded before train() when a training is resumed.
class TrainingWorkflow : public Component, public Stateful {
 public:
  static constexpr std::string_view kInterface = "treadle.training/0";

  ~TrainingWorkflow() override;

  /// Trains until the session is finished. Throws what the session throws, and PluginError when the
  /// loop returns before. [training thread]
  void train(TrainingSession& session);

 private:
  virtual void do_train(TrainingSession& session) = 0;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
};

}  // namespace treadle
