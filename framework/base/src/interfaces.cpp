#include <treadle/base/interfaces.h>

#include <array>

namespace treadle {
namespace {

constexpr std::array kNames{
    InterfaceName{"data", "treadle.data/1", "reads rows: features, targets, weights"},
    InterfaceName{"transform", "treadle.transform/1", "fits on training rows, changes batches"},
    InterfaceName{"validation", "treadle.validation/1", "splits rows into training and validation"},
    InterfaceName{"model", "treadle.model/1", "builds a network for given inputs and outputs"},
    InterfaceName{"layer", "treadle.layer/1", "one node of a model graph, or a step of a flow"},
    InterfaceName{"graph", "treadle.graph/1", "builds networks, or pieces of them, as flows"},
    InterfaceName{"loss", "treadle.loss/1", "what training makes smaller"},
    InterfaceName{"gradients", "treadle.gradients/1", "makes gradients of a batch"},
    InterfaceName{"optimizer", "treadle.optimizer/1", "updates parameters from gradients"},
    InterfaceName{"schedule", "treadle.schedule/1", "the learning rate as a function of the step"},
    InterfaceName{"metric", "treadle.metric/1", "a number people judge a model by"},
    InterfaceName{"training", "treadle.training/1", "the training loop"},
    InterfaceName{"observer", "treadle.observer/1", "hears what happens in a run"},
};

}  // namespace

std::span<const InterfaceName> interface_names() {
  return kNames;
}

std::string_view interface_id(std::string_view word) {
  for (const InterfaceName& name : kNames) {
    if (name.word == word)
      return name.id;
  }
  return {};
}

std::string_view interface_word(std::string_view id) {
  for (const InterfaceName& name : kNames) {
    if (name.id == id)
      return name.word;
  }
  return {};
}

}  // namespace treadle
