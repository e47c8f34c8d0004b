#include <treadle/core/model/weights_sources.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <torch/nn/module.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/components/module_state.h>

#include "model/weights_refusal.h"

namespace treadle {
namespace {

bool is_below(const std::string& name, const std::string& node) {
  return node.empty() || (name.size() > node.size() && name[node.size()] == '.' &&
                          name.compare(0, node.size(), node) == 0);
}

/// The tensors below `from`, called as below `to`.
NamedTensors renamed(const WeightsSource& source) {
  if (source.from == source.to && source.from.empty())
    return source.tensors;
  NamedTensors part;
  const std::size_t cut = source.from.empty() ? 0 : source.from.size() + 1;
  const std::string prefix = source.to.empty() ? "" : source.to + ".";
  for (const auto& [name, tensor] : source.tensors) {
    if (is_below(name, source.from))
      part.emplace(prefix + name.substr(cut), tensor);
  }
  return part;
}

/// The nodes that have tensors themselves: "encoder.0" of "encoder.0.weight".
std::vector<std::string> owners(const NamedTensors& tensors) {
  std::set<std::string> names;
  for (const auto& [name, unused] : tensors) {
    if (const std::size_t dot = name.rfind('.'); dot != std::string::npos)
      names.insert(name.substr(0, dot));
  }
  return {names.begin(), names.end()};
}

bool has_any_below(const NamedTensors& tensors, const std::string& node) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const auto& entry) { return is_below(entry.first, node); });
}

std::string nothing_below(const std::string& node, const NamedTensors& tensors) {
  const std::vector<std::string> known = owners(tensors);
  return "has no weights below " + quote_text(node) + did_you_mean(node, known) + "; there are " +
         name_list(known);
}

class Loading {
 public:
  Loading(torch::nn::Module& module, std::span<const WeightsSource> sources)
      : module_(module), own_(module_state(module).tensors()) {
    for (const WeightsSource& source : sources)
      add(source);
    if (!mistakes_.empty())
      throw StorageError(mistakes_);
  }

  std::vector<std::string> load() {
    for (const NamedTensors& part : parts_)
      load_matching_weights(module_, part);
    return std::move(left_);
  }

 private:
  void add(const WeightsSource& source) {
    left_.emplace_back();
    parts_.push_back(renamed(source));
    if (!source.from.empty() && !has_any_below(source.tensors, source.from))
      return complain(source, nothing_below(source.from, source.tensors));
    if (!source.to.empty() && !has_any_below(own_, source.to))
      return complain(source, "the model " + nothing_below(source.to, own_));
    WeightsDifference difference = compare_weights(module_, parts_.back());
    std::erase_if(difference.missing,
                  [&](const std::string& name) { return !is_below(name, source.to); });
    const std::string of_model =
        source.to.empty() ? "the model" : quote_text(source.to) + " of the model";
    if (!source.is_strict && !fits_any(module_, parts_.back()))
      return complain(source, "no tensor of it fits " + of_model + prefix_hint(source));
    if (!difference.empty() && (source.is_strict || difference.is_damage())) {
      return complain(source, refusal_of(difference, of_model));
    }
    left_.back() = difference.text();
    for (const auto& [name, dtype] : source.left_out) {
      if (!is_below(name, source.from))
        continue;
      const std::string text = quote_text(name) + " has dtype " + dtype;
      if (source.is_strict)
        return complain(source,
                        text + ", which cannot be read; convert it, or set \"strict\": false");
      left_.back() += (left_.back().empty() ? "" : "; ") + ("not readable: " + text);
    }
    expect_given_once(source);
  }

  /// Many files have their tensors below a node that the model does not have.
  std::string prefix_hint(const WeightsSource& source) const {
    for (const auto& [name, tensor] : source.tensors) {
      const std::string below = name.substr(name.find('.') + 1);
      const std::string prefix = source.to.empty() ? "" : source.to + ".";
      const auto own = own_.find(prefix + below);
      if (below != name && source.from.empty() && own != own_.end() &&
          own->second.sizes() == tensor.sizes()) {
        const std::string node = name.substr(0, name.find('.'));
        return ": it has " + quote_text(name) + " for " + quote_text(own->first) +
               "; set \"from\": " + quote_text(node);
      }
    }
    return "; it has " + name_list(owners(source.tensors)) + ", and the model has " +
           name_list(owners(own_));
  }

  void expect_given_once(const WeightsSource& source) {
    for (const auto& [name, unused] : parts_.back()) {
      if (own_.count(name) == 0)
        continue;
      const auto [first, is_new] = given_.emplace(name, source.file);
      if (!is_new) {
        complain(source, "gives " + quote_text(name) + ", and so does " + first->second +
                             "; say by \"from\" which nodes of each file are meant");
      }
    }
  }

  void complain(const WeightsSource& source, const std::string& message) {
    mistakes_ += (mistakes_.empty() ? "" : "\n") + source.file + ": " + message;
  }

  torch::nn::Module& module_;
  const NamedTensors own_;
  std::vector<NamedTensors> parts_;
  std::vector<std::string> left_;
  std::map<std::string, std::string> given_;  ///< tensor of the module -> file
  std::string mistakes_;
};

}  // namespace

std::vector<std::string> load_weights(torch::nn::Module& module,
                                      std::span<const WeightsSource> sources) {
  return Loading(module, sources).load();
}

}  // namespace treadle
