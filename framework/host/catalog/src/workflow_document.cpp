#include <treadle/host/catalog/workflow_document.h>

#include <treadle/embedded/workflow_schema.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <treadle/base/json_words.h>
#include <treadle/host/catalog/device_name.h>
#include <treadle/host/catalog/latency_model.h>

namespace treadle {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLineWidth = 100;

// A document of another version may look entirely different: checking its details would mislead.
void require_format(const Document& document) {
  const Json& value = document.value();
  if (!value.is_object() || !value.contains("treadle"))
    return;
  const Json& version = value["treadle"];
  if (!version.is_number_integer() || version == kWorkflowFormat)
    return;
  throw DocumentError({Problem{document.place_of("/treadle"), "/treadle",
                               "this document has \"treadle\": " + version.dump() +
                                   "; this runner reads " + std::to_string(kWorkflowFormat)}});
}

/// Whether the component's schema has `keyword` with this value; false without the component.
bool declares(const SchemaIndex& index, std::string_view interface_word, const Json& component,
              const char* keyword, bool value) {
  const Json name = component.value("use", Json());
  if (!name.is_string())
    return false;
  const FoundComponent found = index.find(interface_word, name.get<std::string>());
  return found.schema != nullptr && found.schema->contains(keyword) &&
         found.schema->at(keyword) == value;
}

/// The first loss whose schema declares that it is no sum over rows; null without one.
const Json* whole_batch_loss(const Json& resolved, const SchemaIndex& index) {
  const auto loss = resolved.find("loss");
  if (loss == resolved.end())
    return nullptr;
  const auto is_meant = [&](const Json& one) {
    return declares(index, "loss", one, "x-treadle-additive", false);
  };
  if (loss->is_object())
    return is_meant(*loss) ? &*loss : nullptr;
  const auto found = std::find_if(loss->begin(), loss->end(), is_meant);
  return found == loss->end() ? nullptr : &*found;
}

/// A loss that is no sum over rows needs all rows of a step at once.
std::vector<Problem> problems_of_whole_batches(const Json& resolved, const SchemaIndex& index,
                                               const PlaceIndex& places) {
  std::vector<Problem> problems;
  const Json* const loss = whole_batch_loss(resolved, index);
  if (loss == nullptr)
    return problems;
  const std::string its = "the loss " + quote_value(loss->at("use")) +
                          " is computed over whole batches and cannot be cut into ";
  const auto report = [&](const std::string& pointer, std::string message) {
    problems.push_back({places.place_of(pointer), pointer, std::move(message)});
  };
  const Json& shards = resolved.at("resources").at("shards");
  if (shards.is_number() && shards > 1)
    report("/resources/shards", its + "shards: must be 1 or \"auto\", got " + shards.dump());
  const Json transforms = resolved.value("transforms", Json::array());
  for (std::size_t i = 0; i < transforms.size(); ++i) {
    if (!declares(index, "transform", transforms[i], "x-treadle-mixes-rows", true))
      continue;
    report("/transforms/" + std::to_string(i),
           its + "rows, whose losses " + quote_value(transforms[i].at("use")) +
               " mixes: leave this transform out, or take another loss");
  }
  return problems;
}

/// What the schemas of a document's components say about the rest of it, which the resolved
/// document then follows: parts that have no meaning beside them (x-treadle-excludes), values that
/// they fix (x-treadle-sets), and parameters that are multiples of another value
/// (x-treadle-multiple-of).
class Demands {
 public:
  /// `given`: the document as it was written.
  Demands(const Json& given, Json& resolved, const PlaceIndex& places)
      : given_(given), resolved_(resolved), places_(places) {}

  void meet(const UsedComponent& component, const Json& schema) {
    its_ = quote_text(component.name) + " ";
    const Json excluded = schema.value("x-treadle-excludes", Json::object());
    for (const auto& [pointer, why] : excluded.items())
      exclude(pointer, why.get<std::string>());
    const Json fixed = schema.value("x-treadle-sets", Json::object());
    for (const auto& [pointer, one] : fixed.items())
      set(pointer, one.at("value"), one.at("why").get<std::string>());
    const Json parameters = schema.value("properties", Json::object());
    for (const auto& [key, property] : parameters.items()) {
      if (property.contains("x-treadle-multiple-of") && component.parameters.contains(key)) {
        expect_multiple(component.pointer, key, component.parameters.at(key),
                        property.at("x-treadle-multiple-of").get<std::string>());
      }
    }
  }

