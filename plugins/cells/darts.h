#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/training/structure_search.h>
#include <treadle/core/training/training_workflow.h>

namespace treadle::cells {

/// Differentiable architecture search (Liu et al. 2019, arXiv:1806.09055), first order: before each
/// step of the weights a step of the alphas, on a batch of the rows set aside for them.
///
/// Which operations are chosen in the end, "zero" never:
/// - argmax: the one of the largest weight. Of the choices into a node "edges_per_node" stay, those
///   whose largest weights are the largest.
/// - perturbation (Wang et al. 2021, arXiv:2108.04392): the one without which the loss over the
/// rows
///   set aside grows most. Choices are decided one after the other, in random order, in the last
///   epochs, and "tune_epochs" epochs of both kinds of steps follow each. Edges then go by what the
///   loss is without them.
///
/// State: what is decided.
class DartsTraining final : public TrainingWorkflow, public RecordsStructures {
 public:
  explicit DartsTraining(const Config& config);

  std::vector<StructureRecord> structures() const override { return records_; }
  std::optional<std::int64_t> max_parameters() const override { return max_parameters_; }

 private:
  /// Training rows that are set aside for the alphas.
  static constexpr const char* kStructureRows = "structure";

  /// A choice of a model: which of its structures, which of that one's choices.
  struct Place {
    std::size_t structure = 0;
    std::size_t choice = 0;
  };
  /// The model of a training: its layers that weigh operations, their parameters, and the rest.
  struct Searched {
    /// Throws a DataError where nothing of the model can be chosen.
    explicit Searched(TrainingSession& session);
    /// Over the rows set aside, in eval mode, of the model as it is.
    double loss();

    TrainingSession& session;
    std::vector<WeighsOperations*> layers;
    ParameterSet alphas;
    ParameterSet rest;
  };
  struct Decision {
    Place place;
    std::size_t operation = 0;
  };

  void do_train(TrainingSession& session) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void* do_ask(std::string_view interface_id) override;

  LoopNeeds do_needs() const override;
  void train_epoch(Searched& searched) const;
  /// Those that are due after so many epochs, in the order of `places`.
  void decide_due(std::int64_t epochs_done, std::int64_t first, const std::vector<Place>& places,
                  Searched& searched);
  void record(Searched& searched);

  const Config config_;
  const bool perturbs_;
  const std::optional<std::int64_t> edges_per_node_;
  const std::int64_t warmup_epochs_;
  const double structure_fraction_;
  const std::int64_t tune_epochs_;
  const std::optional<std::int64_t> max_parameters_;
  std::vector<Decision> decided_;
  std::vector<StructureRecord> records_;
};

}  // namespace treadle::cells
