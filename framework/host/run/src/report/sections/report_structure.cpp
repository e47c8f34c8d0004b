#include "report/sections/report_structure.h"

#include <algorithm>
#include <vector>

#include "report/report_html.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;
using Json = nlohmann::json;

/// A column for each operation, in the order of their first places.
std::vector<std::string> operations_of(const Json& choices) {
  std::vector<std::string> names;
  for (const Json& choice : choices) {
    const Json& weights = at_path(choice, {"weights"});
    for (const auto& [name, weight] : weights.items()) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  }
  return names;
}

std::string structure_card(const Json& structure) {
  const Json& choices = at_path(structure, {"choices"});
  const std::vector<std::string> operations = operations_of(choices);
  std::vector<std::string> head{"place", "chosen"};
  for (const std::string& operation : operations)
    head.push_back(html::escape(operation));
  std::vector<std::vector<std::string>> rows;
  for (const Json& choice : choices) {
    const Json& chosen = at_path(choice, {"chosen"});
    auto& row = rows.emplace_back();
    row = {html::escape(text_at_path(choice, {"name"})),
           chosen.is_string() ? html::escape(chosen.get<std::string>()) : "left out"};
    for (const std::string& operation : operations) {
      const Json& weight = at_path(choice, {"weights", operation});
      row.push_back(weight.is_number() ? html::share(weight) : "");
    }
  }
  return html::card(
      "Structure: " + html::escape(text_at_path(structure, {"structure"})),
      html::scrolling(html::table("", head, rows), true) +
          "<p class=\"note\">Weights of the operations in the mixture at the end. "
          "<code>architecture.json</code> beside this file is the document of the network that was "
          "chosen: <code>workflow-runner run architecture.json</code> trains it from the "
          "start.</p>");
}

}  // namespace

std::string structures(const ReportInput& input) {
  std::string cards;
  const Json& all = at_path(input.result, {"structures"});
  for (const Json& structure : all)
    cards += structure_card(structure);
  return cards;
}

}  // namespace treadle::report
