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
#include <treadle/tensor/task_random.h>

namespace treadle::internal {
namespace {

nlohmann::json hash_of(const RowList& rows) {
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

nlohmann::json rows_record(const FitRows& rows, bool is_stream) {
  return {{"training", is_stream ? nlohmann::json() : nlohmann::json(rows.training.size())},
          {"validation", rows.validation.size()},
          {"validation_hash", hash_of(rows.validation)},
          {"test", rows.test.size()},
          {"test_hash", hash_of(rows.test)}};
}

nlohmann::json model_info(const DocumentComponents& components, Fit& fit) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : distinct_parameters(fit.model()))
    count += parameter.numel();
  nlohmann::json inputs = nlohmann::json::object();
  for (const PortSpec& port : fit.model_spec().inputs)
    inputs[port.name] = port.shape;
  nlohmann::json outputs = nlohmann::json::object();
  for (const OutputSpec& port : fit.model_spec().outputs) {
    outputs[port.name] = port.shape;
  }
  const ResolvedWorkflow& workflow = components.workflow();
  nlohmann::json info = {{"name", workflow.name},
                         {"version", "1"},
                         {"architecture", workflow.resolved.at("model")},
                         {"parameter_count", count},
                         {"input_shape", std::move(inputs)},
                         {"output_shape", std::move(outputs)}};
  if (const std::string choice = execution_choice(fit.model()); !choice.empty())
    info["execution"] = choice;
  return info;
}

nlohmann::json forward_cost_record(const DocumentComponents& components, const ModelSpec& spec) {
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
  return {{"operations", cost->operations}, {"bytes", cost->bytes}, {"calls", cost->calls}};
}

}  // namespace treadle::internal
