#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/training/training_session.h>

namespace treadle {

/// The requirements of a loop. The usual loop has none.
struct LoopNeeds {
  /// Training rows that are set aside at random, and are then no rows of an epoch.
  struct Part {
    std::string name;
    double fraction = 0;  ///< of the training rows, in (0, 1)
  };
  std::vector<Part> parts = {};
  /// One pass over the data in its own order, in epochs of so many rows, a multiple of the batch
  /// size. Transforms and losses are fitted to the rows of the first epoch, as later ones are yet
  /// to come.
  std::optional<std::int64_t> rows_per_epoch = {};
  /// The names of updates that have a loss of their own. Its mean over an epoch is in the row of
  /// the history, as "loss.NAME".
  std::vector<std::string> losses = {};
  /// False: it makes no updates, so a model without parameters can be trained.
  bool updates = true;
};

/// The training loop: when to step, with which rate, and when an epoch ends.
///
/// One object per training. Updates, shards, checkpoints and evaluation belong to the session,
/// other actions to callbacks (TrainingCallback), so the usual loop is
///
///     while (session.next_epoch()) {
///       while (session.step(session.scheduled_rate())) {
///       }
///       session.finish_epoch();
///     }
///
/// Parts of a document that have no meaning with a loop are named in its schema, by
/// `x-treadle-excludes` and `x-treadle-sets`.
///
/// A loop with a memory of its own overrides do_state() and do_load_state(): the state is part of
/// every checkpoint, and is loaded before train() when a training is resumed.
class TrainingWorkflow : public Component, public Stateful {
 public:
  static constexpr std::string_view kInterface = "treadle.training/0";

  ~TrainingWorkflow() override;

  /// A function of the configuration alone.
  LoopNeeds needs() const;

  /// Trains until the session is finished. Throws what the session throws, and PluginError when the
  /// loop returns before. [training thread]
  void train(TrainingSession& session);

 private:
  virtual LoopNeeds do_needs() const { return {}; }
  virtual void do_train(TrainingSession& session) = 0;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
};

}  // namespace treadle
