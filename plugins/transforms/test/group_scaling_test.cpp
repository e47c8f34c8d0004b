// Statistics for each group beside scikit-learn, fitted group by group.
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <treadle/base/problem.h>
#include <treadle/core/data/abilities/fits_groups.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/core/data/transform.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>

namespace treadle::testing {
namespace {

using ::testing::HasSubstr;
using GroupParameters = nlohmann::json;

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// As in group_scaling_reference.py: groups 7, 2 and 40, which lie one after the other.
const std::vector<std::int64_t> kGroups = {7, 7, 7, 7, 7, 2, 2, 2, 2, 40, 40, 40, 40, 40, 40};
const std::vector<double> kNumbers = {
    1000, 0.5,     1200,  0.25,    900,       kNoNumber, 1700, 1.5, 1100, 2.5,
    0.1,  -3,      0.15,  -3,      0.05,      -3,        0.4,  -3,  -20,  1e6,
    -22,  1e6 + 1, -19.5, 1e6 + 4, kNoNumber, 1e6 - 2,   -30,  1e6, -21,  1e6 + 40};
constexpr auto kCount = std::int64_t{15};

class GroupScaling : public ::testing::Test {
 protected:
  /// Two columns; the target is the first, with 5 where that has no number.
  static MatrixRows::Matrices matrices() {
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {
        {"features", {2}, {{"a", {}, true}, {"b", {}, true}}, Role::kFeatures, at::kDouble}};
    matrices.spec.targets = {number_target("y")};
    matrices.inputs = {at::tensor(kNumbers, at::kDouble).view({kCount, 2})};
    matrices.targets = {matrices.inputs[0].slice(1, 0, 1).nan_to_num(5).contiguous()};
    matrices.groups = at::tensor(kGroups, at::kLong);
    return matrices;
  }

  static const PluginUnderTest& plugin() {
    static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
    return plugin;
  }

  static std::unique_ptr<Transform> fitted(const char* name, const GroupParameters& parameters,
                                           const RowReader& reader, std::int64_t begin,
                                           std::int64_t end) {
    auto transform = plugin().make<Transform>(name, parameters);
    transform->fit(reader, RowList::range(begin, end));
    return transform;
  }
  static std::unique_ptr<Transform> fitted(const char* name, const GroupParameters& parameters,
                                           const RowReader& reader) {
    return fitted(name, parameters, reader, 0, reader.rows());
  }

  static Batch applied(const Transform& transform, Batch batch) {
    transform.apply(batch, ApplyContext{});
    return batch;
  }
  static Batch applied(const Transform& transform, const RowReader& reader) {
    return applied(transform, gathered(reader, 0, reader.rows()));
  }

