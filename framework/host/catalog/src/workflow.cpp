#include <treadle/host/catalog/workflow.h>

#include <algorithm>

#include <treadle/host/catalog/workflow_document.h>

namespace treadle {
namespace {

nlohmann::json component_of(std::string component, Workflow::Parameters parameters) {
  nlohmann::json slot{{"use", std::move(component)}};
  for (const auto& [name, value] : parameters)
    slot[std::string(name)] = value;
  return slot;
}

/// "training.callbacks" as a JSON pointer; a pointer as it is.
std::string pointer_of(std::string_view path) {
  std::string pointer(path);
  if (pointer.starts_with('/'))
    return pointer;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return "/" + pointer;
}

}  // namespace

Workflow::Workflow(std::string name)
    : document_(Document::from_json({{"treadle", kWorkflowFormat}, {"name", std::move(name)}})) {}

Workflow Workflow::parse(std::string_view text, std::string place) {
  Workflow workflow(Document::parse(text, place));
  workflow.text_ = text;
  workflow.place_ = std::move(place);
  return workflow;
}

Workflow& Workflow::use(std::string_view slot, std::string component, Parameters parameters) {
  return set(slot, component_of(std::move(component), parameters));
}

Workflow& Workflow::add(std::string_view list, std::string component, Parameters parameters) {
  const nlohmann::json slot = component_of(std::move(component), parameters);
  const nlohmann::json::json_pointer place(pointer_of(list));
  if (!json().contains(place))
    return set(list, nlohmann::json::array({slot}));
  nlohmann::json all = json().at(place);
  if (!all.is_array())
    all = nlohmann::json::array({std::move(all)});
  all.push_back(slot);
  return set(list, all);
}

Workflow& Workflow::set(std::string_view path, const nlohmann::json& value) {
  const std::string text = value.dump();
  if (text_.empty()) {
    const std::shared_ptr<Document> changed = Document::from_json(json());
    changed->set(path, text);
    document_ = Document::from_json(changed->value());  // nobody wrote it: values have no places
    return *this;
  }
  const std::shared_ptr<Document> changed = Document::parse(text_, place_);
  for (const auto& [earlier, earlier_text] : changes_)
    changed->set(earlier, earlier_text);
  changed->set(path, text);
  changes_.emplace_back(path, text);
  document_ = changed;
  return *this;
}

}  // namespace treadle
