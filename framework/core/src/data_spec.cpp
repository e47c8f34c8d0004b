#include <treadle/core/data_spec.h>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle {
namespace {

struct KindName {
  TargetKind kind;
  const char* name;
};
constexpr KindName kKindNames[] = {{TargetKind::kNone, "none"},
                                   {TargetKind::kClasses, "classes"},
                                   {TargetKind::kNumbers, "numbers"}};

const char* name_of(TargetKind kind) {
  for (const KindName& entry : kKindNames) {
    if (entry.kind == kind)
      return entry.name;
  }
  throw ContractViolation("unknown target kind");
}

TargetKind kind_of(const std::string& name) {
  for (const KindName& entry : kKindNames) {
    if (name == entry.name)
      return entry.kind;
  }
  throw StorageError("stored data description: unknown target kind \"" + name + "\"");
}

nlohmann::json port_to_json(const PortSpec& port) {
  nlohmann::json columns = nlohmann::json::array();
  for (const Column& column : port.columns) {
    columns.push_back({{"name", column.name},
                       {"categories", column.categories},
                       {"may_be_missing", column.may_be_missing}});
  }
  return {{"name", port.name}, {"shape", port.shape}, {"columns", std::move(columns)}};
}

PortSpec port_from_json(const nlohmann::json& stored) {
  PortSpec port;
  port.name = stored.at("name");
  port.shape = stored.at("shape").get<std::vector<std::int64_t>>();
  for (const nlohmann::json& column : stored.at("columns")) {
    port.columns.push_back({column.at("name"),
                            column.at("categories").get<std::vector<std::string>>(),
                            column.at("may_be_missing").get<bool>()});
  }
  return port;
}

}  // namespace

nlohmann::json to_json(const DataSpec& spec) {
  nlohmann::json inputs = nlohmann::json::array();
  for (const PortSpec& port : spec.inputs)
    inputs.push_back(port_to_json(port));
  return {{"inputs", std::move(inputs)},
          {"target",
           {{"name", spec.target.name},
            {"kind", name_of(spec.target.kind)},
            {"width", spec.target.width},
            {"class_names", spec.target.class_names}}},
          {"has_weights", spec.has_weights}};
}

DataSpec data_spec_from_json(const nlohmann::json& stored) try {
  DataSpec spec;
  for (const nlohmann::json& port : stored.at("inputs"))
    spec.inputs.push_back(port_from_json(port));
  const nlohmann::json& target = stored.at("target");
  spec.target.name = target.at("name");
  spec.target.kind = kind_of(target.at("kind"));
  spec.target.width = target.at("width");
  spec.target.class_names = target.at("class_names").get<std::vector<std::string>>();
  spec.has_weights = stored.at("has_weights");
  return spec;
} catch (const nlohmann::json::exception& error) {
  throw StorageError(std::string("stored data description cannot be read: ") + error.what());
}

}  // namespace treadle
