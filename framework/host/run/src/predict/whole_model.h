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
/// predict in its place. Const functions may be called from several threads.
class WholeModel : public RestoredModel {
 public:
  WholeModel(const Runtime& runtime, SavedModel stored);

  bool is_ensemble() const { return !members_.empty(); }

  /// Predictions for rows as the training data has them, as many as there are, with outputs; their
  /// groups have the training's numbers.
  Predictions predict_rows(const Batch& rows, const FurtherPredictions& further = {}) const;

  /// Lets `visit` see predictions for some rows of open data, with outputs, in their order.
  void predict(const EvaluatedRows& data, const RowList& rows, const Visit& visit) const;

  /// Of an ensemble, without its outputs.
  Predictions pooled(const Batch& rows, const FurtherPredictions& further) const;

 private:
  /// Of `stored`, whose ensemble has been taken out of it.
  WholeModel(const Runtime& runtime, std::vector<SavedModel> members, PredictionPool pool,
             SavedModel&& stored);

  Predictions predict_without_outputs(const Batch& rows, const FurtherPredictions& further) const;

  std::vector<std::unique_ptr<WholeModel>> members_;
  PredictionPool pool_;
};

}  // namespace treadle::internal
