#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle::trees {

/// A node of a tree: a question or a leaf. The root is the first, and children follow their parent.
struct Node {
  static constexpr std::uint32_t kMissingGoesLeft = std::uint32_t{1} << 31;

  /// Of a question the threshold: smaller values go left. Of a leaf its value.
  float value = 0;
  /// The column, with kMissingGoesLeft added where NaN goes left.
  std::uint32_t column = 0;
  /// The left child, counted from the root; the right one is next to it. 0: a leaf.
  std::uint32_t left = 0;

  bool operator==(const Node&) const = default;
};

using Tree = std::vector<Node>;

/// A sum of decision trees for each of one or more margins:
///
///     margin_k(x) = base_k + sum over rounds r of tree_{r,k}(x)
///
/// added up in float32 in the order of the rounds, so that margins to which each round was added
/// have the bits of those that are computed at once.
///
/// Const functions may be called from several threads.
class TreeSum {
 public:
  TreeSum(std::int64_t columns, std::int64_t margins);

  std::int64_t columns() const { return columns_; }
  std::int64_t margins() const { return static_cast<std::int64_t>(base_.size()); }
  std::int64_t rounds() const { return trees() / margins(); }
  /// Of XGBoost, that has grown the trees; several, if it was replaced on the way.
  const std::string& versions() const { return versions_; }

  /// Where a sum without trees begins. Expects margins() of them.
  void set_base(std::vector<float> base);
  /// One tree for each margin, grown by that version of the library.
  void add_round(const std::vector<Tree>& trees, const std::string& version);

  /// Of `rows`, float32 [n, columns()], contiguous, on the CPU: float32 [n, margins()]. NaN is a
  /// missing value.
  at::Tensor margins_of(const at::Tensor& rows) const;
  /// Adds the rounds from `first` on to margins that were computed before them.
  void add_rounds(const at::Tensor& rows, std::int64_t first, const at::Tensor& margins) const;

  /// All of it; the same bytes for the same trees.
  std::string bytes() const;
  /// Throws a StorageError, and changes nothing, unless they are of as many columns and margins.
  void load(std::string_view bytes);

 private:
  std::int64_t trees() const { return static_cast<std::int64_t>(roots_.size()); }

  std::int64_t columns_;
  std::vector<float> base_;
  std::vector<std::size_t> roots_;  // of each tree, in nodes_; of a round those of its margins
  std::vector<Node> nodes_;
  std::string versions_;
};

}  // namespace treadle::trees
