#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/matrix_rows.h>

/// Small data sets that are the same everywhere: as matrices, as batches (`gathered` of batches.h),
/// or as a DataProvider, TinyData.
namespace treadle::testing {

/// Rows of `2a - b + 0.5` and a little noise, all of it times `scale`; weighted from 0.5 to 1.5.
Batch noisy_line(std::int64_t count, std::uint64_t seed, double scale = 1);

/// Regression: the columns "a" and "b", and the number "y" of noisy_line().
MatrixRows::Matrices tiny_regression(std::int64_t rows = 40, std::uint64_t seed = 1,
                                     at::ScalarType dtype = at::kFloat);

/// Classification: points around the corners of a regular polygon, the columns "x" and "y"; the
/// classes "corner-0", "corner-1", … take turns.
MatrixRows::Matrices tiny_classification(std::int64_t rows = 60, std::int64_t classes = 3,
                                         std::uint64_t seed = 1, at::ScalarType dtype = at::kFloat);

/// Sequences: the last `length` values of a noisy sine, [length, 1] a row, and the number "next".
/// Each row has its time.
MatrixRows::Matrices tiny_sequences(std::int64_t rows = 40, std::int64_t length = 8,
                                    std::uint64_t seed = 1, at::ScalarType dtype = at::kFloat);

/// Texts of 1 to 6 tokens of a vocabulary of 9, with their lengths; the classes "even" and "odd" of
/// each token ("parity", padded like the text) and two numbers for each token ("both").
MatrixRows::Matrices tiny_texts(std::int64_t rows = 20, std::uint64_t seed = 1,
                                at::ScalarType dtype = at::kFloat);

/// A data provider of such matrices:
///
///     TinyData data([] { return tiny_regression(); });
///     data.open({});
/// What a fake does otherwise it overrides.
class TinyData : public DataProvider {
 public:
  using Make = std::function<MatrixRows::Matrices()>;

  explicit TinyData(Make make) : make_(std::move(make)) {}

 protected:
  const MatrixRows& rows() const { return *rows_; }

  void* do_ask(std::string_view interface_id) override {
    return interface_id == RowReader::kInterface && rows_ ? static_cast<RowReader*>(rows_.get())
                                                          : nullptr;
  }

  void do_open(const OpenRequest& request) override {
    TREADLE_EXPECTS(request.purpose == OpenRequest::Purpose::kTrain || loaded_,
                    "evaluating and predicting need the state of the training's data");
    MatrixRows::Matrices matrices = make_();
    if (request.purpose == OpenRequest::Purpose::kPredict) {
      matrices.spec.targets.clear();
      matrices.targets.clear();
      matrices.position_weights.clear();
    }
    rows_ = std::make_unique<MatrixRows>(std::move(matrices));
  }
  const DataSpec& do_spec() const override { return rows_->spec(); }
  std::string do_content_hash() const override { return rows_->content_hash(); }

  StateDict do_state() const override {
    StateDict state;
    state.put("spec", to_json(spec()));
    return state;
  }
  void do_load_state(const StateDict& state) override {
    loaded_ = data_spec_from_json(state.value("spec"));
  }

 private:
  Make make_;
  std::unique_ptr<MatrixRows> rows_;
  std::optional<DataSpec> loaded_;
};

}  // namespace treadle::testing