  static void expect_near(const at::Tensor& got, const std::vector<double>& expected) {
    const at::Tensor flat = got.to(at::kDouble).contiguous();
    ASSERT_EQ(flat.numel(), static_cast<std::int64_t>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double value = flat.data_ptr<double>()[i];
      EXPECT_EQ(std::isnan(value), std::isnan(expected[i])) << i;
      if (!std::isnan(expected[i])) {
        EXPECT_NEAR(value, expected[i], 1e-9) << i;
      }
    }
  }
};

// /usr/bin/python3 plugins/transforms/test/group_scaling_reference.py (scikit-learn 1.2)
TEST_F(GroupScaling, EqualsScikitLearnGroupByGroup) {
  const MatrixRows reader(matrices());
  const std::vector<std::tuple<const char*, GroupParameters, std::vector<double>>> cases = {
      {"standardize", {{"by", "group"}}, {-0.6461623427559643, -0.772048646977956,
                                          0.0717958158617738,  -1.0527936095153947,
                                          -1.0051414220648334, kNoNumber,
                                          1.866691212406119,   0.3509312031717982,
                                          -0.2871832634470952, 1.4739110533215525,
                                          -0.5570860145311554, 0.0,
                                          -0.1856953381770518, 0.0,
                                          -0.9284766908852591, 0.0,
                                          1.6712580435934667,  0.0,
                                          0.6498440561375454,  -0.4844935869522833,
                                          0.12996881122750908, -0.41688983063299395,
                                          0.7798128673650545,  -0.21407856167512607,
                                          kNoNumber,           -0.6197010995908618,
                                          -1.949532168412636,  -0.4844935869522833,
                                          0.38990643368252725, 2.2196566658192887}},
      {"min_max",
       {{"by", "group"}, {"range", {-1, 1}}},
       {-0.75,
        -0.7777777777777779,
        -0.25,
        -1.0,
        -1.0,
        kNoNumber,
        1.0,
        0.11111111111111094,
        -0.5,
        1.0,
        -0.7142857142857142,
        -1.0,
        -0.4285714285714286,
        -1.0,
        -0.9999999999999999,
        -1.0,
        1.0,
        -1.0,
        0.9047619047619042,
        -0.9047619047632907,
        0.5238095238095237,
        -0.857142857144936,
        0.9999999999999996,
        -0.714285714289872,
        kNoNumber,
        -1.0,
        -1.0,
        -0.9047619047632907,
        0.7142857142857135,
        1.0}},
      {"robust",
       {{"by", "group"}},
       {-0.5,
        -0.38095238095238093,
        0.5,
        -0.5714285714285714,
        -1.0,
        kNoNumber,
        3.0,
        0.38095238095238093,
        0.0,
        1.1428571428571428,
        -0.19999999999999998,
        0.0,
        0.19999999999999998,
        0.0,
        -0.6000000000000001,
        0.0,
        2.2000000000000006,
        0.0,
        0.5,
        -0.15384615384615385,
        -0.5,
        0.15384615384615385,
        0.75,
        1.0769230769230769,
        kNoNumber,
        -0.7692307692307693,
        -4.5,
        -0.15384615384615385,
        0.0,
        12.153846153846153}},
      {"robust",
       {{"by", "group"}, {"quantile_range", {10, 90}}},
       {-0.17857142857142858,
        -0.2666666666666666,
        0.17857142857142858,
        -0.39999999999999997,
        -0.35714285714285715,
        kNoNumber,
        1.0714285714285714,
        0.2666666666666666,
        0.0,
        0.7999999999999999,
        -0.0961538461538461,
        0.0,
        0.0961538461538461,
        0.0,
        -0.2884615384615384,
        0.0,
        1.0576923076923075,
        0.0,
        0.1408450704225352,
        -0.021739130434782608,
        -0.1408450704225352,
        0.021739130434782608,
        0.21126760563380279,
        0.15217391304347827,
        kNoNumber,
        -0.10869565217391304,
        -1.2676056338028165,
        -0.021739130434782608,
        0.0,
        1.7173913043478262}},
      {"robust",
       {},
       {1.0050257570046488,
        -1.4999967187571778e-06,
        1.2060560371906017,
        -1.749996171883374e-06,
        0.9045106169116723,
        kNoNumber,
        1.7086317376554843,
        -4.999989062523926e-07,
        1.1055408970976253,
        4.999989062523926e-07,
        -2.512878502324412e-05,
        -4.999989062523925e-06,
        2.512878502324412e-05,
        -4.999989062523925e-06,
        -7.538635506973238e-05,
        -4.999989062523925e-06,
        0.00027641663525568543,
        -4.999989062523925e-06,
        -0.020228671943711522,
        0.9999958125091601,
        -0.02223897474557105,
        0.9999968125069726,
        -0.01972609624324664,
        0.9999998125004101,
        kNoNumber,
        0.9999938125135351,
        -0.030280185953009173,
        0.9999958125091601,
        -0.021233823344641287,
        1.0000358124216604}}};
  for (const auto& [name, parameters, expected] : cases) {
    SCOPED_TRACE(name + parameters.dump());
    expect_near(applied(*fitted(name, parameters, reader), reader).inputs[0], expected);
  }
}

TEST_F(GroupScaling, OfOneGroupHasTheBitsOfOneForAll) {
  MatrixRows::Matrices one = matrices();
  one.groups = at::full({kCount}, 3, at::kLong);
  const MatrixRows reader(std::move(one));
  for (const char* const name : {"standardize", "min_max", "robust"}) {
    SCOPED_TRACE(name);
    const auto plain = fitted(name, {{"target", true}}, reader);
    const auto by_group = fitted(name, {{"target", true}, {"by", "group"}}, reader);

    const Batch expected = applied(*plain, reader);
    const Batch got = applied(*by_group, reader);

    expect_same(got, expected);
    EXPECT_TRUE(at::equal(by_group->invert(got.targets[0], "y", got.groups),
                          plain->invert(expected.targets[0], "y")));
  }
}

TEST_F(GroupScaling, DoesNotDependOnTheOrderOfTheRows) {
  MatrixRows::Matrices shuffled = matrices();
  const at::Tensor order =
      at::tensor({14, 2, 5, 9, 0, 7, 12, 3, 8, 1, 13, 4, 10, 6, 11}, at::kLong);
  for (at::Tensor* const part : {&shuffled.inputs[0], &shuffled.targets[0], &shuffled.groups})
    *part = part->index_select(0, order);
  const MatrixRows reader(matrices());
  const MatrixRows mixed(std::move(shuffled));
  for (const char* const name : {"standardize", "min_max", "robust"}) {
    const at::Tensor expected = applied(*fitted(name, {{"by", "group"}}, reader), reader).inputs[0];
    const at::Tensor got = applied(*fitted(name, {{"by", "group"}}, mixed), mixed).inputs[0];
    EXPECT_TRUE(at::allclose(got, expected.index_select(0, order), 1e-9, 1e-9, true)) << name;
  }
}

TEST_F(GroupScaling, GivesPredictionsTheUnitsOfTheirGroup) {
  const MatrixRows reader(matrices());
  const auto transform = fitted("standardize", {{"by", "group"}, {"target", true}}, reader);
  const Batch batch = applied(*transform, reader);

  // One standard deviation above each group's mean.
  const at::Tensor one = at::full({3, 1}, 1, at::kDouble);
  const at::Tensor back = transform->invert(one, "y", at::tensor({40, 2, 7}, at::kLong));

  expect_near(transform->invert(batch.targets[0], "y", batch.groups),
              std::vector<double>(reader.targets().data_ptr<double>(),
                                  reader.targets().data_ptr<double>() + kCount));
  for (std::int64_t i = 0; i < 3; ++i) {
    const at::Tensor of_group = reader.targets().index({reader.groups().eq(i == 0   ? 40
                                                                           : i == 1 ? 2
                                                                                    : 7)});
    EXPECT_NEAR(back[i].item<double>(),
                of_group.mean().item<double>() + of_group.std(false).item<double>(), 1e-9);
  }
  // Positions of a row are all in its group.
  const at::Tensor steps =
      transform->invert(at::full({1, 2, 1}, 1, at::kDouble), "y", at::tensor({2}, at::kLong));
  EXPECT_EQ(steps[0][1].item<double>(), back[1].item<double>());
}

TEST_F(GroupScaling, OfAGroupWithoutTrainingRowsIsAnErrorUnlessAllRowsStandIn) {
  const MatrixRows reader(matrices());
  const auto strict = fitted("standardize", {{"by", "group"}}, reader, 0, 9);
  const auto lenient =
      fitted("standardize", {{"by", "group"}, {"handle_unknown", "overall"}}, reader, 0, 9);
  const auto plain = fitted("standardize", GroupParameters::object(), reader, 0, 9);

  EXPECT_FALSE(strict->ask<FitsGroups>()->takes_other_groups());
  EXPECT_TRUE(lenient->ask<FitsGroups>()->takes_other_groups());
  EXPECT_TRUE(at::equal(lenient->ask<FitsGroups>()->groups(), at::tensor({2, 7}, at::kLong)));
  EXPECT_TRUE(at::allclose(applied(*lenient, gathered(reader, 9, kCount)).inputs[0],
                           applied(*plain, gathered(reader, 9, kCount)).inputs[0], 1e-12, 1e-12,
                           true));
  EXPECT_TRUE(same(applied(*lenient, gathered(reader, 0, 9)).inputs[0],
                   applied(*strict, gathered(reader, 0, 9)).inputs[0]));
  try {
    applied(*strict, gathered(reader, 4, 10));
    ADD_FAILURE() << "nothing is known of group 40";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("standardize: no training row is of the group with the number 40"));
    EXPECT_THAT(error.what(), HasSubstr("\"handle_unknown\": \"overall\""));
  }
}

TEST_F(GroupScaling, OfAGroupWithoutANumberInAColumnIsAnErrorUnlessAllRowsStandIn) {
  MatrixRows::Matrices changed = matrices();
  changed.inputs[0] = changed.inputs[0].clone();
  changed.inputs[0].slice(0, 5, 9).select(1, 1).fill_(kNoNumber);
  const MatrixRows reader(std::move(changed));

  const auto lenient = fitted("min_max", {{"by", "group"}, {"handle_unknown", "overall"}}, reader);

  Batch of_two = gathered(reader, 5, 6);
  of_two.inputs[0][0][1] = 0.25;  // the least of all rows
  EXPECT_EQ(applied(*lenient, of_two).inputs[0][0][1].item<double>(), 0);
  try {
    fitted("min_max", {{"by", "group"}}, reader);
    ADD_FAILURE() << "column b of group 2 has no number";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("min_max: column \"b\" has no number in the training rows "
                                        "of the group that row 5 is of"));
  }
}

