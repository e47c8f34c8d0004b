#include <treadle/core/training/training_workflow.h>
#include <treadle/plugin.h>

namespace {

/// A training loop to begin from: every batch of every epoch, the first epochs at a lower rate.
///
/// What a step is, how it is cut into shards, what is saved and what happens after an epoch belongs
/// to the session and to callbacks; a loop says when to step, at which rate, and when an epoch ends.
class @Name@ final : public treadle::TrainingWorkflow {
 public:
  explicit @Name@(const treadle::Config& config)
      : slow_epochs_(config.get<std::int64_t>("slow_epochs")),
        slow_factor_(config.get<double>("slow_factor")) {}

 private:
  void do_train(treadle::TrainingSession& session) override {
    while (session.next_epoch()) {
      while (session.step(rate(session))) {
      }
      session.finish_epoch();
    }
  }

  // A function of where the training is: a loop that remembers more overrides do_state() and
  // do_load_state(), or a resumed training goes another way.
  double rate(const treadle::TrainingSession& session) const {
    const bool is_slow = session.epochs_done() < slow_epochs_;
    return session.scheduled_rate() * (is_slow ? slow_factor_ : 1.0);
  }

  std::int64_t slow_epochs_;
  double slow_factor_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
