#include "class_rows.h"

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

std::vector<std::vector<std::int64_t>> rows_of_classes(const SplitRequest& request,
                                                       std::size_t target) {
  const at::Tensor& values = request.target_values.at(target);
  TREADLE_EXPECTS(values.defined() && values.scalar_type() == at::kLong && values.dim() == 1 &&
                      values.size(0) == request.rows,
                  "targets of classes are int64 [rows]");
  const at::Tensor targets = values.contiguous();
  const auto* const classes = targets.data_ptr<std::int64_t>();
  std::vector<std::vector<std::int64_t>> rows(
      static_cast<std::size_t>(request.targets[target].class_count()));
  for (std::int64_t row = 0; row < request.rows; ++row)
    rows.at(static_cast<std::size_t>(classes[row])).push_back(row);
  return rows;
}

std::vector<std::int64_t> all_rows_but(std::int64_t rows,
                                       const std::vector<std::int64_t>& without) {
  std::vector<std::int64_t> rest;
  rest.reserve(static_cast<std::size_t>(rows) - without.size());
  auto next = without.begin();
  for (std::int64_t row = 0; row < rows; ++row) {
    if (next != without.end() && *next == row) {
      ++next;
    } else {
      rest.push_back(row);
    }
  }
  return rest;
}

}  // namespace treadle::validation
