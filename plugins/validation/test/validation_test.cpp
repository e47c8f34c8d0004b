#include <array>
#include <cmath>
#include <utility>

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/testing/data/validation_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;
using Rows = std::vector<std::int64_t>;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

std::unique_ptr<CrossValidator> make(const char* component, const Json& parameters) {
  return plugin().make<CrossValidator>(component, parameters);
}

ValidationCase k_fold(std::string name, const Json& parameters) {
  return {std::move(name), [=] { return make("k_fold", parameters); }};
}

ValidationCase hold_out(std::string name, const Json& parameters) {
  ValidationCase one{std::move(name), [=] { return make("hold_out", parameters); }};
  one.covers_every_row = false;
  return one;
}

ValidationCase not_random(ValidationCase one) {
  one.is_random = false;
  return one;
}

ValidationCase stratified(ValidationCase one) {
  one.stratifies = true;
  return one;
}

ValidationCase by_time(ValidationCase one) {
  one.orders_by_time = true;
  return one;
}

ValidationCase for_classes(ValidationCase one) {
  one.takes_numbers = false;
  return one;
}

ValidationCase with_test(ValidationCase one) {
  one.has_test_rows = true;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Validation, ValidationContract,
    ::testing::Values(
        stratified(k_fold("KFold", Json::object())), k_fold("KFoldPlain", {{"stratify", false}}),
        for_classes(stratified(k_fold("KFoldStratified", {{"stratify", true}, {"folds", 3}}))),
        stratified(not_random(k_fold("KFoldInOrder", {{"shuffle", false}, {"refit", false}}))),
        stratified(not_random(k_fold("KFoldSeed", {{"seed", 7}}))),
        stratified(hold_out("HoldOut", Json::object())),
        stratified(hold_out("HoldOutRows", {{"rows", 7}})),
        hold_out("HoldOutRandom", {{"strategy", "random"}, {"fraction", "35%"}}),
        not_random(hold_out("HoldOutSeed", {{"strategy", "random"}, {"seed", 1}})),
        for_classes(stratified(hold_out("HoldOutStratified", {{"strategy", "stratified"}}))),
        by_time(not_random(hold_out("HoldOutChronological", {{"strategy", "chronological"}}))),
        with_test(stratified(k_fold("KFoldTest", {{"test_fraction", 0.2}}))),
        with_test(not_random(stratified(k_fold("KFoldTestInOrder",
                                               {{"shuffle", false}, {"test_fraction", "10%"}})))),
        with_test(k_fold("KFoldTestLatest", {{"stratify", false},
                                             {"test_fraction", 0.1},
                                             {"test_strategy", "chronological"}})),
        with_test(stratified(hold_out("HoldOutTest", {{"test_fraction", 0.25}}))),
        with_test(hold_out("HoldOutTestRandom",
                           {{"strategy", "random"}, {"rows", 9}, {"test_fraction", 0.25}})),
        with_test(by_time(not_random(hold_out("HoldOutTestChronological",
                                              {{"strategy", "chronological"},
                                               {"test_fraction", 0.25}}))))),
    CaseName());

SplitRequest request_for(const Rows& targets, std::int64_t class_count) {
  SplitRequest request;
  request.rows = static_cast<std::int64_t>(targets.size());
  std::vector<std::string> names;
  for (std::int64_t c = 0; c < class_count; ++c)
    names.push_back("class-" + std::to_string(c));
  request.targets = {class_target("kind", std::move(names))};
  request.target_values = {at::tensor(targets, at::kLong)};
  request.random = RandomStreams(17);
  return request;
}

SplitRequest numbers(std::int64_t rows) {
  SplitRequest request;
  request.rows = rows;
  request.targets = {number_target("price")};
  request.target_values = {at::arange(rows, at::kFloat).view({rows, 1})};
  request.random = RandomStreams(17);
  return request;
}

RowList test_of(const ValidationPlan& plan) {
  return plan.refit ? plan.refit->test : plan.folds.front().test;
}

