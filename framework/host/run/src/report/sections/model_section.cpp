#include <string>
#include <utility>

#include "report/sections/sections.h"

namespace treadle::report {
namespace {

/// "The model holds the weights of epoch 34, the best by r2."
Json kept_weights(const ChosenWeights& weights) {
  const std::string held = weights.are_average ? "The model holds the average of the weights at "
                                               : "The model holds the weights of ";
  if (!weights.are_best)
    return note(List{held + "the last epoch, ", as("count", weights.epoch), "."});
  return note(List{held + "epoch ", as("count", weights.epoch),
                   weights.by.empty() ? ", the best." : ", the best by " + weights.by + "."});
}

Json parts_table(const std::vector<std::vector<std::string>>& parts) {
  constexpr std::size_t kTextColumns = 3;
  if (parts.empty())
    return {};
  List columns;
  for (const std::string& name : parts.front())
    columns.push_back({{"name", name}, {"left", columns.size() < kTextColumns}});
  return table(columns, List(parts.begin() + 1, parts.end()));
}

}  // namespace

Json model_card(const RunResult& result) {
  List rows = facts_in(to_json(result.training.model_info),
                       {{"name", "name", "setting"},
                        {"version", "version", "setting"},
                        {"architecture", "architecture", "setting"},
                        {"parameters", "parameter_count", "count"},
                        {"bytes of weights", "weight_bytes", "setting"},
                        {"input shape", "input_shape", "shape"},
                        {"output shape", "output_shape", "shape"}});
  return card("Model", {facts(std::move(rows)),
                        result.has_model() ? kept_weights(result.training.weights) : Json()});
}

Json model_parts(const ModelDrawing& model) {
  Json parts = parts_table(model.parts);
  const std::size_t begin = model.svg.find("<svg");  // behind the XML declaration
  if (begin == std::string::npos)
    return card("Model graph", {std::move(parts)});
  Json picture{
      {"block", "picture"}, {"svg", model.svg.substr(begin)}, {"label", "The model's graph"}};
  return group({card("Model graph", {std::move(picture)}), card("Nodes", {std::move(parts)})});
}

}  // namespace treadle::report
