#include "stratified_target.h"

#include <algorithm>
#include <string>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::validation {

namespace {

bool has_class_per_row(const TargetSpec& target) {
  return target.kind == TargetKind::kClasses && target.shape.empty();
}

/// `"price" (numbers), "mask" (classes at each position)`.
std::string described(const std::vector<TargetSpec>& targets) {
  std::string text;
  for (const TargetSpec& target : targets) {
    text += (text.empty() ? "" : ", ") + quote_text(target.name) + " (" +
            std::string(name_of(target.kind)) +
            (target.position_dimensions() > 0 ? " at each position)" : ")");
  }
  return text;
}

}  // namespace

std::optional<bool> stratify_in(const Config& config) {
  if (!config.has("stratify") || config.json()["stratify"].is_string())
    return std::nullopt;
  return config.get<bool>("stratify");
}

void fail_without_classes(const SplitRequest& request, const char* what) {
  throw DataError(std::string("validation has ") + what +
                  ", which needs a target with one class per row; " +
                  (request.targets.size() == 1 ? "the target is " : "the targets are ") +
                  described(request.targets));
}

std::optional<std::size_t> stratified_target(const SplitRequest& request,
                                             const std::optional<std::string>& name) {
  const std::vector<TargetSpec>& targets = request.targets;
  const auto found = std::find_if(targets.begin(), targets.end(), [&](const TargetSpec& target) {
    return name ? target.name == *name : has_class_per_row(target);
  });
  if (name && found == targets.end()) {
    std::vector<std::string> names;
    for (const TargetSpec& target : targets)
      names.push_back(target.name);
    throw DataError("validation has \"stratify_by\": " + quote_text(*name) +
                    ", which is no target; the targets are " + quoted_list(names) +
                    did_you_mean(*name, names));
  }
  if (found == targets.end())
    return std::nullopt;
  if (!has_class_per_row(*found)) {
    fail_without_classes(request, ("\"stratify_by\": " + quote_text(*name)).c_str());
  }
  return static_cast<std::size_t>(found - targets.begin());
}

}  // namespace treadle::validation
