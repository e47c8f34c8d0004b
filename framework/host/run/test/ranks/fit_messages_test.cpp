#include "ranks/fit_messages.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/base/random.h>

namespace treadle::internal {
namespace {

/// As it arrives.
nlohmann::json sent(const nlohmann::json& message) {
  return nlohmann::json::from_cbor(nlohmann::json::to_cbor(message));
}

TEST(FitMessages, AFitHasItsRandomStreams) {
  const FitId id = FitId("trials", 4, 5).child("7", 7, 20).child("fold-2", 1, 3);
  const FitId received = fit_id_from(sent(to_json(id)));
  EXPECT_EQ(received, id);
  EXPECT_EQ(received.indices(), id.indices());
  EXPECT_EQ(received.count(), 3);
  EXPECT_EQ(received.random(RandomStreams(5)).seed("init"),
            id.random(RandomStreams(5)).seed("init"));
}

TEST(FitMessages, AFitHasItsRowsAndFlags) {
  const FitRows rows{.training = RowList({5, 3, 9, 10, 11}),
                     .validation = RowList::range(20, 1'000'000),
                     .fixed_epochs = 7};
  PlannedFit fit{FitId("fold-1", 0, 3), std::make_shared<const FitRows>(rows)};
  fit.keeps_weights = true;
  fit.is_judged = true;
  fit.start = WarmStart{"fold-0", WarmStart::From::kWeights};
  fit.baseline = "/baselines/0";
  const PlannedFit received =
      planned_fit_from(sent(to_json(fit)), [](const nlohmann::json&) { return nullptr; });
  EXPECT_EQ(received.rows->training, rows.training);
  EXPECT_EQ(received.rows->validation, rows.validation);
  EXPECT_TRUE(received.rows->test.empty());
  EXPECT_EQ(received.rows->fixed_epochs, 7);
  EXPECT_TRUE(received.keeps_weights);
  EXPECT_TRUE(received.is_judged);
  EXPECT_FALSE(received.is_result);
  EXPECT_EQ(received.start->fit, "fold-0");
  EXPECT_EQ(received.baseline, fit.baseline);
}

TEST(FitMessages, NumbersKeepTheirBitsAndStates) {
  EpochSummary epoch;
  epoch.epoch = 3;
  epoch.train_loss = 0.1;
  epoch.val_loss = Number::undefined("no rows");
  epoch.metrics = {{"a,b", std::nextafter(1.0, 2.0), Direction::kHigherIsBetter},
                   {"inf", std::numeric_limits<double>::infinity(), Direction::kNone},
                   {"nan", std::numeric_limits<double>::quiet_NaN(), Direction::kNone}};
  epoch.decisions = {"rate halved"};
  const EpochSummary received = epoch_from(sent(to_json(epoch)));
  EXPECT_EQ(received.train_loss.value(), 0.1);
  EXPECT_FALSE(received.epochs);
  EXPECT_EQ(received.val_loss->why(), "no rows");
  EXPECT_EQ(received.metrics[0].name, "a,b");
  EXPECT_EQ(received.metrics[0].value.value(), std::nextafter(1.0, 2.0));
  EXPECT_EQ(received.metrics[0].direction, Direction::kHigherIsBetter);
  EXPECT_TRUE(std::isinf(received.metrics[1].value));
  EXPECT_TRUE(std::isnan(received.metrics[2].value.value()));
  EXPECT_FALSE(received.metrics[2].value.is_undefined());
  EXPECT_EQ(received.decisions, epoch.decisions);
}

template <typename Kind>
void expect_same(const Kind& error) {
  try {
    std::rethrow_exception(error_from(sent(to_json(std::make_exception_ptr(error)))));
  } catch (const Kind& received) {
    EXPECT_STREQ(received.what(), error.what());
    EXPECT_EQ(received.kind(), error.kind());
  }
}

TEST(FitMessages, AnErrorIsOfItsKind) {
  expect_same(TrainingError("a"));
  expect_same(DataError("b"));
  expect_same(StorageError("c"));
  expect_same(PluginError("d"));
  expect_same(Interrupted("e"));
  expect_same(DocumentError({{{"my.json", 3, 1}, "/model", "wrong"}, {{}, "/loss", "bad"}}));
}

}  // namespace
}  // namespace treadle::internal
