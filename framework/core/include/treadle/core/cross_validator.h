#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/component.h>
#include <treadle/base/random.h>
#include <treadle/core/data_spec.h>
#include <treadle/core/sequence_provider.h>

namespace treadle {

/// The rows to split.
struct SplitRequest {
  std::int64_t rows = 0;
  std::vector<TargetSpec> targets;
  std::vector<at::Tensor> target_values;  ///< one per target, as RowReader::targets()
  at::Tensor groups;                      ///< int64 [rows], or undefined
  at::Tensor timestamps;                  ///< float64 [rows], or undefined
  RandomStreams random{0};
  /// Which rows of the data each of the `rows` samples touches; null: they are the data's own rows,
  /// and touch themselves. Valid in the call.
  const SampleReader* samples = nullptr;
};

/// One way to divide the rows. Both lists are ascending unless they are ordered by time.
struct Fold {
  std::string name;  ///< of its fit, see FitId::is_part(); "final" where there is no refit
  std::vector<std::int64_t> training;
  std::vector<std::int64_t> validation;
};

struct ValidationPlan {
  std::vector<Fold> folds;
  /// True: the folds' models are only scored, then one model is trained on all rows. False with one
  /// fold: that fold's model is the result. False with several: there is no single model.
  bool refit = false;
  /// Rows that no fold trains or validates on; a refit leaves them out, too. The plan's model is
  /// tested on them once, at the end: validation rows may choose (the epoch, the document), test
  /// rows only measure. set_aside.h selects them. Empty: there are none.
  std::vector<std::int64_t> test = {};
};

/// Decides which rows train, which validate and which test. Stateless: the plan is a function of
/// the request.
class CrossValidator : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.validation/0";

  ~CrossValidator() override;

  /// Checks what every plan must satisfy: at least one fold; no row in both parts of a fold or
  /// outside the data; no empty part; test rows in no fold, and only where there is a model to
  /// test. Throws DataError with the reason when the data cannot be split so (more folds than rows,
  /// a class with fewer rows than folds), and when a training sample of a fold touches a row that
  /// is the target of one of its validation samples: the target would leak into training.
  ValidationPlan plan(const SplitRequest& request) const;

  /// How many rows of a stream validate: its first ones, which are kept in memory; those after them
  /// train. Rows that have not been read cannot be split, so few validators support streams; the
  /// others throw DataError. At least 1.
  std::int64_t first_rows_of_stream() const;

 private:
  virtual ValidationPlan do_plan(const SplitRequest& request) const = 0;
  virtual std::int64_t do_first_rows_of_stream() const;
};

}  // namespace treadle
