#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>

#include "forward/failure.h"
#include "nodes/nodes.h"

// A mixture whose experts compute what they have a weight for. What the weights say a number of,
// the dimensions before their last, is a token: a row, or a position of a row.

namespace treadle::graph {
namespace {

/// Callees: the router, then the experts.
class SparseMixtureNode final : public Node {
 public:
  SparseMixtureNode(std::vector<Callee> callees, Mixture mixture)
      : Node(std::move(callees)), pads_(mixture.pad) {}

  at::Tensor run(const Inputs& inputs, NodeState& state, const ForwardScope& scope) const override {
    const at::Tensor& x = inputs[0];
    const at::Tensor weights = main().call(inputs, state.callees[0], scope);
    const std::size_t leading = leading_dimensions(TensorSpec::of(x), TensorSpec::of(weights));
    const at::Tensor tokens = x.flatten(0, static_cast<std::int64_t>(leading) - 1);
    const at::Tensor of_tokens = weights.reshape({-1, experts()});
    at::Tensor is_taken = of_tokens.detach().ne(0);
    if (!is_taken.any().item<bool>())
      is_taken = is_taken.logical_not();  // for zeros of the right size
    std::vector<at::Tensor> taken;
    std::vector<at::Tensor> results;
    for (std::int64_t expert = 0; expert < experts(); ++expert) {
      at::Tensor indices = is_taken.select(1, expert).nonzero().reshape({-1});
      // An expert without tokens is not called, and has no gradients.
      if (indices.numel() == 0)
        continue;
      results.push_back(weighed(expert, tokens, of_tokens, indices, state, scope));
      taken.push_back(std::move(indices));
    }
    std::int64_t widest = 0;
    for (const at::Tensor& result : results)
      widest = std::max(widest, result.size(-1));
    std::vector<std::int64_t> sizes = results.front().sizes().vec();
    sizes.front() = tokens.size(0);
    sizes.back() = widest;
    // In the order of the experts: no token is twice among those of one.
    at::Tensor sum = at::zeros(sizes, results.front().options());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::int64_t missing = widest - results[i].size(-1);
      if (missing > 0 && !pads_)
        refuse_widths(results[i].size(-1), widest);
      sum = at::index_add(sum, 0, taken[i],
                          missing > 0 ? at::constant_pad_nd(results[i], {0, missing}) : results[i]);
    }
    return restored(sum, x, leading);
  }

  TensorSpec result(std::span<const TensorSpec> inputs) const override {
    const TensorSpec& x = inputs[0];
    const TensorSpec weights = main().result(inputs);
    const std::size_t leading = leading_dimensions(x, weights);
    const TensorSpec token = tokens_of(x, weights);
    TensorSpec all = callees_[1].result({&token, 1});
    for (std::size_t i = 2; i < callees_.size(); ++i) {
      TensorSpec other = callees_[i].result({&token, 1});
      if (pads_ && other.sizes.size() == all.sizes.size())
        other.sizes.back() = all.sizes.back() = std::max(all.sizes.back(), other.sizes.back());
      if (other != all) {
        throw DataError("the experts of a mixture give one shape, but expert 0 gives " +
                        all.text() + " and expert " + std::to_string(i - 1) + " gives " +
                        other.text() +
                        (pads_ ? "" : "; \"pad\": true fills narrower ones up with zeros"));
      }
    }
    all.sizes.erase(all.sizes.begin());
    all.sizes.insert(all.sizes.begin(), x.sizes.begin(),
                     x.sizes.begin() + static_cast<std::ptrdiff_t>(leading));
    return all;
  }

  bool depends_on_numbers() const override { return true; }
  std::string why_called() const override { return "the rows of each expert depend on values"; }

 private:
  std::int64_t experts() const { return static_cast<std::int64_t>(callees_.size()) - 1; }

  /// How many dimensions of the stream the weights are for.
  std::size_t leading_dimensions(const TensorSpec& x, const TensorSpec& weights) const {
    const std::size_t leading = weights.sizes.empty() ? 0 : weights.sizes.size() - 1;
    if (leading == 0 || weights.sizes.back() != experts()) {
      throw DataError("the router gives weights " + weights.text() + " for " +
                      std::to_string(experts()) + " experts");
    }
    const auto end = weights.sizes.begin() + static_cast<std::ptrdiff_t>(leading);
    if (leading >= x.sizes.size() || !std::equal(weights.sizes.begin(), end, x.sizes.begin())) {
      throw DataError("the router gives weights " + weights.text() +
                      ", which do not fit the stream " + x.text());
    }
    return leading;
  }

  [[noreturn]] static void refuse_widths(std::int64_t one, std::int64_t other) {
    throw DataError("the experts of a mixture give one shape, but one gives a width of " +
                    std::to_string(one) + " and another of " + std::to_string(other) +
                    "; \"pad\": true fills narrower ones up with zeros");
  }

  at::Tensor weighed(std::int64_t expert, const at::Tensor& tokens, const at::Tensor& weights,
                     const at::Tensor& indices, NodeState& state, const ForwardScope& scope) const {
    const auto callee = static_cast<std::size_t>(expert) + 1;
    const at::Tensor given = tokens.index_select(0, indices);
    at::Tensor result;
    try {
      result = callees_[callee].call({&given, 1}, state.callees[callee], scope);
    } catch (...) {
      rethrow_within("expert " + std::to_string(expert));
    }
    if (result.dim() < 2 || result.size(0) != given.size(0)) {
      throw DataError("expert " + std::to_string(expert) + " gives " +
                      TensorSpec::of(result).text() + " for " + std::to_string(given.size(0)) +
                      " rows");
    }
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(result.dim()), 1);
    sizes.front() = -1;
    return result.mul(weights.select(1, expert).index_select(0, indices).view(sizes));
  }

  /// [tokens, ...] as [L..., ...]
  static at::Tensor restored(const at::Tensor& tokens, const at::Tensor& x, std::size_t leading) {
    std::vector<std::int64_t> sizes = x.sizes().slice(0, leading).vec();
    const at::IntArrayRef rest = tokens.sizes().slice(1);
    sizes.insert(sizes.end(), rest.begin(), rest.end());
    return tokens.view(sizes);
  }

  bool pads_;
};

}  // namespace

TensorSpec tokens_of(const TensorSpec& stream, const TensorSpec& weights) {
  TensorSpec tokens = stream;
  if (weights.sizes.size() < 2 || weights.sizes.size() > stream.sizes.size())
    return tokens;
  tokens.sizes.erase(tokens.sizes.begin() + 1,
                     tokens.sizes.begin() + static_cast<std::ptrdiff_t>(weights.sizes.size() - 1));
  tokens.sizes.front() = TensorSpec::kVaries;
  return tokens;
}

std::unique_ptr<Node> make_sparse_mixture_node(std::vector<Callee> callees, Mixture mixture) {
  return std::make_unique<SparseMixtureNode>(std::move(callees), mixture);
}

}  // namespace treadle::graph
