#include "data/known_groups.h"

#include <utility>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/abilities/fits_groups.h>
#include <treadle/core/data/matrix_rows.h>

namespace treadle::internal {
namespace {

using ::testing::HasSubstr;

/// Has statistics of given groups, and does nothing.
class ByGroup final : public Transform, public FitsGroups {
 public:
  explicit ByGroup(std::vector<std::int64_t> groups, bool takes_others = false)
      : known_(at::tensor(groups, at::kLong)), takes_others_(takes_others) {
    set_origin("transform \"by_group\"");
  }

 private:
  void do_fit(const RowReader&, const RowList&) override {}
  DataSpec do_output_spec(const DataSpec& before) const override { return before; }
  void do_apply(Batch&, const ApplyContext&) const override {}
  StateDict do_state() const override { return {}; }
  void do_load_state(const StateDict&) override {}
  void* do_ask(std::string_view interface_id) override {
    return interface_id == FitsGroups::kInterface ? static_cast<FitsGroups*>(this) : nullptr;
  }
  at::Tensor do_groups() const override { return known_; }
  bool do_takes_other_groups() const override { return takes_others_; }
  at::Tensor do_invert_groups(const at::Tensor& predictions, std::string_view,
                              const at::Tensor&) const override {
    return predictions;
  }

  at::Tensor known_;
  bool takes_others_;
};

/// Groups are called by the letters from 'a' on, or from the last on.
class Letters final : public GroupNames {
 public:
  explicit Letters(std::string letters) : letters_(std::move(letters)) {}

 private:
  std::string do_name_of(std::int64_t group) const override {
    return {letters_.at(static_cast<std::size_t>(group))};
  }

  std::string letters_;
};

MatrixRows rows_of(const std::vector<std::int64_t>& groups) {
  MatrixRows::Matrices rows;
  rows.spec.inputs = {{"features", {1}, {{"x"}}}};
  rows.inputs = {at::zeros({static_cast<std::int64_t>(groups.size()), 1})};
  rows.groups = at::tensor(groups, at::kLong);
  return MatrixRows(std::move(rows));
}

template <typename Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(KnownGroups, FindTheNumbersOfTheTrainingByName) {
  const ByGroup transform({0, 1, 2});
  const std::vector<const Transform*> transforms{&transform};
  const Letters training("abc");
  StateDict preprocessing;
  KnownGroups(transforms, &training).save_in(preprocessing);
  const Letters elsewhere("xcab");
  const MatrixRows rows = rows_of({2, 2, 3, 1});

  const KnownGroups loaded(transforms, preprocessing);

  EXPECT_TRUE(at::equal(loaded.numbers_in({&rows, &rows, &elsewhere}),
                        at::tensor({0, 0, 1, 2}, at::kLong)));
  EXPECT_TRUE(at::equal(loaded.numbers_of(std::vector<std::string>{"c", "a"}, 2),
                        at::tensor({2, 0}, at::kLong)));
}

TEST(KnownGroups, WithoutNamesAreKnownByTheirNumbers) {
  const ByGroup transform({7, 40});
  const std::vector<const Transform*> transforms{&transform};
  StateDict preprocessing;
  KnownGroups(transforms, nullptr).save_in(preprocessing);
  const MatrixRows rows = rows_of({40, 7});

  const KnownGroups loaded(transforms, preprocessing);

  EXPECT_TRUE(at::equal(loaded.numbers_in({&rows, &rows, nullptr}), rows.groups()));
  EXPECT_TRUE(
      at::equal(loaded.numbers_of(std::vector<std::string>{"40"}, 1), at::tensor({40}, at::kLong)));
}

TEST(KnownGroups, NameThoseThatHaveNoTrainingRow) {
  const ByGroup strict({0, 1});
  const ByGroup lenient({-1, 0, 1}, true);
  const std::vector<const Transform*> transforms{&strict};
  const Letters names("abcdefghij");
  const KnownGroups known(transforms, &names);
  const MatrixRows rows = rows_of({0, 2, 2, 1, 3, 4, 5, 6, 7, 8});
  const EvaluatedRows data{&rows, &rows, &names};

  EXPECT_THAT(refusal([&] { known.numbers_in(data); }),
              HasSubstr("transform \"by_group\" has statistics for each group of its training "
                        "rows, and none for c, d, e, f, g and 2 more, which no training row"));
  EXPECT_THAT(refusal([&] { known.expect_known(data, RowList::range(1, 4)); }),
              HasSubstr("none for c, which"));
  EXPECT_NO_THROW(known.expect_known(data, RowList{0, 3}));
  EXPECT_THAT(refusal([&] {
                known.numbers_of(std::vector<std::string>{"a", "z", "z"}, 3);
              }),
              HasSubstr("none for z, which"));
  EXPECT_THAT(refusal([&] { known.numbers_of(std::vector<std::string>{"a"}, 3); }),
              HasSubstr("needs the group of each of the 3 rows, got 1"));

  const std::vector<const Transform*> all_taken{&lenient};
  const KnownGroups taken(all_taken, nullptr);
  const at::Tensor numbers = taken.numbers_in({&rows, &rows, nullptr});
  EXPECT_EQ(numbers[0].item<std::int64_t>(), 0);
  EXPECT_EQ(numbers[1].item<std::int64_t>(), -2) << "a number that no group has";
}

TEST(KnownGroups, AreNotNeededWithoutStatisticsOfThem) {
  const KnownGroups none;
  const MatrixRows rows = rows_of({2});
  StateDict preprocessing;

  none.save_in(preprocessing);

  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(preprocessing.empty());
  EXPECT_FALSE(none.numbers_in({&rows, &rows, nullptr}).defined());
  EXPECT_FALSE(none.numbers_of({}, 3).defined());
  EXPECT_NO_THROW(none.expect_known({&rows, &rows, nullptr}, RowList::range(0, 1)));
}

TEST(KnownGroups, RefuseASavedStateThatContradictsItself) {
  const ByGroup transform({0, 1, 2});
  const std::vector<const Transform*> transforms{&transform};
  StateDict groups;
  groups.put("names", nlohmann::json({"a", "b"}));
  groups.put("numbers", at::tensor({0, 1, 2}, at::kLong));
  StateDict preprocessing;
  preprocessing.put("groups", std::move(groups));

  EXPECT_THROW(KnownGroups(transforms, preprocessing), StorageError);
  EXPECT_THROW(KnownGroups(transforms, StateDict()), StorageError);
}

}  // namespace
}  // namespace treadle::internal
