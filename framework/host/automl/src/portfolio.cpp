#include <treadle/host/automl/portfolio.h>

#include <algorithm>
#include <utility>

#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/problem.h>
#include <treadle/embedded/automl_portfolio.h>

namespace treadle::automl {
namespace {

using Json = nlohmann::json;

constexpr const char* kModel = "model";
constexpr const char* kLossOfTask = "$loss";

[[noreturn]] void refuse(const std::string& file, const std::string& message) {
  throw DocumentError({{Place{file}, "", message}});
}

/// `value` with every "$loss" in it replaced.
Json with_loss(Json value, const Json& loss) {
  if (value == kLossOfTask)
    return loss;
  if (value.is_structured()) {
    for (Json& part : value)
      part = with_loss(std::move(part), loss);
  }
  return value;
}

/// The first component in `value` that is not there; empty where all are.
std::string missing_component(const Json& value,
                              const std::function<bool(const std::string&)>& has_component) {
  if (!value.is_structured())
    return {};
  if (value.is_object() && value.contains("use") && !has_component(value.at("use")))
    return value.at("use");
  for (const Json& part : value) {
    if (std::string missing = missing_component(part, has_component); !missing.empty())
      return missing;
  }
  return {};
}

/// Whether a value that goes with the family has `path` within it.
bool replaces(const Family& family, const std::string& path) {
  return std::any_of(family.with.items().begin(), family.with.items().end(),
                     [&](const auto& entry) {
                       return path == entry.key() || path.starts_with(entry.key() + ".");
                     });
}

Family family_of(const Json& entry) {
  Family family{entry.at("name"), entry.at(kModel)};
  family.with = entry.value("with", Json::object());
  family.space = entry.value("space", Json::object());
  family.start = entry.value("start", Json());
  family.max_inputs = entry.value("max_inputs", family.max_inputs);
  const Json seconds = entry.value("seconds", Json::object());
  family.row_seconds = seconds.value("row", 0.0);
  family.column_seconds = seconds.value("column", 0.0);
  return family;
}

}  // namespace

Portfolio Portfolio::parse(std::string_view text, std::string file) {
  const auto document = Document::parse(text, file);
  const Json& value = document->value();
  Portfolio portfolio;
  portfolio.file_ = std::move(file);
  try {
    portfolio.tasks_ = value.at("tasks");
    portfolio.search_ = value.at("search");
    portfolio.document_ = value.at("document");
    portfolio.space_ = value.at("space");
    for (const Json& entry : value.at("families"))
      portfolio.families_.push_back(family_of(entry));
  } catch (const Json::exception& error) {
    refuse(portfolio.file_, std::string("is no portfolio: ") + error.what());
  }
  return portfolio;
}

Portfolio Portfolio::built_in() {
  return parse(embedded::automl_portfolio(), "portfolio.json");
}

const Json& Portfolio::task(std::string_view name) const {
  return tasks_.at(std::string(name));
}

std::vector<Family> Portfolio::families_named(const std::vector<std::string>& names) const {
  if (names.empty())
    return families_;
  std::vector<std::string> all;
  for (const Family& family : families_)
    all.push_back(family.name);
  std::vector<Family> chosen;
  for (const std::string& name : names) {
    const auto found = std::find(all.begin(), all.end(), name);
    if (found == all.end()) {
      throw UsageError("--families: no family is called " + quote_text(name) +
                       "; the families are " + name_list(all) + did_you_mean(name, all));
    }
    const Family& family = families_[static_cast<std::size_t>(found - all.begin())];
    if (std::find(chosen.begin(), chosen.end(), family) == chosen.end())
      chosen.push_back(family);
  }
  return chosen;
}

std::vector<Portfolio::LeftOut> Portfolio::leave_out_unless(
    const std::function<bool(const std::string& component)>& has_component) {
  std::vector<LeftOut> left_out;
  std::erase_if(families_, [&](const Family& family) {
    std::string missing =
        missing_component(Json::array({family.model, family.with}), has_component);
    if (missing.empty())
      return false;
    left_out.push_back({family.name, std::move(missing)});
    return true;
  });
  return left_out;
}

Json Portfolio::document_of(const std::vector<Family>& families, std::string_view task_name) const {
  const auto front = std::min_element(
      families.begin(), families.end(),
      [](const Family& a, const Family& b) { return a.with.size() < b.with.size(); });
  Json document = document_;
  document[kModel] = front->model;
  if (families.size() > 1)
    return document;  // each trial has what belongs to its family
  const auto whole = Document::from_json(std::move(document));
  for (const auto& [path, value] : front->with.items()) {
    if (!value.is_null() || whole->value().contains(path))
      whole->set(path, with_loss(value, task(task_name).at("loss")).dump());
  }
  return whole->value();
}

Json Portfolio::space_of(const std::vector<Family>& families, std::string_view task_name,
                         const Json& common) const {
  const Json& loss = task(task_name).at("loss");
  // A choice of one would be a dimension that teaches nothing.
  const bool is_choice = families.size() > 1;
  Json space = Json::object();
  Json of_all = space_;
  of_all.update(common);
  for (const auto& [path, dimension] : of_all.items()) {
    Json models = Json::array();
    for (const Family& family : families) {
      if (!replaces(family, path))
        models.push_back(family.model);
    }
    if (models.empty())
      continue;
    space[path] = dimension;
    if (models.size() < families.size())
      space[path]["when"][kModel] = std::move(models);
  }
  Json models = Json::array();
  for (const Family& family : families)
    models.push_back(family.model);
  const auto add = [&](const Family& family, const std::string& path, const Json& dimension) {
    Json& there = space[path];
    Json without_condition = there;
    if (there.is_object())
      without_condition.erase("when");
    if (!there.is_null() && without_condition != dimension) {
      refuse(file_, "the family " + quote_text(family.name) + " has other values for " +
                        quote_text(path) + " than another one: " + dimension.dump() + " and " +
                        without_condition.dump());
    }
    if (there.is_null()) {
      there = dimension;
      there["when"][kModel] = Json::array();
    }
    if (there.contains("when"))
      there["when"][kModel].push_back(family.model);
  };
  for (const Family& family : families) {
    for (const auto& [path, value] : family.with.items()) {
      if (is_choice)
        add(family, path, {{"choice", Json::array({with_loss(value, loss)})}});
    }
    for (const auto& [path, dimension] : family.space.items())
      add(family, path, dimension);
  }
  if (is_choice) {
    space[kModel] = {{"choice", std::move(models)}};
  } else {
    for (auto& [path, dimension] : space.items())
      dimension.erase("when");
  }
  return space;
}

Json Portfolio::starts_of(const std::vector<Family>& families) {
  Json starts = Json::array();
  for (const Family& family : families) {
    if (family.start.is_null())
      continue;
    Json start = family.start;
    start["description"] = family.name;
    if (families.size() > 1)
      start[kModel] = family.model;
    starts.push_back(std::move(start));
  }
  return starts;
}

}  // namespace treadle::automl
