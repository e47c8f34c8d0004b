#include "freezing.h"

#include <fnmatch.h>

#include <algorithm>

#include <treadle/base/near_miss.h>

namespace treadle {
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

std::vector<at::Tensor> all_meant(const Model& model, const Config& config, const char* key) {
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

bool contains(const std::vector<at::Tensor>& tensors, const at::Tensor& wanted) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const at::Tensor& tensor) { return tensor.is_same(wanted); });
}

}  // namespace

Freezing::Freezing(Model& model, const Config& config) {
  if (config.has("freeze"))
    frozen_ = all_meant(model, config, "freeze");
  if (config.has("unfreeze")) {
    for (const Config& entry : config.children("unfreeze")) {
      entries_.push_back(all_meant(model, entry, "parameters"));
      for (const at::Tensor& parameter : entries_.back()) {
        if (parameter.requires_grad() && !contains(frozen_, parameter)) {
          entry.fail("parameters",
                     "some of these are trained from the start; name them in "
                     "\"freeze\", too, or only those that are frozen here");
        }
      }
    }
  }
  const std::vector<at::Tensor> parameters = model.parameters();
  const bool trains_any =
      std::any_of(parameters.begin(), parameters.end(), [&](const at::Tensor& parameter) {
        return parameter.requires_grad() && !contains(frozen_, parameter);
      });
  if (trains_any)
    return;
  if (!frozen_.empty())
    config.fail("freeze", "this leaves nothing to train");
  config.fail("", parameters.empty() ? "the model has no parameters, so there is nothing to train"
                                     : "all parameters of the model are frozen, so there is "
                                       "nothing to train");
}

void Freezing::begin() {
  for (at::Tensor& parameter : frozen_)
    parameter.set_requires_grad(false);
}

void Freezing::unfreeze(std::size_t entry) {
  for (at::Tensor& parameter : entries_[entry])
    parameter.set_requires_grad(true);
}

}  // namespace treadle
