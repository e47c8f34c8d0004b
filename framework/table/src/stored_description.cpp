#include "stored_description.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::table {
namespace {

// Both come from a file that may have been changed.
void check_fits(const TableDescription& description, const DataSpec& spec) {
  const std::vector<TargetSpec>& targets = description.targets;
  bool fits = description.columns.size() == description.layout.features.size() &&
              targets.size() == description.layout.targets.size();
  for (std::size_t t = 0; fits && t < targets.size(); ++t) {
    const std::size_t width = description.layout.targets[t].columns.size();
    fits = targets[t].kind == TargetKind::kClasses
               ? width == 1 && targets[t].shape.empty()
               : targets[t].shape == std::vector<std::int64_t>{static_cast<std::int64_t>(width)};
  }
  if (!fits || input_ports(description.layout, description.columns, at::kFloat).size() !=
                   spec.inputs.size()) {
    throw StorageError("stored description of the data contradicts itself");
  }
}

/// The features' columns in their own order, from those of the ports.
std::vector<Column> columns_of(const TableLayout& layout, const DataSpec& spec) {
  std::vector<Column> columns;
  std::vector<std::size_t> next(spec.inputs.size(), 0);
  const auto port_named = [&](const std::string& name) {
    const auto found = std::find_if(spec.inputs.begin(), spec.inputs.end(),
                                    [&](const PortSpec& port) { return port.name == name; });
    if (found == spec.inputs.end())
      throw StorageError("stored description of the data contradicts itself");
    return static_cast<std::size_t>(found - spec.inputs.begin());
  };
  for (const UsedColumn& feature : layout.features) {
    const std::string& name = layout.ports[feature.port];
    const std::size_t port =
        port_named(feature.is_category ? (name.empty() ? "categories" : name + ".categories")
                                       : (name.empty() ? "features" : name));
    const std::vector<Column>& available = spec.inputs[port].columns;
    const std::vector<std::string> inputs = feature.inputs();
    const std::size_t first = next[port];
    next[port] += inputs.size();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (first + i >= available.size() || available[first + i].name != inputs[i])
        throw StorageError("stored description of the data contradicts itself");
    }
    columns.push_back(available[first]);
    columns.back().name = feature.name;
  }
  return columns;
}

}  // namespace

void store(const TableDescription& description, StateDict& state) {
  DataSpec spec;
  spec.inputs = input_ports(description.layout, description.columns, at::kFloat);
  spec.targets = description.targets;
  spec.has_dates = description.has_dates;
  state.put("layout", to_json(description.layout));
  state.put("spec", treadle::to_json(spec));
  if (!description.groups.empty())
    state.put("groups", nlohmann::json(description.groups));
}

TableDescription stored_description(const StateDict& state) {
  TableDescription description;
  description.layout = table_layout_from_json(state.value("layout"));
  DataSpec spec = data_spec_from_json(state.value("spec"));
  description.columns = columns_of(description.layout, spec);
  description.targets = spec.targets;
  description.has_dates = spec.has_dates;
  if (state.has_value("groups"))
    description.groups = state.value("groups").get<std::vector<std::string>>();
  check_fits(description, spec);
  return description;
}

}  // namespace treadle::table
