#include "trees_model.h"

#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "tree_objective.h"

namespace treadle::trees {
namespace {

constexpr const char* kWho = "model \"gradient_boosted_trees\" ";

std::int64_t columns_of(const ModelSpec& spec) {
  std::int64_t columns = 0;
  for (const PortSpec& port : spec.inputs) {
    std::int64_t elements = 1;
    for (const std::int64_t size : port.shape) {
      if (size == kVaries) {
        throw DataError(std::string(kWho) + "takes inputs of a fixed size, but the sizes of " +
                        quote_text(port.name) + " vary from row to row; use the model \"flow\"");
      }
      elements *= size;
    }
    if (port.role == Role::kTokens) {
      throw DataError("port " + quote_text(port.name) + " has tokens, which " + kWho +
                      "would take for numbers; use the model \"flow\"");
    }
    columns += elements;
  }
  if (columns == 0)
    throw DataError(std::string(kWho) + "needs at least one input column, but the data has none");
  return columns;
}

}  // namespace

TreesModel::TreesModel(const ModelSpec& spec, GrowthOptions options)
    : options_(std::move(options)),
      width_(spec.outputs.front().width()),
      dtype_(spec.dtype),
      trees_(columns_of(spec), margins_for(spec)) {}

at::Tensor TreesModel::rows_of(const Inputs& inputs) {
  std::vector<at::Tensor> tables;
  for (const at::Tensor& input : inputs)
    tables.push_back(input.reshape({input.size(0), -1}).to(at::kCPU, at::kFloat));
  return (tables.size() == 1 ? tables.front() : at::cat(tables, 1)).contiguous();
}

at::Tensor TreesModel::output_of(const at::Tensor& margins) const {
  return margins.size(1) == width_ ? margins : at::cat({at::zeros_like(margins), margins}, 1);
}

void TreesModel::keep_margins(bool keeps) {
  kept_ = keeps ? std::make_unique<KeptMargins>() : nullptr;
}

void TreesModel::forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) {
  const at::Tensor rows = rows_of(inputs);
  const at::Tensor margins = kept_ ? kept_->margins_of(rows, trees_) : trees_.margins_of(rows);
  outputs[0] = output_of(margins).to(inputs.front().device(), dtype_);
}

void TreesModel::load_extra_state(std::string_view bytes) {
  trees_.load(bytes);
  if (kept_)
    kept_ = std::make_unique<KeptMargins>();
}

TreesProvider::TreesProvider(const Config& config) : options_(config) {}

std::shared_ptr<Model> TreesProvider::do_create(const ModelSpec& spec) const {
  return std::make_shared<TreesModel>(spec, options_);
}

}  // namespace treadle::trees