TEST_F(GroupScaling, NeedsRowsWithGroups) {
  MatrixRows::Matrices without = matrices();
  without.groups = at::Tensor();
  const MatrixRows reader(std::move(without));
  try {
    fitted("robust", {{"by", "group"}}, reader);
    ADD_FAILURE() << "there are no groups";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("robust: \"by\": \"group\" needs rows with groups"));
    EXPECT_THAT(error.what(), HasSubstr("\"groups\" of npy"));
  }
  EXPECT_EQ(plugin().make<Transform>("robust", GroupParameters::object())->ask<FitsGroups>(),
            nullptr);
  EXPECT_THROW(plugin().make<Transform>("robust", {{"handle_unknown", "overall"}}), DocumentError);
  EXPECT_THROW(plugin().make<Transform>("robust", {{"quantile_range", {80, 20}}}), DocumentError);
}

TEST_F(GroupScaling, RefusesTheStateOfOtherGroups) {
  const MatrixRows reader(matrices());
  const auto original = fitted("standardize", {{"by", "group"}}, reader);
  StateDict fewer = original->state();
  fewer.put("groups", at::tensor({2, 7}, at::kLong));
  StateDict turned = original->state();
  turned.put("groups", at::tensor({40, 7, 2}, at::kLong));
  const auto load = [](const GroupParameters& parameters, const StateDict& state) {
    plugin().make<Transform>("standardize", parameters)->load_state(state);
  };

  EXPECT_NO_THROW(load({{"by", "group"}}, original->state()));
  EXPECT_THROW(load({{"by", "group"}}, fewer), StorageError);
  EXPECT_THROW(load({{"by", "group"}}, turned), StorageError);
  EXPECT_THROW(load(GroupParameters::object(), original->state()), StorageError);
  EXPECT_THROW(
      load({{"by", "group"}}, fitted("standardize", GroupParameters::object(), reader)->state()),
      StorageError);
}

