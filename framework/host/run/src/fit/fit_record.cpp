#include "fit/fit_record.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/json_words.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/model/abilities/counts_forward.h>
#include <treadle/core/model/tensor_spec.h>
#include <treadle/tensor/task_random.h>

namespace treadle::internal {
namespace {

std::string hash_of(const RowList& rows) {
  if (rows.empty())
    return {};
  ContentHash hash;
  rows.for_each_range([&](const RowRange& range) {
    const std::array ends{range.begin, range.end};
    hash.update(std::as_bytes(std::span(ends)));
  });
  return hash.digest();
}

}  // namespace

FitRowCounts row_counts(const FitRows& rows, bool is_stream) {
  FitRowCounts counts;
  if (!is_stream)
    counts.training = rows.training.size();
  counts.validation = rows.validation.size();
  counts.validation_hash = hash_of(rows.validation);
  counts.test = rows.test.size();
  counts.test_hash = hash_of(rows.test);
  return counts;
}

ModelInfo model_info(const DocumentComponents& components, Fit& fit) {
  const ResolvedWorkflow& workflow = components.workflow();
  ModelInfo info;
  info.name = workflow.name;
  info.version = "1";
  info.architecture = workflow.resolved.at("model");
  for (const at::Tensor& parameter : distinct_parameters(fit.model()))
    info.parameter_count += parameter.numel();
  const StateDict weights = module_state(fit.model());
  for (const auto& [name, tensor] : weights.tensors()) {
    info.weight_bytes[TensorSpec({}, tensor.scalar_type()).dtype_text()] +=
        static_cast<std::int64_t>(tensor.nbytes());
  }
  for (const PortSpec& port : fit.model_spec().inputs)
    info.input_shape[port.name] = port.shape;
  for (const OutputSpec& port : fit.model_spec().outputs)
    info.output_shape[port.name] = port.shape;
  info.execution = execution_choice(fit.model());
  return info;
}

ForwardCostResult forward_cost_of(const DocumentComponents& components, const ModelSpec& spec) {
  // Of a model made anew, on the CPU: the trained one may be elsewhere, and stays as it is.
  const TaskRandom random(0);
  const std::shared_ptr<Model> model = components.make_model(spec);
  auto* const counts = dynamic_cast<CountsForward*>(model.get());
  const std::optional<ForwardCost> cost = counts ? counts->forward_cost() : std::nullopt;
  if (!cost) {
    throw DataError(
        "\"flops\" and \"latency\" are counted for flows whose inputs have known sizes, and the "
        "model " +
        quote_value(components.workflow().resolved.at("model").at("use")) +
        " is none; choose other objectives and constraints, such as \"parameter_count\"");
  }
  return {cost->operations, cost->bytes, cost->calls};
}

}  // namespace treadle::internal
