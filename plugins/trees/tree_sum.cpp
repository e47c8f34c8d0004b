#include "tree_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>

namespace treadle::trees {
namespace {

/// Rows that go through one tree after the other while they are in the nearest cache.
constexpr std::int64_t kBlock = 64;

constexpr std::string_view kBeginning = "treadle-trees/0\n";

/// Follows the beginning, before base, sizes of trees, nodes and versions. Numbers are those
/// of the machine, which is little-endian wherever Treadle runs.
struct Counts {
  std::uint64_t columns = 0;
  std::uint64_t margins = 0;
  std::uint64_t trees = 0;
  std::uint64_t nodes = 0;
  std::uint64_t versions = 0;  // bytes
};

template <typename T>
void put(std::string& bytes, const T* values, std::size_t count) {
  bytes.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

/// Takes values from the front. Expects that they are there.
template <typename T>
void take(std::string_view& bytes, T* values, std::size_t count) {
  if (count > 0)
    std::memcpy(values, bytes.data(), count * sizeof(T));
  bytes.remove_prefix(count * sizeof(T));
}

[[noreturn]] void refuse(const std::string& why) {
  throw StorageError("the state of gradient_boosted_trees " + why +
                     "; take weights that a model of the same inputs and targets was saved with");
}

/// Every question has children behind it, so that each way through the tree ends.
bool is_tree(const Node* nodes, std::size_t count, std::uint64_t columns) {
  for (std::size_t i = 0; i < count; ++i) {
    const Node& node = nodes[i];
    if (node.left == 0)
      continue;
    const std::size_t left = node.left;
    if (left <= i || left + 1 >= count || (node.column & ~Node::kMissingGoesLeft) >= columns)
      return false;
  }
  return count > 0;
}

float leaf_of(const Node* root, const float* row) {
  const Node* node = root;
  while (node->left != 0) {
    const float value = row[node->column & ~Node::kMissingGoesLeft];
    const bool left =
        std::isnan(value) ? (node->column & Node::kMissingGoesLeft) != 0 : value < node->value;
    node = root + node->left + (left ? 0 : 1);
  }
  return node->value;
}

}  // namespace

TreeSum::TreeSum(std::int64_t columns, std::int64_t margins)
    : columns_(columns), base_(static_cast<std::size_t>(margins), 0.0F) {}

void TreeSum::set_base(std::vector<float> base) {
  TREADLE_EXPECTS(roots_.empty() && base.size() == base_.size(),
                  "the base belongs to a sum without trees, one number for each margin");
  base_ = std::move(base);
}

void TreeSum::add_round(const std::vector<Tree>& trees, const std::string& version) {
  TREADLE_EXPECTS(trees.size() == base_.size(), "a round has a tree for each margin");
  for (const Tree& tree : trees) {
    TREADLE_EXPECTS(is_tree(tree.data(), tree.size(), static_cast<std::uint64_t>(columns_)),
                    "children of a node follow it");
  }
  for (const Tree& tree : trees) {
    roots_.push_back(nodes_.size());
    nodes_.insert(nodes_.end(), tree.begin(), tree.end());
  }
  if (versions_.find(version) == std::string::npos)
    versions_ += (versions_.empty() ? "" : ", ") + version;
}

at::Tensor TreeSum::margins_of(const at::Tensor& rows) const {
  at::Tensor margins = at::empty({rows.size(0), this->margins()}, at::kFloat);
  auto* const sums = margins.data_ptr<float>();
  for (std::int64_t row = 0; row < rows.size(0); ++row)
    std::copy(base_.begin(), base_.end(), sums + row * this->margins());
  add_rounds(rows, 0, margins);
  return margins;
}

void TreeSum::add_rounds(const at::Tensor& rows, std::int64_t first,
                         const at::Tensor& margins) const {
  TREADLE_EXPECTS(rows.dim() == 2 && rows.size(1) == columns_ && rows.is_contiguous() &&
                      rows.scalar_type() == at::kFloat && margins.is_contiguous(),
                  "trees read contiguous rows of float32");
  const std::int64_t width = this->margins();
  const auto* const values = rows.data_ptr<float>();
  auto* const sums = margins.data_ptr<float>();
  for (std::int64_t begin = 0; begin < rows.size(0); begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, rows.size(0));
    for (std::int64_t tree = first * width; tree < trees(); ++tree) {
      const Node* const root = nodes_.data() + roots_[static_cast<std::size_t>(tree)];
      for (std::int64_t row = begin; row < end; ++row)
        sums[row * width + tree % width] += leaf_of(root, values + row * columns_);
    }
  }
}

std::string TreeSum::bytes() const {
  std::vector<std::uint64_t> sizes(roots_.size());
  for (std::size_t i = 0; i < sizes.size(); ++i)
    sizes[i] = (i + 1 < sizes.size() ? roots_[i + 1] : nodes_.size()) - roots_[i];
  const Counts counts{static_cast<std::uint64_t>(columns_), base_.size(), roots_.size(),
                      nodes_.size(), versions_.size()};
  std::string bytes(kBeginning);
  put(bytes, &counts, 1);
  put(bytes, base_.data(), base_.size());
  put(bytes, sizes.data(), sizes.size());
  put(bytes, nodes_.data(), nodes_.size());
  return bytes + versions_;
}

void TreeSum::load(std::string_view bytes) {
  Counts counts;
  if (!bytes.starts_with(kBeginning) || bytes.size() < kBeginning.size() + sizeof counts)
    refuse("is none of such a model");
  bytes.remove_prefix(kBeginning.size());
  take(bytes, &counts, 1);
  if (counts.columns != static_cast<std::uint64_t>(columns_) || counts.margins != base_.size()) {
    refuse("is of " + std::to_string(counts.columns) + " columns and " +
           std::to_string(counts.margins) + " margins, and this model has " +
           std::to_string(columns_) + " and " + std::to_string(base_.size()));
  }
  // None larger than the whole, so that the sum cannot overflow.
  const std::uint64_t most = bytes.size();
  const bool fits = counts.trees <= most && counts.nodes <= most && counts.versions <= most &&
                    counts.trees % counts.margins == 0 &&
                    counts.margins * sizeof(float) + counts.trees * sizeof(std::uint64_t) +
                            counts.nodes * sizeof(Node) + counts.versions ==
                        most;
  if (!fits)
    refuse("is cut off or damaged");
  TreeSum loaded(columns_, margins());
  take(bytes, loaded.base_.data(), loaded.base_.size());
  std::vector<std::uint64_t> sizes(counts.trees);
  take(bytes, sizes.data(), sizes.size());
  loaded.nodes_.resize(counts.nodes);
  take(bytes, loaded.nodes_.data(), loaded.nodes_.size());
  loaded.versions_ = bytes;
  std::size_t root = 0;
  for (const std::uint64_t size : sizes) {
    if (size > loaded.nodes_.size() - root ||
        !is_tree(loaded.nodes_.data() + root, size, counts.columns))
      refuse("is damaged");
    loaded.roots_.push_back(root);
    root += size;
  }
  if (root != loaded.nodes_.size())
    refuse("is damaged");
  *this = std::move(loaded);
}

}  // namespace treadle::trees