  std::vector<Problem> problems() && { return std::move(problems_); }

 private:
  void report(const std::string& pointer, const std::string& message) {
    problems_.push_back({places_.place_of(pointer), pointer, its_ + message});
  }

  /// The defaults of a part that is left out go with it: they would be refused in the document of
  /// the run, which is one like any other.
  void exclude(const std::string& pointer, const std::string& why) {
    const Json::json_pointer place(pointer);
    if (given_.contains(place))
      return report(pointer, why);
    if (resolved_.contains(place))
      resolved_.at(place.parent_pointer()).erase(place.back());
  }

  void set(const std::string& pointer, const Json& value, const std::string& why) {
    const Json::json_pointer place(pointer);
    const Json given = given_.contains(place) ? given_.at(place) : value;
    if (given != value && given != "auto")
      return report(pointer, why);
    resolved_[place] = value;
  }

  void expect_multiple(const std::string& component, const std::string& key, const Json& value,
                       const std::string& of) {
    const Json& divisor = resolved_.at(Json::json_pointer(of));
    const std::string name(of.substr(of.rfind('/') + 1));
    if (!divisor.is_number_integer())
      return report(of, "needs a number that divides its " + key + " of " + value.dump());
    const auto size = divisor.get<std::int64_t>();
    const auto number = value.get<std::int64_t>();
    if (number % size == 0)
      return;
    const std::int64_t below = number / size * size;
    report(child_pointer(component, key), "needs a multiple of " + name + ", " + divisor.dump() +
                                              ", got " + value.dump() + "; take " +
                                              (below > 0 ? std::to_string(below) + " or " : "") +
                                              std::to_string(below + size));
  }

