#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/model/abilities/logs_values.h>
#include <treadle/core/model/abilities/names_parameter_roles.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/model/logged_values.h>
#include <treadle/core/training/structure_search.h>

/// The mixed operation of DARTS (Liu et al. 2019, arXiv:1806.09055, equation 2), in two layers, so
/// that the cells of a network can have their weights in common:
///
///     y = sum over i of  softmax(alpha)_i · op_i(x)
///
/// whose gradient is d alpha_i = w_i (g · op_i(x) - sum over j of w_j g · op_j(x)), with g that of
/// y and the products summed over all elements.
namespace treadle::cells {

/// softmax of its alphas for each choice, over the operations that are allowed. Of the stream it
/// takes the number of rows: every row gets the same, [B, choices, most operations].
///
/// alphas begin at 0. Logs "entropy": the mean over choices, in nats; 0 where all is decided.
class OperationWeights final : public Layer,
                               public WeighsOperations,
                               public LogsValues,
                               public NamesParameterRoles {
 public:
  OperationWeights(const Config& config, const LayerSpec& spec);

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

  const std::string& structure() const override { return structure_; }
  std::span<const OperationChoice> choices() const override { return choices_; }
  at::Tensor weights() const override;
  void allow(std::size_t choice, const std::vector<bool>& operations) override;
  std::vector<bool> allowed(std::size_t choice) const override;
  std::vector<std::string> logged_names() const override { return {"entropy"}; }
  Roles parameter_roles() const override { return all(ParameterRole::kTable, {alphas_}); }

 private:
  at::Tensor mixed() const;  // [choices, most operations], differentiable

  std::string structure_;
  std::vector<OperationChoice> choices_;
  at::Tensor alphas_;
  at::Tensor allowed_;  // bool, like alphas
};

/// The sum of its branches, each times its weight: of the outputs of all operations of a choice,
/// and of OperationWeights' output, which is its reference.
class WeightedSum final : public Layer {
 public:
  WeightedSum(const Config& config, const LayerSpec& spec);
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;

 private:
  std::int64_t choice_;
};

/// Zeros, of the stream's sizes.
class Zero final : public Layer {
 public:
  Zero(const Config&, const LayerSpec&) : Layer("zero") {}
  at::Tensor forward(const Inputs& inputs, LayerContext& context) override;
};

}  // namespace treadle::cells
