#include <treadle/core/training/structure_search.h>

#include <utility>

namespace treadle {

WeighsOperations::~WeighsOperations() = default;
RecordsStructures::~RecordsStructures() = default;
DerivesNetwork::~DerivesNetwork() = default;

nlohmann::json to_json(const StructureRecord& record) {
  nlohmann::json choices = nlohmann::json::array();
  for (const StructureRecord::Choice& choice : record.choices) {
    nlohmann::json weights = nlohmann::json::object();
    for (std::size_t i = 0; i < choice.weights.size(); ++i)
      weights[choice.of.operations[i]] = choice.weights[i];
    choices.push_back(
        {{"name", choice.of.name},
         {"node", choice.of.node},
         {"weights", std::move(weights)},
         {"chosen", choice.chosen ? nlohmann::json(choice.of.operations[*choice.chosen])
                                  : nlohmann::json()}});
  }
  return {{"structure", record.structure}, {"choices", std::move(choices)}};
}

}  // namespace treadle
