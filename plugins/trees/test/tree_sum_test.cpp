#include "tree_sum.h"

#include <limits>
#include <string>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "made_trees.h"

namespace treadle::trees {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Column 1 below 0.5: -1; else, column 0 below 0: 2, else 3. Missing values go left, then right.
Tree tree_of_three_leaves() {
  return {{0.5F, 1 | Node::kMissingGoesLeft, 1}, {-1, 0, 0}, {0, 0, 3}, {2, 0, 0}, {3, 0, 0}};
}

TreeSum two_margins() {
  TreeSum trees(2, 2);
  trees.set_base({0.25F, 100});
  trees.add_round({tree_of_three_leaves(), {{10, 0, 0}}}, "1.7.4");
  trees.add_round({{{0.125F, 0, 0}}, tree_of_three_leaves()}, "1.7.4");
  return trees;
}

TEST(TreeSum, AddsTheLeafOfEachTree) {
  const at::Tensor rows =
      at::tensor({5.0F, 0.4F, -5.0F, 0.5F, 0.0F, 0.6F, 7.0F, kNan, kNan, 0.6F}).view({5, 2});

  const at::Tensor margins = two_margins().margins_of(rows);

  EXPECT_TRUE(
      at::equal(margins.select(1, 0), at::tensor({-0.625F, 2.375F, 3.375F, -0.625F, 3.375F})));
  EXPECT_TRUE(
      at::equal(margins.select(1, 1), at::tensor({109.0F, 112.0F, 113.0F, 109.0F, 113.0F})));
}

TEST(TreeSum, RoundsThatAreAddedOneByOneHaveTheSameBits) {
  const at::Tensor rows = waves(150, 2);
  TreeSum trees(2, 1);
  trees.set_base({0.1F});
  at::Tensor margins = trees.margins_of(rows);
  for (int round = 0; round < 20; ++round) {
    Tree tree = tree_of_three_leaves();
    for (Node& node : tree)
      node.value *= 0.3F / static_cast<float>(round + 1);
    trees.add_round({tree}, "1");
    trees.add_rounds(rows, round, margins);
  }

  EXPECT_TRUE(at::equal(trees.margins_of(rows), margins));
}

TEST(TreeSum, IsTheSameFromItsBytes) {
  const TreeSum trees = two_margins();
  TreeSum loaded(2, 2);

  loaded.load(trees.bytes());

  EXPECT_EQ(loaded.bytes(), trees.bytes());
  EXPECT_EQ(loaded.rounds(), 2);
  EXPECT_EQ(loaded.versions(), "1.7.4");
  EXPECT_TRUE(at::equal(loaded.margins_of(waves(50, 2)), trees.margins_of(waves(50, 2))));
}

TEST(TreeSum, NamesEachVersionThatGrewIt) {
  TreeSum trees = two_margins();
  trees.add_round({tree_of_three_leaves(), tree_of_three_leaves()}, "3.0.0");
  EXPECT_EQ(trees.versions(), "1.7.4, 3.0.0");
}

TEST(TreeSum, WrongBytesAreRefusedAndChangeNothing) {
  TreeSum trees = two_margins();
  const std::string whole = trees.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(trees.load(whole.substr(0, size)), StorageError) << size;
  EXPECT_THROW(trees.load(whole + "!"), StorageError);
  EXPECT_THROW(TreeSum(3, 2).load(whole), StorageError);
  EXPECT_THROW(TreeSum(2, 1).load(whole), StorageError);
  EXPECT_EQ(trees.bytes(), whole);
}

// A damaged byte gives other numbers, or an error; no tree without an end, and nothing beyond it.
TEST(TreeSum, NoByteLeadsOutOfATree) {
  const std::string whole = two_margins().bytes();
  const at::Tensor rows = waves(10, 2);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {1, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      TreeSum trees(2, 2);
      try {
        trees.load(damaged);
      } catch (const StorageError&) {
        continue;
      }
      EXPECT_EQ(trees.margins_of(rows).size(0), 10);
    }
  }
}

}  // namespace
}  // namespace treadle::trees
