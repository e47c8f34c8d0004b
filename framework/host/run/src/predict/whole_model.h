#pragma once

#include <memory>
#include <vector>

#include <treadle/core/data/batch.h>
#include <treadle/core/data/row_list.h>
#include <treadle/core/validation/predictions.h>

#include "model/prediction_pool.h"
#include "predict/restored_model.h"

namespace treadle::internal {

/// A model of whole batches, and all that its training fitted; or the members of an ensemble, which
/// predict in its place. Beside it the models of folds, where its outputs need them. Const
/// functions may be called from several threads.
class WholeModel : public RestoredModel {
 public:
  WholeModel(const Runtime& runtime, SavedModel stored);

  bool is_ensemble() const { return !members_.empty(); }
  /// Whether its outputs predict with the models of folds as well.
  bool has_folds() const { return !folds_.empty(); }

  /// Predictions for rows as the training data has them, as many as there are, with outputs; their
  /// groups have the training's numbers.
  Predictions predict_rows(const Batch& rows, const FurtherPredictions& further = {}) const;

  /// Lets `visit` see predictions for some rows of open data, with outputs, in their order.
  void predict(const EvaluatedRows& data, const RowList& rows, const Visit& visit) const;

  /// Of an ensemble, without its outputs.
  Predictions pooled(const Batch& rows, const FurtherPredictions& further) const;

  /// Adds what the models of folds predict for the same rows, before outputs are applied.
  void add_folds(const Batch& rows, Predictions& predictions) const;
  /// Likewise for rows of open data that have been predicted as `batch`: they are read again.
  Predictions with_folds(Predictions predictions, const Batch& batch, const RowReader& rows) const;

 private:
  /// Other models that were saved beside this one.
  struct Others {
    std::vector<SavedModel> members;
    PredictionPool pool;
    std::vector<SavedModel> folds;
  };
  /// Of `stored`, whose other models have been taken out of it.
  WholeModel(const Runtime& runtime, Others others, SavedModel&& stored);

  Predictions predict_without_outputs(const Batch& rows, const FurtherPredictions& further) const;

  std::vector<std::unique_ptr<WholeModel>> members_;
  PredictionPool pool_;
  std::vector<std::unique_ptr<WholeModel>> folds_;
};

}  // namespace treadle::internal
