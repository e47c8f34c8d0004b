#include <treadle/core/training/chunked_loss.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <treadle/base/error.h>
#include <treadle/tensor/torch_versions.h>

namespace treadle {
namespace {

using torch::autograd::variable_list;

/// The gradients of the sum, as if the one that comes back to it was 1.
struct Gradients {
  at::Tensor features;              ///< as the features; undefined: they need none
  std::vector<at::Tensor> trained;  ///< parameters of the head
  std::vector<at::Tensor> sums;     ///< as `trained`
};

/// Scales what the forward computed. Gradients of parameters are added to grad() here and not by
/// autograd, as a compiled graph does (framework/graph): a weight that is tied to an embedding then
/// gets its two gradients in the same order, and the same bits, however the graph runs.
class ChunksNode final : public torch::autograd::Node {
 public:
  explicit ChunksNode(Gradients gradients) : gradients_(std::move(gradients)) {}

  std::string name() const override { return "ChunkedLoss"; }

  variable_list apply(variable_list&& given) override {
    if (at::GradMode::is_enabled())
      throw TrainingError("a loss in chunks has no gradients of gradients; leave its chunks out");
    const Gradients gradients = std::exchange(gradients_, {});
    if (gradients.trained.empty() && !gradients.features.defined())
      throw TrainingError("backward through a loss in chunks a second time; run forward once more");
    const at::Tensor& factor = given.front();
    if (!factor.defined())
      return variable_list(num_outputs());
    const auto* const asked = torch::autograd::get_current_graph_task_exec_info();
    const bool are_results = asked != nullptr && !asked->empty();
    variable_list results;
    if (gradients.features.defined())
      results.push_back(gradients.features.mul_(factor.to(gradients.features.scalar_type())));
    for (std::size_t i = 0; i < gradients.trained.size(); ++i) {
      const at::Tensor& parameter = gradients.trained[i];
      const at::Tensor gradient = gradients.sums[i].mul_(factor).to(parameter.scalar_type());
      if (!are_results && parameter.grad().defined()) {
        parameter.grad().add_(gradient);
      } else if (!are_results) {
        parameter.mutable_grad() = gradient;
      }
      results.push_back(are_results ? gradient : at::Tensor());
    }
    return results;
  }

  void release_variables() override { gradients_ = {}; }

 private:
  Gradients gradients_;
};

bool has_sixteen_bits(const at::Tensor& tensor) {
  return tensor.element_size() == 2;
}

void add(at::Tensor& total, const at::Tensor& more) {
  if (more.defined())
    total = total.defined() ? total.add(more) : more;
}

/// Adds the gradients of one chunk, and cuts the graph of its sum.
void take_gradients(at::Tensor& sum, const at::Tensor& leaf, std::int64_t begin,
                    Gradients& gradients) {
  std::vector<at::Tensor> wanted;
  if (gradients.features.defined())
    wanted.push_back(leaf);
  wanted.insert(wanted.end(), gradients.trained.begin(), gradients.trained.end());
  const variable_list found =
      torch::autograd::grad({sum}, wanted, /*grad_outputs=*/{}, /*retain_graph=*/false,
                            /*create_graph=*/false, /*allow_unused=*/true);
  sum = sum.detach();
  auto next = found.begin();
  if (gradients.features.defined()) {
    at::Tensor part = gradients.features.view({-1, leaf.size(1)}).narrow(0, begin, leaf.size(0));
    next->defined() ? part.copy_(*next) : part.zero_();
    ++next;
  }
  for (at::Tensor& of_parameter : gradients.sums) {
    if (next->defined())
      of_parameter.add_(*next);
    ++next;
  }
}

}  // namespace

ChunksOutputs::~ChunksOutputs() = default;

LossTerms chunked_forward(const Loss& loss, const DeferredOutput& output, const TargetBatch& target,
                          std::int64_t chunks) {
  const at::Tensor& given = output.features;
  const at::Tensor features = given.detach().flatten(0, given.dim() - 2);
  const std::int64_t positions = features.size(0);
  if (positions != target.positions()) {
    throw TrainingError("the model's output has " + std::to_string(positions) +
                        " positions for a target of " + std::to_string(target.positions()) +
                        "; look for a layer that moves elements from one row to another");
  }
  Gradients gradients;
  variable_list differentiated;
  const bool records = at::GradMode::is_enabled();
  if (records && given.requires_grad()) {
    gradients.features = at::empty(given.sizes(), features.options());
    differentiated.push_back(given);
  }
  for (const at::Tensor& parameter : output.parameters) {
    if (!records || !parameter.requires_grad())
      continue;
    gradients.trained.push_back(parameter);
    // Sums over many chunks lose too much in 16 bits.
    gradients.sums.push_back(
        at::zeros(parameter.sizes(),
                  parameter.options().requires_grad(false).dtype(
                      has_sixteen_bits(parameter) ? at::kFloat : parameter.scalar_type())));
    differentiated.push_back(parameter);
  }
  LossTerms total;
  chunks = std::clamp<std::int64_t>(chunks, 1, std::max<std::int64_t>(positions, 1));
  for (std::int64_t i = 0; i < chunks; ++i) {
    const std::int64_t begin = positions * i / chunks;
    const std::int64_t count = positions * (i + 1) / chunks - begin;
    at::Tensor leaf = features.narrow(0, begin, count).detach();
    leaf.set_requires_grad(gradients.features.defined());
    LossTerms terms = loss.forward({output.head(leaf)}, target.slice_positions(begin, count));
    if (terms.sum.requires_grad())
      take_gradients(terms.sum, leaf, begin, gradients);
    const at::NoGradGuard no_gradients;
    add(total.sum, terms.sum);
    add(total.weight, terms.weight);
  }
  if (differentiated.empty())
    return total;
  const auto node = torch_versions::make_node<ChunksNode>(std::move(gradients));
  for (const at::Tensor& one : differentiated)
    node->add_next_edge(torch::autograd::impl::gradient_edge(one));
  torch::autograd::set_history(total.sum, node);
  return total;
}

}  // namespace treadle