/// Windows of two rows, each of which predicts the next; three rows of group 1, four of group 2.
class GroupedPairs final : public SampleReader {
 public:
  GroupedPairs() : steps_(table()) {}

 private:
  static MatrixRows::Matrices table() {
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {{"features", {1}, {}, Role::kFeatures, at::kDouble}};
    matrices.spec.targets = {number_target("y")};
    matrices.inputs = {at::tensor({1., 2., 6., 100., 300., 800., 900.}, at::kDouble).unsqueeze(1)};
    matrices.targets = matrices.inputs;
    matrices.groups = at::tensor({1, 1, 1, 2, 2, 2, 2}, at::kLong);
    return matrices;
  }
  std::int64_t first(std::int64_t sample) const { return sample == 0 ? 0 : sample + 2; }
  SourceRows do_source_rows(std::int64_t sample) const override {
    const std::int64_t row = first(sample);
    return {{row, row + 2}, {row + 2, row + 3}};
  }
  const RowReader* do_steps() const override { return &steps_; }
  const DataSpec& do_spec() const override { return spec_; }
  std::int64_t do_rows() const override { return 3; }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    std::vector<at::Tensor> inputs;
    std::vector<at::Tensor> targets;
    for (const std::int64_t sample : rows) {
      inputs.push_back(steps_.matrices().inputs[0].narrow(0, first(sample), 2));
      targets.push_back(steps_.matrices().targets[0][first(sample) + 2]);
    }
    out.inputs = {at::stack(inputs)};
    out.targets = {at::stack(targets)};
  }
  at::Tensor do_targets(std::size_t) const override { return at::empty({0}); }
  at::Tensor do_groups() const override { return at::tensor({1, 2, 2}, at::kLong); }

  MatrixRows steps_;
  DataSpec spec_ = [] {
    DataSpec spec = table().spec;
    spec.inputs[0].shape = {2, 1};
    return spec;
  }();
};

TEST_F(GroupScaling, OfWindowsCountsEachRowOfASeriesOnce) {
  const GroupedPairs reader;
  const auto transform = fitted("standardize", {{"by", "group"}, {"target", true}}, reader);

  const Batch batch = applied(*transform, reader);

  // Group 1: mean 3, variance 14 / 3. Group 2: mean 525, variance 111875.
  const double first = std::sqrt(14.0 / 3);
  const double second = std::sqrt(111875.0);
  expect_near(batch.inputs[0],
              {-2 / first, -1 / first, -425 / second, -225 / second, -225 / second, 275 / second});
  expect_near(batch.targets[0], {3 / first, 275 / second, 375 / second});
  expect_near(transform->invert(batch.targets[0], "y", batch.groups), {6, 800, 900});
}

}  // namespace
}  // namespace treadle::testing
