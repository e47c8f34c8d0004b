#include "boosting.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/GradMode.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/core/data/batch_stream.h>
#include <treadle/core/training/training_session.h>

#include "tree_grower.h"
#include "tree_objective.h"
#include "trees_model.h"

namespace treadle::trees {
namespace {

/// The training rows, with the margins that the trees have for them so far.
class Rounds {
 public:
  Rounds(TrainingSession& session, TreesModel& model)
      : objective_(session.objective()),
        model_(model),
        version_(library_version()),
        dtype_(session.precision().data()) {
    const TreeObjective its = find_objective(objective_);
    std::optional<Batch> rows = read_all(*session.read("training"));
    TREADLE_EXPECTS(rows, "there are no rows to train on");
    inputs_ = TreesModel::rows_of(rows->inputs);
    device_ = rows->inputs.front().device();
    rows->inputs.clear();
    targets_ = *std::move(rows);
    const TreeTargets targets = targets_of(targets_, objective_, its);
    TreeSum& trees = model.trees();
    if (trees.rounds() == 0)
      trees.set_base(base_of(targets, its, trees.margins()));
    margins_ = trees.margins_of(inputs_);
    model.keep_margins(true);
    grower_.emplace(inputs_, targets, its.name, model.options(), trees.margins());
  }

  ~Rounds() { model_.keep_margins(false); }
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  void grow(std::uint64_t seed) {
    TreeSum& trees = model_.trees();
    trees.add_round(grower_->grow(margins_, seed), version_);
    trees.add_rounds(inputs_, trees.rounds() - 1, margins_);
  }

  /// Of the training rows, by the trees so far.
  Number loss() const {
    const at::Tensor output = model_.output_of(margins_).to(device_, dtype_);
    const BatchLoss::Term term = objective_.forward({output}, targets_).front();
    const double weight = term.weight.defined() ? term.weight.item<double>() : term.count;
    const double sum = term.sum.item<double>();
    return objective_.value({&sum, 1}, {&weight, 1});
  }

 private:
  const Objective& objective_;
  TreesModel& model_;
  const std::string version_;
  const c10::ScalarType dtype_;  // of outputs, as a loss has them
  c10::Device device_ = c10::kCPU;
  Batch targets_;  // without inputs
  at::Tensor inputs_;
  at::Tensor margins_;
  std::optional<TreeGrower> grower_;
};

}  // namespace

Boosting::Boosting(const Config& config)
    : rounds_per_epoch_(config.get<std::int64_t>("rounds_per_epoch")) {}

LoopNeeds Boosting::do_needs() const {
  LoopNeeds needs;
  needs.updates = false;
  return needs;
}

void Boosting::do_train(TrainingSession& session) {
  auto* const model = dynamic_cast<TreesModel*>(&session.model());
  if (model == nullptr) {
    throw DataError(
        "the loop \"boosting\" grows the model \"gradient_boosted_trees\"; set \"model\" to it, or "
        "leave training.use out");
  }
  const c10::NoGradGuard no_gradients;
  std::optional<Rounds> rounds;  // a training that is finished reads no rows
  while (session.next_epoch()) {
    if (!rounds)
      rounds.emplace(session, *model);
    // A stop within the evaluation of an epoch leaves its trees in the model.
    while (rounds_grown_ < (session.epochs_done() + 1) * rounds_per_epoch_) {
      const auto round = static_cast<std::uint64_t>(rounds_grown_);
      rounds->grow(session.random().seed("trees", {round}));
      ++rounds_grown_;
    }
    session.finish_epoch(rounds->loss());
  }
}

StateDict Boosting::do_state() const {
  StateDict state;
  state.put("rounds_grown", nlohmann::json(rounds_grown_));
  return state;
}

void Boosting::do_load_state(const StateDict& state) {
  rounds_grown_ = state.value("rounds_grown").get<std::int64_t>();
}

}  // namespace treadle::trees
