#include <string>
#include <utility>

#include "report/sections/sections.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;

/// "The model holds the weights of epoch 34, the best by r2."
Json kept_weights(const Json& weights) {
  const Json& epoch = at_path(weights, {"epoch"});
  if (!epoch.is_number_integer())
    return {};
  const std::string held = at_path(weights, {"averaged"}) == true
                               ? "The model holds the average of the weights at "
                               : "The model holds the weights of ";
  if (text_at_path(weights, {"chosen"}) != "best")
    return note(List{held + "the last epoch, ", as("count", epoch), "."});
  const std::string by = text_at_path(weights, {"by"});
  return note(List{held + "epoch ", as("count", epoch),
                   by.empty() ? ", the best." : ", the best by " + by + "."});
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

Json model_card(const Json& result) {
  List rows =
      facts_in(at_path(result, {"model_info"}), {{"name", "name", "setting"},
                                                 {"version", "version", "setting"},
                                                 {"architecture", "architecture", "setting"},
                                                 {"parameters", "parameter_count", "count"},
                                                 {"input shape", "input_shape", "shape"},
                                                 {"output shape", "output_shape", "shape"}});
  if (rows.empty())
    return {};
  return card("Model", {facts(std::move(rows)), kept_weights(at_path(result, {"weights"}))});
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