template <typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::int64_t> counts(const SplitRequest& request, const RowList& rows) {
  std::vector<std::int64_t> counts(request.targets.back().class_names.size(), 0);
  for (const std::int64_t row : rows)
    ++counts[static_cast<std::size_t>(request.target_values.back()[row].item<std::int64_t>())];
  return counts;
}

// [v.tolist() for _, v in sklearn.model_selection.KFold(4).split(range(10))]
TEST(KFold, WithoutShufflingEqualsScikitLearns) {
  const auto plan = make("k_fold", {{"folds", 4}, {"shuffle", false}})->plan(numbers(10));

  ASSERT_EQ(plan.folds.size(), 4U);
  EXPECT_THAT(plan.folds[0].validation, ElementsAre(0, 1, 2));
  EXPECT_THAT(plan.folds[1].validation, ElementsAre(3, 4, 5));
  EXPECT_THAT(plan.folds[2].validation, ElementsAre(6, 7));
  EXPECT_THAT(plan.folds[3].validation, ElementsAre(8, 9));
  EXPECT_THAT(plan.folds[1].training, ElementsAre(0, 1, 2, 6, 7, 8, 9));
  EXPECT_EQ(plan.folds[0].name, "fold-1");
  EXPECT_EQ(plan.folds[3].name, "fold-4");
  EXPECT_TRUE(plan.refit);
}

