#include "pipeline/stage_reference.h"

#include <string_view>
#include <utility>

namespace treadle::internal {
namespace {

constexpr std::string_view kPrefix = "stage:";

bool is_reference(const nlohmann::json& value) {
  return value.is_string() && value.get_ref<const std::string&>().starts_with(kPrefix);
}

void collect(const nlohmann::json& content, std::set<std::string>& found) {
  if (is_reference(content)) {
    found.insert(content.get<std::string>());
  } else if (content.is_structured()) {
    for (const nlohmann::json& value : content)
      collect(value, found);
  }
}

}  // namespace

std::pair<std::string, std::string> parts_of_reference(const std::string& reference) {
  const std::string rest = reference.substr(kPrefix.size());
  const std::size_t slash = rest.find('/');
  return {rest.substr(0, slash), slash == std::string::npos ? "" : rest.substr(slash + 1)};
}

std::set<std::string> references_in(const nlohmann::json& content) {
  std::set<std::string> found;
  collect(content, found);
  return found;
}

std::set<std::string> stages_in(const nlohmann::json& content) {
  std::set<std::string> stages;
  for (const std::string& reference : references_in(content))
    stages.insert(parts_of_reference(reference).first);
  return stages;
}

nlohmann::json with_paths(nlohmann::json content,
                          const std::function<std::filesystem::path(const std::string&)>& folder) {
  if (is_reference(content)) {
    const auto [stage, file] = parts_of_reference(content.get<std::string>());
    return (file.empty() ? folder(stage) : folder(stage) / file).string();
  }
  if (content.is_structured()) {
    for (nlohmann::json& value : content)
      value = with_paths(std::move(value), folder);
  }
  return content;
}

}  // namespace treadle::internal
