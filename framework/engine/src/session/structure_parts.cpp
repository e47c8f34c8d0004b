#include "structure_parts.h"

#include <set>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::engine {

StructureParts::StructureParts(Model& model, const ParameterArena& arena) {
  std::set<std::string> names;
  std::set<std::string> structures;
  for (const auto& module : model.named_modules("", /*include_self=*/false)) {
    auto* const layer = dynamic_cast<WeighsOperations*>(module.value().get());
    if (layer == nullptr)
      continue;
    layers_.push_back(layer);
    names.insert(module.key() + "." + std::string(WeighsOperations::kParameter));
    if (!structures.insert(layer->structure()).second) {
      throw DataError("two structures of the model are called " + quote_text(layer->structure()) +
                      "; give each a name of its own");
    }
  }
  if (layers_.empty()) {
    throw DataError(
        "nothing in the model can be chosen; a search of its structure needs a network with "
        "operations that are mixed, such as the graph builder \"cell_network\" without \"edges\"");
  }
  for (const Segment& segment : arena.segments()) {
    const bool is_one = names.count(segment.name) > 0;
    alphas_.push_back(is_one);
    rest_.push_back(!is_one);
  }
}

}  // namespace treadle::engine
