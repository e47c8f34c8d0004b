#include <treadle/sdk.h>

#include <algorithm>
#include <numeric>

namespace {

/// Gradient centralization (H. Yong, J. Huang, X. Hua, L. Zhang, "Gradient Centralization: A New
/// Optimization Technique for Deep Neural Networks", 2020). Of the gradient of a parameter with
/// several dimensions, each slice along the first (the weights that lead to one unit) loses its
/// mean:
///
///     g[i] - mean(g[i])
///
/// That is linear: centralized gradients of the parts of a batch add up to that of the whole, so
/// shards change nothing. One object serves a training; the function is const and is called from
/// several threads at once, each with a model of its own.
class @Name@ final : public treadle::GradientStrategy {
 public:
  explicit @Name@(const treadle::Config& config)
      : from_dimensions_(config.get<std::int64_t>("from_dimensions")) {}

 private:
  treadle::BatchLoss do_add_gradients(const treadle::GradientTask& task,
                                      const treadle::Batch& batch,
                                      treadle::ForwardContext& context) const override {
    // What is there already is set aside: those gradients are not this batch's.
    std::vector<at::Tensor> parameters = distinct_parameters(*task.model);
    std::vector<at::Tensor> earlier;
    for (at::Tensor& parameter : parameters) {
      earlier.push_back(parameter.grad());
      parameter.mutable_grad().reset();
    }
    treadle::BatchLoss loss = treadle::back_propagate(task, batch, context);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      at::Tensor own = parameters[i].grad();  // undefined where the batch did not reach
      if (own.defined() && own.dim() >= from_dimensions_)
        own.sub_(mean_of_slices(own));
      if (!earlier[i].defined())
        continue;
      if (own.defined())
        earlier[i].add_(own);
      parameters[i].mutable_grad() = earlier[i];
    }
    return loss;
  }

  /// Layers may share a parameter: it then has several names, and is here once.
  static std::vector<at::Tensor> distinct_parameters(const treadle::Model& model) {
    std::vector<at::Tensor> distinct;
    for (const at::Tensor& parameter : model.parameters()) {
      const auto is_same = [&](const at::Tensor& other) { return other.is_same(parameter); };
      if (std::none_of(distinct.begin(), distinct.end(), is_same))
        distinct.push_back(parameter);
    }
    return distinct;
  }

  /// With sizes of 1 in place of those it was taken over.
  static at::Tensor mean_of_slices(const at::Tensor& gradient) {
    std::vector<std::int64_t> all_but_first(static_cast<std::size_t>(gradient.dim() - 1));
    std::iota(all_but_first.begin(), all_but_first.end(), 1);
    return gradient.mean(all_but_first, /*keepdim=*/true);
  }

  std::int64_t from_dimensions_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
