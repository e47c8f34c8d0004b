#include <treadle/core/data/data_spec.h>

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle {
namespace {

template <typename Value>
struct SpecWord {
  Value value;
  const char* word;
};
constexpr SpecWord<TargetKind> kKinds[] = {{TargetKind::kClasses, "classes"},
                                           {TargetKind::kNumbers, "numbers"},
                                           {TargetKind::kLabels, "labels"},
                                           {TargetKind::kDistribution, "distribution"}};
constexpr SpecWord<Role> kRoles[] = {
    {Role::kFeatures, "features"}, {Role::kCategories, "categories"}, {Role::kTokens, "tokens"},
    {Role::kImage, "image"},       {Role::kLengths, "lengths"},       {Role::kMask, "mask"},
    {Role::kSegments, "segments"}};
constexpr SpecWord<c10::ScalarType> kPortDtypes[] = {{c10::ScalarType::Float, "float32"},
                                                     {c10::ScalarType::Double, "float64"},
                                                     {c10::ScalarType::Long, "int64"},
                                                     {c10::ScalarType::Byte, "uint8"},
                                                     {c10::ScalarType::Bool, "bool"}};

template <typename Value, std::size_t N>
const char* word_for(const SpecWord<Value> (&table)[N], Value value) {
  for (const SpecWord<Value>& entry : table) {
    if (entry.value == value)
      return entry.word;
  }
  throw ContractViolation("a data description has a kind, role or dtype that cannot be stored");
}

template <typename Value, std::size_t N>
Value value_for(const SpecWord<Value> (&table)[N], const std::string& word) {
  for (const SpecWord<Value>& entry : table) {
    if (word == entry.word)
      return entry.value;
  }
  throw StorageError("stored data description: unknown word \"" + word + "\"");
}

nlohmann::json port_to_json(const PortSpec& port) {
  nlohmann::json columns = nlohmann::json::array();
  for (const Column& column : port.columns) {
    columns.push_back({{"name", column.name},
                       {"categories", column.categories},
                       {"may_be_missing", column.may_be_missing}});
  }
  return {{"name", port.name},
          {"role", word_for(kRoles, port.role)},
          {"dtype", word_for(kPortDtypes, port.dtype)},
          {"shape", port.shape},
          {"columns", std::move(columns)},
          {"vocabulary_size", port.vocabulary_size},
          {"of", port.of}};
}

PortSpec port_from_json(const nlohmann::json& stored) {
  PortSpec port;
  port.name = stored.at("name");
  port.role = value_for(kRoles, stored.at("role"));
  port.dtype = value_for(kPortDtypes, stored.at("dtype"));
  port.shape = stored.at("shape").get<std::vector<std::int64_t>>();
  for (const nlohmann::json& column : stored.at("columns")) {
    port.columns.push_back({column.at("name"),
                            column.at("categories").get<std::vector<std::string>>(),
                            column.at("may_be_missing").get<bool>()});
  }
  port.vocabulary_size = stored.at("vocabulary_size");
  port.of = stored.at("of");
  return port;
}

nlohmann::json target_to_json(const TargetSpec& target) {
  return {{"name", target.name},
          {"kind", word_for(kKinds, target.kind)},
          {"shape", target.shape},
          {"class_names", target.class_names},
          {"padded_like", target.padded_like}};
}

TargetSpec target_from_json(const nlohmann::json& stored) {
  TargetSpec target;
  target.name = stored.at("name");
  target.kind = value_for(kKinds, stored.at("kind"));
  target.shape = stored.at("shape").get<std::vector<std::int64_t>>();
  target.class_names = stored.at("class_names").get<std::vector<std::string>>();
  target.padded_like = stored.at("padded_like");
  if (target.kind != TargetKind::kClasses && target.shape.empty())
    throw StorageError("stored data description: target \"" + target.name + "\" has no width");
  return target;
}

template <typename Named>
std::size_t index_of(const std::vector<Named>& all, std::string_view name, const char* what) {
  std::string names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name)
      return i;
    names += (names.empty() ? "" : ", ") + all[i].name;
  }
  throw DataError("the data has no " + std::string(what) + " \"" + std::string(name) + "\"; " +
                  (names.empty() ? "it has none" : "it has " + names));
}

}  // namespace

std::string_view name_of(TargetKind kind) {
  return word_for(kKinds, kind);
}

std::vector<std::int64_t> TargetSpec::positions() const {
  return {shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(position_dimensions())};
}

std::int64_t TargetSpec::width() const {
  return kind == TargetKind::kClasses ? 1 : shape.back();
}

TargetSpec class_target(std::string name, std::vector<std::string> class_names,
                        std::vector<std::int64_t> positions) {
  return {std::move(name), TargetKind::kClasses, std::move(positions), std::move(class_names)};
}

TargetSpec number_target(std::string name, std::int64_t width) {
  return {std::move(name), TargetKind::kNumbers, {width}};
}

std::size_t DataSpec::target_index(std::string_view name) const {
  return index_of(targets, name, "target");
}

std::size_t DataSpec::input_index(std::string_view name) const {
  return index_of(inputs, name, "input");
}

nlohmann::json to_json(const DataSpec& spec) {
  nlohmann::json inputs = nlohmann::json::array();
  for (const PortSpec& port : spec.inputs)
    inputs.push_back(port_to_json(port));
  nlohmann::json targets = nlohmann::json::array();
  for (const TargetSpec& target : spec.targets)
    targets.push_back(target_to_json(target));
  nlohmann::json stored = {{"inputs", std::move(inputs)},
                           {"targets", std::move(targets)},
                           {"has_weights", spec.has_weights}};
  if (spec.has_dates)
    stored["has_dates"] = true;
  return stored;
}

DataSpec data_spec_from_json(const nlohmann::json& stored) try {
  DataSpec spec;
  for (const nlohmann::json& port : stored.at("inputs"))
    spec.inputs.push_back(port_from_json(port));
  for (const nlohmann::json& target : stored.at("targets"))
    spec.targets.push_back(target_from_json(target));
  spec.has_weights = stored.at("has_weights");
  spec.has_dates = stored.value("has_dates", false);
  return spec;
} catch (const nlohmann::json::exception&) {
  throw StorageError("the stored description of the data is damaged: restore it from a copy");
}

void expect_kind(const std::string& who, std::initializer_list<TargetKind> kinds,
                 const TargetSpec& target, std::string_view instead) {
  if (std::find(kinds.begin(), kinds.end(), target.kind) != kinds.end())
    return;
  std::string needed;
  for (const TargetKind kind : kinds)
    needed += (needed.empty() ? "" : " or ") + std::string(name_of(kind));
  // Numbers that losses and metrics would take as classes are classes already, unless they have
  // fractions, or another loss takes them as they are.
  const bool may_be_classes =
      target.kind == TargetKind::kNumbers && target.width() == 1 &&
      std::find(kinds.begin(), kinds.end(), TargetKind::kClasses) != kinds.end();
  throw DataError(who + " needs " + needed + ", but the target \"" + target.name + "\" is " +
                  std::string(name_of(target.kind)) + "; use " + std::string(instead) +
                  (may_be_classes ? ", or set \"task\": \"classification\" in the data if its "
                                    "numbers stand for classes"
                                  : ""));
}

}  // namespace treadle