  const Json& given_;
  Json& resolved_;
  const PlaceIndex& places_;
  std::string its_;  // the component's name, in messages
  std::vector<Problem> problems_;
};

std::vector<Problem> meet_demands(const Json& given, Checked& checked, const SchemaIndex& index,
                                  const PlaceIndex& places) {
  Demands demands(given, checked.value, places);
  for (const UsedComponent& component : checked.components) {
    const FoundComponent found = index.find(component.interface_word, component.name);
    if (found.schema != nullptr)
      demands.meet(component, *found.schema);
  }
  return std::move(demands).problems();
}

/// A training has one average of its weights.
std::vector<Problem> problems_of_averages(const std::vector<UsedComponent>& components,
                                          const SchemaIndex& index, const PlaceIndex& places) {
  std::vector<Problem> problems;
  std::string first;
  for (const UsedComponent& used : components) {
    if (!declares(index, used.interface_word, Json{{"use", used.name}},
                  "x-treadle-averages-weights", true))
      continue;
    if (first.empty()) {
      first = quote_text(used.name);
      continue;
    }
    problems.push_back({places.place_of(used.pointer), used.pointer,
                        "a training has one average of its weights, and " + first + " and " +
                            quote_text(used.name) + " are two; leave one of them out"});
  }
  return problems;
}

/// Of a component that a key of `resources` names without parameters.
std::vector<Problem> problems_of_name(std::string_view interface_word, const std::string& name,
                                      const std::string& pointer, const SchemaIndex& index,
                                      const PlaceIndex& places) {
  const FoundComponent found = index.find(interface_word, name);
  if (found.schema != nullptr)
    return {};
  return {{places.place_of(pointer), pointer, found.problem, found.plugin_at_fault}};
}

/// One process has no use for it: a wrong name is found before many processes meet.
std::vector<Problem> problems_of_communicator(const Json& resolved, const SchemaIndex& index,
                                              const PlaceIndex& places) {
  const std::string name = resolved.at("resources").value("communicator", "auto");
  if (name == "auto")
    return {};
  return problems_of_name("communicator", name, "/resources/communicator", index, places);
}

/// Whether the machine has the device is known when the plugin is loaded, and not here.
std::vector<Problem> problems_of_device(const Json& resolved, const SchemaIndex& index,
                                        const PlaceIndex& places) {
  const std::string pointer = "/resources/device";
  const auto text = resolved.at("resources").at("device").get<std::string>();
  const std::optional<DeviceName> name = parse_device_name(text);
  if (!name) {
    return {{places.place_of(pointer), pointer,
             "expected \"auto\", or a device with or without its number, such as \"cpu\" or "
             "\"cuda:1\", got " +
                 quote_text(text)}};
  }
  if (name->is_auto())
    return {};
  return problems_of_name("device", name->component, pointer, index, places);
}

/// The points that a search begins with, which stand in a file of their own, become a part of the
/// document: nothing of a run depends on that file later.
void take_in_initial_points(Json& resolved) {
  if (!resolved.contains("search") || !resolved.at("search").contains("initial"))
    return;
  Json& initial = resolved["search"]["initial"];
  if (!initial.is_string())
    return;
  const std::shared_ptr<Document> file = Document::read(initial.get<std::string>());
  const Json& points = file->value();
  std::vector<Problem> problems;
  const auto complain = [&](std::string pointer, std::string message) {
    problems.push_back({file->place_of(pointer), pointer, std::move(message)});
  };
  if (!points.is_array() || points.empty()) {
    complain("",
             "expected an array of points, such as [{\"optimizer.learning_rate\": 0.01}], got " +
                 (points.is_array() ? "an empty one" : describe_value(points)));
  }
  for (std::size_t i = 0; points.is_array() && i < points.size(); ++i) {
    const std::string pointer = child_pointer("", i);
    if (!points[i].is_object()) {
      complain(pointer, "expected an object with values by path, got " + describe_value(points[i]));
    } else if (points[i].contains("description") && !points[i].at("description").is_string()) {
      complain(child_pointer(pointer, "description"),
               "expected text, got " + describe_value(points[i].at("description")));
    }
  }
  if (!problems.empty())
    throw DocumentError(std::move(problems));
  initial = points;
}

/// The machine of a search, in numbers: a study stays the same wherever it goes on. A file is read
/// once, here; without one, a search by latency has the presets.
std::vector<Problem> settle_latency(Json& resolved, const PlaceIndex& places) {
  if (!resolved.contains("search"))
    return {};
  Json& search = resolved["search"];
  const auto names_latency = [](const Json& names) {
    return names == "latency" ||
           (names.is_array() && std::find(names.begin(), names.end(), "latency") != names.end());
  };
  const bool is_used = names_latency(search.value("objective", Json())) ||
                       search.value("constraints", Json::object()).contains("latency");
  if (!search.contains("latency")) {
    if (is_used)
      search["latency"] = LatencyModel().json();
    return {};
  }
  const std::string pointer = "/search/latency";
  const auto problem = [&](std::string message) {
    return std::vector<Problem>{{places.place_of(pointer), pointer, std::move(message)}};
  };
  if (!is_used) {
    return problem(
        "has no effect: no objective or constraint of the search is \"latency\"; leave it out");
  }
  Json& machine = search["latency"];
  try {
    machine = (machine.is_string() ? LatencyModel::read(machine.get<std::string>())
                                   : LatencyModel::from_json(machine))
                  .json();
  } catch (const StorageError& error) {
    return problem(error.what());
  }
  return {};
}

// How people order the keys: as the schema's file lists them, "use" first inside a component.
class Writer {
 public:
  Writer() : order_(nlohmann::ordered_json::parse(embedded::workflow_schema())["properties"]) {}

  std::string write(const Json& value) {
    std::vector<std::string> keys;
    for (const auto& [key, unused] : order_.items())
      keys.push_back(key);
    put(value, 0, keys);
    return std::move(text_) + "\n";
  }

 private:
  void put(const Json& value, std::size_t indent, const std::vector<std::string>& first_keys) {
    const bool top = indent == 0;
    if (value.empty() || !value.is_structured() || (!top && fits_line(value, indent))) {
      put_line(value, first_keys);
      return;
    }
    const std::string margin(indent + 2, ' ');
    const bool is_object = value.is_object();
    text_ += is_object ? "{\n" : "[\n";
    bool is_first = true;
    const auto separate = [&] {
      if (!is_first)
        text_ += ",\n";
      is_first = false;
      text_ += margin;
    };
    static const std::vector<std::string> kUse{"use"};
    if (is_object) {
      for (const std::string& key : ordered_keys(value, first_keys)) {
        separate();
        text_ += Json(key).dump() + ": ";
        put(value[key], indent + 2, kUse);
      }
    } else {
      for (const Json& element : value) {
        separate();
        put(element, indent + 2, kUse);
      }
    }
    text_ += "\n" + std::string(indent, ' ') + (is_object ? "}" : "]");
  }

