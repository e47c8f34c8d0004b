#include <treadle/base/interfaces.h>

#include <algorithm>
#include <array>
#include <utility>

#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle {
namespace {

const std::array kNames{
    InterfaceName{"data", "treadle.data/0", "reads rows: features, targets, weights"},
    InterfaceName{"tokenizer", "treadle.tokenizer/0", "turns text into numbers and back"},
    InterfaceName{"sequence", "treadle.sequence/0", "makes samples of rows: windows, lags"},
    InterfaceName{"transform", "treadle.transform/0", "fits on training rows, changes batches"},
    InterfaceName{"validation", "treadle.validation/0", "splits rows into training and validation"},
    InterfaceName{"model", "treadle.model/0", "builds a network for given inputs and outputs"},
    InterfaceName{"layer", "treadle.layer/0", "is one node of a model graph, or a step of a flow"},
    InterfaceName{"graph", "treadle.graph/0", "builds networks, or pieces of them, as flows"},
    InterfaceName{"loss", "treadle.loss/0", "defines the objective that training minimizes"},
    InterfaceName{"gradients", "treadle.gradients/0", "computes the gradients of a batch"},
    InterfaceName{"optimizer", "treadle.optimizer/0", "updates parameters from gradients"},
    InterfaceName{"schedule", "treadle.schedule/0",
                  "computes the learning rate as a function of the step"},
    InterfaceName{"metric", "treadle.metric/0", "computes a number that measures a model"},
    InterfaceName{"output", "treadle.output/0",
                  "acts on predictions: calibrates them, sets intervals, decides"},
    InterfaceName{"training", "treadle.training/0", "is the training loop"},
    InterfaceName{"sampler", "treadle.sampler/0",
                  "decides the order in which training rows are taken"},
    InterfaceName{"callback", "treadle.callback/0",
                  "acts in the training loop: stops, keeps weights, averages"},
    InterfaceName{"device", "treadle.device/0", "is a kind of device that models are trained on"},
    InterfaceName{"communicator", "treadle.communicator/0",
                  "moves bytes between the processes of a training"},
    InterfaceName{"writer", "treadle.writer/0",
                  "writes tables: predictions to a file or a database"},
    InterfaceName{"observer", "treadle.observer/0", "receives the events of a run"},
    InterfaceName{"tuner", "treadle.tuner/0", "suggests the points of a hyperparameter search"},
    InterfaceName{"storage", "treadle.storage/0", "keeps a study that several processes work on"},
    InterfaceName{"pruner", "treadle.pruner/0", "ends or pauses trials that do not promise much"},
};

}  // namespace

std::span<const InterfaceName> interface_names() {
  return kNames;
}

InterfaceTable::InterfaceTable() : names_(kNames.begin(), kNames.end()) {}

const InterfaceName* InterfaceTable::add(InterfaceName name) {
  const auto earlier = std::find_if(names_.begin(), names_.end(), [&](const InterfaceName& other) {
    return other.word == name.word || other.id == name.id;
  });
  if (earlier == names_.end()) {
    names_.push_back(std::move(name));
    return nullptr;
  }
  return earlier->word == name.word && earlier->id == name.id ? nullptr : &*earlier;
}

std::string_view InterfaceTable::id(std::string_view word) const {
  for (const InterfaceName& name : names_) {
    if (name.word == word)
      return name.id;
  }
  return {};
}

std::string_view InterfaceTable::word(std::string_view id) const {
  for (const InterfaceName& name : names_) {
    if (name.id == id)
      return name.word;
  }
  return {};
}

std::string InterfaceTable::explain_unknown(std::string_view word) const {
  std::vector<std::string> words;
  for (const InterfaceName& name : names_)
    words.push_back(name.word);
  return "unknown interface " + quote_text(word) + did_you_mean(word, words);
}

}  // namespace treadle
