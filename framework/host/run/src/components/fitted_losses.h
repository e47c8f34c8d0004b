#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/core/training/objective.h>

namespace treadle::internal {

/// The losses of one training: the document's, and in place of those that are fitted to targets
/// what they became.
class FittedLosses {
 public:
  /// The losses in `terms` are borrowed.
  explicit FittedLosses(std::vector<Objective::Term> terms);
  ~FittedLosses();

  /// Fits to `rows` of `data`, which the transforms have been applied to.
  void fit(const RowReader& data, const RowList& rows);

  /// Adds to a training's preprocessing what the losses were fitted to, and takes it from there.
  void save_in(StateDict& preprocessing) const;
  void load_from(const StateDict& preprocessing);

  /// For targets as the transforms leave them. Borrows from this object.
  Objective objective(const DataSpec& transformed) const { return {terms_, transformed.targets}; }

 private:
  void load(std::size_t term, StateDict state);

  const std::vector<Objective::Term> given_;
  std::vector<Objective::Term> terms_;
  std::vector<StateDict> states_;              // of the terms; empty where one takes nothing
  std::vector<std::unique_ptr<Loss>> fitted_;  // of the terms; null where states_ are empty
};

}  // namespace treadle::internal
