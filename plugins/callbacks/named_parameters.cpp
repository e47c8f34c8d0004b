#include "named_parameters.h"

#include <fnmatch.h>

#include <algorithm>

#include <treadle/base/near_miss.h>
#include <treadle/core/model/abilities/names_parts.h>

namespace treadle::callbacks {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;

std::vector<at::Tensor> meant_by(const std::string& word, const Model& model, const Named& named,
                                 const Config& config, const char* key) {
  std::vector<std::string> parts;
  std::vector<at::Tensor> found;
  if (const auto* names = dynamic_cast<const NamesParts*>(&model)) {
    parts = names->part_names();
    if (std::find(parts.begin(), parts.end(), word) != parts.end()) {
      const std::vector<std::string> its = names->parameters_of_part(word);
      for (const auto& [name, parameter] : named) {
        if (std::find(its.begin(), its.end(), name) != its.end())
          found.push_back(parameter);
      }
      if (found.empty())
        config.fail(key, "what is tagged \"" + word + "\" has no parameters");
      return found;
    }
  }
  for (const auto& [name, parameter] : named) {
    if (fnmatch(word.c_str(), name.c_str(), 0) == 0)
      found.push_back(parameter);
  }
  if (found.empty()) {
    std::vector<std::string> known = parts;
    std::string list;
    for (const auto& [name, parameter] : named) {
      list += (list.empty() ? "" : ", ") + name;
      known.push_back(name);
    }
    config.fail(key, "\"" + word + "\" names no parameter of the model, which has " + list +
                         did_you_mean(word, known));
  }
  return found;
}

}  // namespace

std::vector<at::Tensor> parameters_named(const Model& model, const Config& config,
                                         const char* key) {
  Named named;
  for (const auto& item : model.named_parameters())
    named.emplace_back(item.key(), item.value());
  std::vector<at::Tensor> all;
  for (const std::string& word : config.get<std::vector<std::string>>(key)) {
    const std::vector<at::Tensor> more = meant_by(word, model, named, config, key);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace treadle::callbacks