// y = [1,1,0,2,1,0,2,2,1,0,1,1,2,0,1,1,0,2,2]
// [v.tolist() for _, v in sklearn.model_selection.StratifiedKFold(3).split(y, y)]
TEST(KFold, StratifiedWithoutShufflingEqualsScikitLearns) {
  const SplitRequest request =
      request_for({1, 1, 0, 2, 1, 0, 2, 2, 1, 0, 1, 1, 2, 0, 1, 1, 0, 2, 2}, 3);

  const auto plan =
      make("k_fold", {{"folds", 3}, {"shuffle", false}, {"refit", false}})->plan(request);

  ASSERT_EQ(plan.folds.size(), 3U);
  EXPECT_THAT(plan.folds[0].validation, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(plan.folds[1].validation, ElementsAre(7, 8, 9, 10, 11, 12));
  EXPECT_THAT(plan.folds[2].validation, ElementsAre(13, 14, 15, 16, 17, 18));
  EXPECT_FALSE(plan.refit);
}

TEST(KFold, SizesDifferByOneAtMost) {
  for (const std::int64_t rows : {10, 11, 12, 13, 97}) {
    for (const std::int64_t folds : {2, 3, 5, 10}) {
      for (const bool shuffle : {false, true}) {
        const auto plan =
            make("k_fold", {{"folds", folds}, {"shuffle", shuffle}})->plan(numbers(rows));
        for (const Fold& fold : plan.folds) {
          EXPECT_GE(static_cast<std::int64_t>(fold.validation.size()), rows / folds);
          EXPECT_LE(static_cast<std::int64_t>(fold.validation.size()), (rows + folds - 1) / folds);
        }
      }
    }
  }
}

TEST(KFold, StratifiedFoldsHaveTheirShareOfEachClassAndOfAll) {
  Rows targets;
  for (std::int64_t i = 0; i < 101; ++i)
    targets.push_back(i % 13 == 0 ? 2 : i % 3 == 0 ? 1 : 0);
  const SplitRequest request = request_for(targets, 3);
  Rows all(targets.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<std::int64_t>(i);
  const std::vector<std::int64_t> totals = counts(request, all);

  for (const std::int64_t folds : {2, 3, 7}) {
    for (const Fold& fold : make("k_fold", {{"folds", folds}})->plan(request).folds) {
      const std::vector<std::int64_t> here = counts(request, fold.validation);
      for (std::size_t c = 0; c < totals.size(); ++c) {
        EXPECT_GE(here[c], totals[c] / folds) << fold.name;
        EXPECT_LE(here[c], (totals[c] + folds - 1) / folds) << fold.name;
      }
      EXPECT_LE(std::abs(static_cast<std::int64_t>(fold.validation.size()) - 101 / folds), 1);
    }
  }
}

TEST(KFold, ShufflesWithinClassesToo) {
  Rows targets(40);
  for (std::size_t i = 0; i < targets.size(); ++i)
    targets[i] = i < 20 ? 0 : 1;
  const SplitRequest request = request_for(targets, 2);

  const Fold shuffled = make("k_fold", {{"folds", 4}})->plan(request).folds[0];
  const Fold in_order = make("k_fold", {{"folds", 4}, {"shuffle", false}})->plan(request).folds[0];

  EXPECT_THAT(in_order.validation, ElementsAre(0, 1, 2, 3, 4, 20, 21, 22, 23, 24));
  EXPECT_NE(shuffled.validation, in_order.validation);
  EXPECT_THAT(counts(request, shuffled.validation), ElementsAre(5, 5));
}

/// Number, classes of each time step, and two targets with one class per row: 0 0 0 0 1 1 1 1 and
/// 0 1 0 1 0 1 0 1.
SplitRequest several() {
  SplitRequest request = numbers(8);
  request.targets.push_back(class_target("steps", {"a", "b"}, {3}));
  request.target_values.push_back(at::arange(24).remainder(2).view({8, 3}));
  request.targets.push_back(class_target("first", {"a", "b"}));
  request.target_values.push_back(at::arange(8).ge(4).to(at::kLong));
  request.targets.push_back(class_target("second", {"a", "b"}));
  request.target_values.push_back(at::arange(8).remainder(2));
  return request;
}

// By hand: in order, each of the two folds has two rows of each class, the first ones first.
TEST(KFold, StratifiesByTheFirstTargetWithOneClassPerRowOrTheNamedOne) {
  const auto first_fold = [](const Json& by) {
    Json parameters = {{"folds", 2}, {"shuffle", false}};
    parameters.update(by);
    return make("k_fold", parameters)->plan(several()).folds[0].validation;
  };

  EXPECT_THAT(first_fold(Json::object()), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(first_fold({{"stratify_by", "first"}}), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(first_fold({{"stratify_by", "second"}}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(first_fold({{"stratify", false}}), ElementsAre(0, 1, 2, 3));
}

TEST(HoldOut, StratifiesByTheNamedTarget) {
  const SplitRequest request = several();  // counts() looks at its last target, "second"
  for (const char* strategy : {"auto", "stratified"}) {
    const Json parameters = {{"strategy", strategy}, {"fraction", 0.5}, {"stratify_by", "second"}};

    const Fold fold = make("hold_out", parameters)->plan(request).folds[0];

    EXPECT_THAT(counts(request, fold.validation), ElementsAre(2, 2));
  }
}

TEST(KFold, NamesTargetsThatCannotBeStratifiedBy) {
  const auto by = [](const char* component, Json parameters) {
    return message_of([&] { make(component, parameters)->plan(several()); });
  };

  EXPECT_EQ(by("k_fold", {{"folds", 2}, {"stratify_by", "secnd"}}),
            "validation has \"stratify_by\": \"secnd\", which is no target; the targets are "
            "\"price\", \"steps\", \"first\", \"second\"; did you mean \"second\"?");
  EXPECT_EQ(by("hold_out", {{"stratify_by", "steps"}}),
            "validation has \"stratify_by\": \"steps\", which needs a target with one class per "
            "row; the targets are \"price\" (numbers), \"steps\" (classes at each position), "
            "\"first\" (classes), \"second\" (classes)");
  EXPECT_EQ(by("hold_out", {{"strategy", "random"}, {"stratify_by", "first"}}),
            "/stratify_by: has no effect with \"strategy\": \"random\"");
  EXPECT_EQ(by("k_fold", {{"stratify", false}, {"stratify_by", "first"}}),
            "/stratify_by: has no effect with \"stratify\": false");
}

TEST(KFold, IgnoresClassesThatHaveNoRows) {
  const auto plan = make("k_fold", {{"folds", 2}})->plan(request_for({0, 2, 0, 2}, 3));

  EXPECT_EQ(plan.folds.size(), 2U);
}

TEST(KFold, SaysWhyItCannotSplit) {
  EXPECT_EQ(message_of([] {
              make("k_fold", {{"folds", 200}})->plan(numbers(150));
            }),
            "\"folds\": 200 requires at least as many rows, got 150 rows");
  EXPECT_EQ(
      message_of([] {
        make("k_fold", {{"folds", 3}})->plan(request_for({0, 0, 0, 0, 1, 1}, 2));
      }),
      "class \"class-1\" has 2 rows, but 3 folds require at least one of each class per fold; "
      "take fewer folds or set \"stratify\": false");
  EXPECT_EQ(message_of([] {
              make("k_fold", {{"stratify", true}})->plan(numbers(150));
            }),
            "validation has \"stratify\": true, which needs a target with one class per row; the "
            "target is \"price\" (numbers)");
  EXPECT_EQ(message_of([] {
              make("k_fold", {{"folds", 3}, {"stratify", false}})
                  ->plan(request_for({0, 0, 0, 0, 1, 1}, 2));
            }),
            "no error");
}

TEST(HoldOut, KeepsAFifthOfTheRowsAndOfEachClass) {
  Rows targets(150);
  for (std::size_t i = 0; i < targets.size(); ++i)
    targets[i] = static_cast<std::int64_t>(i / 50);
  const SplitRequest request = request_for(targets, 3);

  const auto plan = make("hold_out", Json::object())->plan(request);

  ASSERT_EQ(plan.folds.size(), 1U);
  EXPECT_EQ(plan.folds[0].name, "hold-out");
  EXPECT_FALSE(plan.refit);
  EXPECT_EQ(plan.folds[0].validation.size(), 30U);
  EXPECT_EQ(plan.folds[0].training.size(), 120U);
  EXPECT_THAT(counts(request, plan.folds[0].validation), ElementsAre(10, 10, 10));
}

TEST(HoldOut, RoundsToWholeRowsAndLeavesBothPartsOne) {
  const auto size = [](const Json& parameters, std::int64_t rows) {
    return make("hold_out", parameters)->plan(numbers(rows)).folds[0].validation.size();
  };

  EXPECT_EQ(size({{"fraction", 0.25}}, 10), 3U);  // 2.5 is rounded up
  EXPECT_EQ(size({{"fraction", "10%"}}, 14), 1U);
  EXPECT_EQ(size({{"fraction", 0.01}}, 10), 1U);
  EXPECT_EQ(size({{"fraction", 0.99}}, 10), 9U);
  EXPECT_EQ(size({{"rows", 4}}, 10), 4U);
}

TEST(HoldOut, RefusesAFractionBesideRows) {
  try {
    make("hold_out", {{"fraction", 0.25}, {"rows", 4}});
    ADD_FAILURE() << "one of them would change nothing";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "/fraction: has no effect beside \"rows\"; leave one of them out");
  }
}

TEST(HoldOut, StratifiedSharesAreWithinOneRowAndAddUp) {
  Rows targets;
  for (std::int64_t i = 0; i < 103; ++i)
    targets.push_back(i % 11 == 0 ? 3 : i % 5 == 0 ? 2 : i % 2);
  const SplitRequest request = request_for(targets, 4);
  for (const double fraction : {0.1, 0.2, 0.33, 0.5, 0.77}) {
    const Fold fold = make("hold_out", {{"fraction", fraction}})->plan(request).folds[0];

    const std::vector<std::int64_t> held = counts(request, fold.validation);
    const std::vector<std::int64_t> rest = counts(request, fold.training);
    for (std::size_t c = 0; c < held.size(); ++c) {
      const double share = fraction * static_cast<double>(held[c] + rest[c]);
      EXPECT_LE(std::abs(static_cast<double>(held[c]) - share), 1) << fraction << " class " << c;
    }
    EXPECT_EQ(static_cast<std::int64_t>(fold.validation.size()), std::llround(fraction * 103));
  }
}

TEST(HoldOut, LeavesAClassOfOneRowToTraining) {
  const SplitRequest request = request_for({0, 0, 0, 0, 1, 1, 1, 1, 2}, 3);

  for (const double fraction : {0.1, 0.5}) {
    const Fold fold = make("hold_out", {{"fraction", fraction}})->plan(request).folds[0];
    EXPECT_EQ(counts(request, fold.validation)[2], 0);
  }
}

TEST(HoldOut, TakesAnyRowsWhereEachClassHasOne) {
  const Fold fold = make("hold_out", Json::object())->plan(request_for({0, 1, 2}, 3)).folds[0];

  EXPECT_EQ(fold.validation.size(), 1U);
}

TEST(HoldOut, ChronologicalValidatesOnTheLatestRows) {
  SplitRequest request = numbers(5);
  const auto validator = make("hold_out", {{"strategy", "chronological"}, {"rows", 2}});

  const Fold in_order = validator->plan(request).folds[0];
  request.timestamps = at::tensor({30., 10., 50., 10., 20.}, at::kDouble);
  const Fold by_time = validator->plan(request).folds[0];

  EXPECT_THAT(in_order.training, ElementsAre(0, 1, 2));
  EXPECT_THAT(in_order.validation, ElementsAre(3, 4));
  EXPECT_THAT(by_time.training, ElementsAre(1, 3, 4));
  EXPECT_THAT(by_time.validation, ElementsAre(0, 2));
}

TEST(HoldOut, FractionsAreOfAllRows) {
  const auto plan =
      make("hold_out", {{"fraction", 0.2}, {"test_fraction", 0.3}})->plan(numbers(50));

  EXPECT_EQ(test_of(plan).size(), 15U);
  EXPECT_EQ(plan.folds[0].validation.size(), 10U);
  EXPECT_EQ(plan.folds[0].training.size(), 25U);
}

TEST(HoldOut, ChronologicalTestsOnTheLatestRowsAndValidatesOnThoseBefore) {
  SplitRequest request = numbers(6);
  request.timestamps = at::tensor({30., 10., 50., 60., 20., 40.}, at::kDouble);
  const Json parameters = {{"strategy", "chronological"}, {"rows", 1}, {"test_fraction", "33%"}};

  const auto plan = make("hold_out", parameters)->plan(request);

  EXPECT_THAT(plan.folds[0].training, ElementsAre(1, 4, 0));
  EXPECT_THAT(plan.folds[0].validation, ElementsAre(5));
  EXPECT_THAT(test_of(plan), ElementsAre(2, 3));
}

TEST(KFold, TestsOnTheLatestRowsWhereItIsTold) {
  const Json parameters = {
      {"folds", 2}, {"shuffle", false}, {"test_fraction", 0.5}, {"test_strategy", "chronological"}};
  SplitRequest request = numbers(8);
  request.timestamps = at::tensor({0., 7., 1., 6., 2., 5., 3., 4.}, at::kDouble);

  const auto plan = make("k_fold", parameters)->plan(request);

  EXPECT_THAT(test_of(plan), ElementsAre(7, 5, 3, 1));
  EXPECT_THAT(plan.folds[0].validation, ElementsAre(0, 2));
  EXPECT_THAT(plan.folds[1].validation, ElementsAre(4, 6));
}

TEST(KFold, WithoutShufflingTheLastOfEachClassTest) {
  const auto plan = make("k_fold", {{"folds", 2}, {"shuffle", false}, {"test_fraction", 0.25}})
                        ->plan(request_for({0, 0, 0, 0, 1, 1, 1, 1}, 2));

  EXPECT_THAT(test_of(plan), ElementsAre(3, 7));
  EXPECT_THAT(plan.folds[0].validation, ElementsAre(0, 1, 4));
}

TEST(TestRows, StratifyByTheNamedTargetAlsoWhereValidationDoesNot) {
  const SplitRequest request = several();  // counts() looks at its last target, "second"
  for (const Json& parameters :
       {Json{{"strategy", "random"}}, Json{{"strategy", "chronological"}}}) {
    Json all = parameters;
    all.update(
        {{"test_fraction", 0.5}, {"test_strategy", "stratified"}, {"stratify_by", "second"}});

    EXPECT_THAT(counts(request, test_of(make("hold_out", all)->plan(request))), ElementsAre(2, 2));
  }
}

TEST(TestRows, WhatHasNoEffectIsRefused) {
  const auto by = [](const char* component, const Json& parameters) {
    return message_of([&] { make(component, parameters)->plan(numbers(30)); });
  };

  EXPECT_EQ(by("hold_out", {{"test_strategy", "random"}}),
            "/test_strategy: has no effect without \"test_fraction\", the part of the rows to test "
            "on");
  EXPECT_EQ(by("hold_out", {{"fraction", 0.6}, {"test_fraction", 0.4}}),
            "/test_fraction: and \"fraction\" add up to all rows or more, which leaves none to "
            "train on");
  EXPECT_EQ(by("k_fold", {{"test_fraction", 0.2}, {"refit", false}}),
            "/test_fraction: sets rows aside to test the model on, and \"refit\": false leaves no "
            "single model");
}

TEST(TestRows, WhatIsMissingIsNamed) {
  const auto by = [](const char* component, const Json& parameters) {
    return message_of([&] { make(component, parameters)->plan(numbers(30)); });
  };

  EXPECT_EQ(by("k_fold", {{"test_fraction", 0.2}, {"test_strategy", "stratified"}}),
            "validation has \"test_strategy\": \"stratified\", which needs a target with one class "
            "per row; the target is \"price\" (numbers)");
  EXPECT_EQ(
      by("k_fold", {{"folds", 25}, {"test_fraction", 0.2}}),
      "\"folds\": 25 requires at least as many rows, got 24 rows; 6 of the 30 rows are set aside "
      "for the test");
  EXPECT_EQ(by("hold_out", {{"rows", 24}, {"test_fraction", 0.2}}),
            "\"rows\": 24 leaves none for training: expected fewer than the 24 rows; 6 of "
            "the 30 rows are set aside for the test");
}

/// Twelve samples of a series; each is to predict the thirty rows after its thirty.
class LongTargets final : public SampleReader {
 public:
  LongTargets() : rows_(table()) {}

 private:
  static MatrixRows::Matrices table() {
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {{"features", {1}, {{"x", {}, false}}}};
    matrices.spec.targets = {number_target("price")};
    matrices.inputs = {at::arange(12, at::kFloat).unsqueeze(1)};
    matrices.targets = matrices.inputs;
    return matrices;
  }
  SourceRows do_source_rows(std::int64_t sample) const override {
    return {{sample, sample + 30}, {sample + 30, sample + 60}};
  }
  const DataSpec& do_spec() const override { return rows_.spec(); }
  std::int64_t do_rows() const override { return rows_.rows(); }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    rows_.gather(rows, out);
  }
  at::Tensor do_targets(std::size_t target) const override { return rows_.targets(target); }

  const MatrixRows rows_;
};

TEST(HoldOut, SaysThatNoSampleIsLeftWhichTouchesNoTargetOfThoseThatValidate) {
  const LongTargets samples;
  SplitRequest request = numbers(12);
  request.samples = &samples;

  EXPECT_EQ(
      message_of([&] {
        make("hold_out", {{"strategy", "chronological"}, {"rows", 2}})->plan(request);
      }),
      "every training row of hold-out would tell the target of a row that is held out, so none "
      "is left; hold fewer rows out, shorten the windows or the labels, or take more rows");
}

TEST(HoldOut, SaysWhyItCannotSplit) {
  EXPECT_EQ(message_of([] {
              make("hold_out", {{"rows", 150}})->plan(numbers(150));
            }),
            "\"rows\": 150 leaves none for training: expected fewer than the 150 rows");
  EXPECT_EQ(
      message_of([] {
        make("hold_out", {{"strategy", "stratified"}})->plan(numbers(150));
      }),
      "validation has \"strategy\": \"stratified\", which needs a target with one class per row; "
      "the target is \"price\" (numbers)");
  EXPECT_EQ(message_of([] {
              make("hold_out", {{"strategy", "stratified"}})->plan(request_for({0, 0, 1, 0}, 2));
            }),
            "class \"class-1\" has 1 row, which cannot be in both parts; set \"strategy\": "
            "\"random\"");
}

}  // namespace
}  // namespace treadle::testing
