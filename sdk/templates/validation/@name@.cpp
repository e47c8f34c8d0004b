#include <treadle/sdk.h>

#include <algorithm>

namespace {

/// Blocked cross-validation for rows that are not independent of their neighbours (Bergmeir &
/// Benítez, "On the use of cross-validation for time series predictor evaluation", 2012; the gap is
/// the purging of López de Prado, "Advances in Financial Machine Learning", 2018, chapter 7).
///
/// Rows are in the order of their timestamps, those without any in the order of the data. Block k
/// of n holds the places [k * rows / n, (k + 1) * rows / n); sizes differ by one at most.
/// Stateless: the plan is a function of the request.
class @Name@ final : public treadle::CrossValidator {
 public:
  explicit @Name@(const treadle::Config& config)
      : folds_(config.get<std::int64_t>("folds")),
        gap_(config.get<std::int64_t>("gap")),
        refit_(config.get<bool>("refit")) {}

 private:
  treadle::ValidationPlan do_plan(const treadle::SplitRequest& request) const override {
    if (folds_ > request.rows) {
      throw treadle::DataError("\"folds\": " + std::to_string(folds_) +
                               " requires at least as many rows, got " +
                               std::to_string(request.rows) + " rows");
    }
    const treadle::RowList order = treadle::rows_in_time(request);
    treadle::ValidationPlan plan;
    if (refit_)
      plan.refit = treadle::refit_on(treadle::all_rows_but(request.rows, {}));
    for (std::int64_t k = 0; k < folds_; ++k) {
      const std::int64_t begin = k * request.rows / folds_;
      const std::int64_t end = (k + 1) * request.rows / folds_;
      plan.folds.push_back(fold(order, begin, end, "block-" + std::to_string(k + 1)));
    }
    return plan;
  }

  treadle::Fold fold(const treadle::RowList& order, std::int64_t begin, std::int64_t end,
                     std::string name) const {
    const auto count = static_cast<std::int64_t>(order.size());
    const std::int64_t before = std::max<std::int64_t>(0, begin - gap_);
    const std::int64_t after = std::min(count, end + gap_);
    treadle::Fold fold;
    fold.name = std::move(name);
    fold.validation = ascending(order, {begin, end}, {});
    fold.training = ascending(order, {0, before}, {after, count});
    if (fold.training.empty()) {
      throw treadle::DataError("validation leaves no row to train " + fold.name +
                               " with; take a smaller \"gap\" than " + std::to_string(gap_) +
                               ", or more folds");
    }
    return fold;
  }

  /// The rows at some positions, sorted.
  static treadle::RowList ascending(const treadle::RowList& order, const treadle::RowRange& first,
                                    const treadle::RowRange& second) {
    const auto at = [&](const treadle::RowRange& positions) {
      return order.at(treadle::RowList::range(positions.begin, positions.end));
    };
    return treadle::rows_of_both(at(first), at(second));
  }

  std::int64_t folds_;
  std::int64_t gap_;
  bool refit_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
