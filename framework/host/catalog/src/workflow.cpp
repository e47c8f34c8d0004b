#include <treadle/host/catalog/workflow.h>

#include <treadle/host/catalog/workflow_document.h>

namespace treadle {
namespace {

nlohmann::json component_of(std::string component, Workflow::Parameters parameters) {
  nlohmann::json slot{{"use", std::move(component)}};
  for (const auto& [name, value] : parameters)
    slot[std::string(name)] = value;
  return slot;
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
  nlohmann::json slot = component_of(std::move(component), parameters);
  const auto found = json().find(list);
  if (found == json().end())
    return set(list, nlohmann::json::array({std::move(slot)}));
  return set(std::string(list) + "." + std::to_string(found->size()), slot);
}

Workflow& Workflow::set(std::string_view path, const nlohmann::json& value) {
  changes_.emplace_back(path, value.dump());
  document_->set(path, changes_.back().second);
  return *this;
}

std::shared_ptr<const Document> Workflow::document() const {
  if (text_.empty())  // nobody wrote it, so its values have no places
    return Document::from_json(json());
  std::shared_ptr<Document> copy = Document::parse(text_, place_);
  for (const auto& [path, value] : changes_)
    copy->set(path, value);
  return copy;
}

}  // namespace treadle
