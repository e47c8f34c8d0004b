#include "csv_data.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>

#include "file_profile.h"
#include "table_reader.h"

namespace treadle::csv {
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
  if (!fits || spec.inputs.empty() ||
      input_ports(description.layout, description.columns, spec.inputs[0].dtype).size() !=
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

CsvData::CsvData(const Config& config) : options_(config) {}

CsvData::~CsvData() = default;

void CsvData::do_open(const OpenRequest& request) {
  if (request.purpose != OpenRequest::Purpose::kTrain && !description_) {
    throw ContractViolation("csv data for evaluation or prediction needs the state of a training");
  }
  Table table = read_table(options_, request, description_);
  description_ = std::move(table.description);
  source_.emplace(options_, table.lines);
  texts_.emplace(options_, std::move(table.lines));
  origins_.emplace(description_->layout);
  clocks_.emplace(std::move(table.utc_offsets));
  if (table.matrices.groups.defined())
    groups_.emplace(std::move(table.group_names));
  rows_.emplace(std::move(table.matrices));
}

std::vector<std::vector<std::string>> CsvData::Texts::do_texts(
    const std::vector<std::string>& names) const {
  return read_texts(options_, *lines_, names);
}

std::string CsvData::Source::do_source_hash() const {
  std::string rows = hash_file(options_.path) + " " + std::to_string(lines_->rows());
  for (const auto& [row, line] : lines_->breaks())
    rows += " " + std::to_string(row) + ":" + std::to_string(line);
  return hash_text(rows);
}

TableProfile CsvData::Profiler::do_profile() const {
  return profile_file(options_);
}

StateDict CsvData::do_state() const {
  StateDict state;
  if (!description_)
    return state;
  DataSpec spec;
  spec.inputs = input_ports(description_->layout, description_->columns, at::kFloat);
  spec.targets = description_->targets;
  spec.has_dates = description_->has_dates;
  state.put("layout", to_json(description_->layout));
  state.put("spec", treadle::to_json(spec));
  if (!description_->groups.empty())
    state.put("groups", nlohmann::json(description_->groups));
  return state;
}

void CsvData::do_load_state(const StateDict& state) {
  TableDescription description;
  description.layout = table_layout_from_json(state.value("layout"));
  DataSpec spec = data_spec_from_json(state.value("spec"));
  description.columns = columns_of(description.layout, spec);
  description.targets = spec.targets;
  description.has_dates = spec.has_dates;
  if (state.has_value("groups"))
    description.groups = state.value("groups").get<std::vector<std::string>>();
  check_fits(description, spec);
  description_ = std::move(description);
}

std::vector<ColumnOrigin> CsvData::Origins::do_of_input(const std::string& column) const {
  for (const UsedColumn& feature : layout_.features) {
    const std::vector<std::string> inputs = feature.inputs();
    if (std::find(inputs.begin(), inputs.end(), column) != inputs.end())
      return {{feature.name, 0}};
  }
  return {};
}

std::vector<std::string> CsvData::Origins::do_of_target(const std::string& target) const {
  std::vector<std::string> columns;
  for (const TargetColumns& known : layout_.targets) {
    for (const UsedColumn& column : known.columns) {
      if (known.name == target)
        columns.push_back(column.name);
    }
  }
  return columns;
}

void* CsvData::do_ask(std::string_view interface_id) {
  if (interface_id == RowReader::kInterface && rows_)
    return static_cast<RowReader*>(&*rows_);
  if (interface_id == SourceHash::kInterface && source_)
    return static_cast<SourceHash*>(&*source_);
  if (interface_id == SourceColumns::kInterface && texts_)
    return static_cast<SourceColumns*>(&*texts_);
  if (interface_id == LocalTimes::kInterface && clocks_)
    return static_cast<LocalTimes*>(&*clocks_);
  if (interface_id == ColumnOrigins::kInterface && origins_)
    return static_cast<ColumnOrigins*>(&*origins_);
  if (interface_id == TableProfiler::kInterface)
    return static_cast<TableProfiler*>(&profiler_);
  if (interface_id == GroupNames::kInterface && groups_)
    return static_cast<GroupNames*>(&*groups_);
  return nullptr;
}

}  // namespace treadle::csv