  void put_line(const Json& value, const std::vector<std::string>& first_keys) {
    if (!value.is_structured()) {
      text_ += value.dump();
      return;
    }
    text_ += value.is_object() ? '{' : '[';
    bool is_first = true;
    if (value.is_object()) {
      for (const std::string& key : ordered_keys(value, first_keys)) {
        text_ += (is_first ? "" : ", ") + Json(key).dump() + ": ";
        is_first = false;
        put_line(value[key], {"use"});
      }
    } else {
      for (const Json& element : value) {
        text_ += is_first ? "" : ", ";
        is_first = false;
        put_line(element, {"use"});
      }
    }
    text_ += value.is_object() ? '}' : ']';
  }

  static bool fits_line(const Json& value, std::size_t indent) {
    // Half a line is left for the key in front and the spaces dump() does not write.
    return value.dump().size() + indent <= kLineWidth / 2;
  }

  static std::vector<std::string> ordered_keys(const Json& object,
                                               const std::vector<std::string>& first) {
    std::vector<std::string> keys;
    for (const std::string& key : first) {
      if (object.contains(key))
        keys.push_back(key);
    }
    for (const auto& [key, unused] : object.items()) {
      if (std::find(first.begin(), first.end(), key) == first.end())
        keys.push_back(key);
    }
    return keys;
  }

  nlohmann::ordered_json order_;
  std::string text_;
};

}  // namespace

Config ResolvedWorkflow::slot(std::string_view key) const {
  return Config(resolved, "", document).child(key);
}

Json workflow_schema() {
  return Json::parse(embedded::workflow_schema());
}

void apply_override(Document& document, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw UsageError("--set expects key=value, as in optimizer.learning_rate=0.003, got " +
                     quote_text(assignment));
  }
  document.set(assignment.substr(0, equals), assignment.substr(equals + 1));
}

ResolvedWorkflow resolve_workflow(std::shared_ptr<const Document> document,
                                  const SchemaIndex& index) {
  require_format(*document);
  Checked checked =
      check(document->value(), workflow_schema(), index, *document, "", document->folder());
  if (!checked.problems.empty())
    throw DocumentError(std::move(checked.problems));
  std::vector<Problem> problems = problems_of_whole_batches(checked.value, index, *document);
  for (Problem& problem : problems_of_device(checked.value, index, *document))
    problems.push_back(std::move(problem));
  for (Problem& problem : problems_of_communicator(checked.value, index, *document))
    problems.push_back(std::move(problem));
  for (Problem& problem : problems_of_averages(checked.components, index, *document))
    problems.push_back(std::move(problem));
  for (Problem& problem : settle_latency(checked.value, *document))
    problems.push_back(std::move(problem));
  for (Problem& problem : meet_demands(document->value(), checked, index, *document))
    problems.push_back(std::move(problem));
  if (!problems.empty())
    throw DocumentError(std::move(problems));
  take_in_initial_points(checked.value);

  ResolvedWorkflow workflow;
  workflow.name = checked.value["name"].get<std::string>();
  workflow.seed = checked.value["seed"].get<std::uint64_t>();
  workflow.precision = checked.value["precision"].get<std::string>();
  workflow.resolved = std::move(checked.value);
  workflow.components = std::move(checked.components);
  workflow.document = std::move(document);
  return workflow;
}

ResolvedWorkflow read_workflow(const std::filesystem::path& path,
                               std::span<const std::string> overrides, const SchemaIndex& index) {
  const std::shared_ptr<Document> document = Document::read(path);
  for (const std::string& assignment : overrides)
    apply_override(*document, assignment);
  return resolve_workflow(document, index);
}

std::string write_workflow(const Json& resolved) {
  return Writer().write(resolved);
}

}  // namespace treadle
