#include "csv_data.h"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

#include "table_reader.h"

namespace treadle::csv {
namespace {

// Both come from a file that may have been changed.
void check_fits(const TableDescription& description) {
  const bool one_weight_per_class =
      description.class_weights.empty() ||
      description.class_weights.size() == description.target.class_names.size();
  if (description.columns.size() != description.layout.features.size() ||
      description.target.kind == TargetKind::kNone || !one_weight_per_class) {
    throw StorageError("stored description of the data contradicts itself");
  }
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
  rows_.emplace(std::move(table.matrices));
}

StateDict CsvData::do_state() const {
  StateDict state;
  if (!description_)
    return state;
  DataSpec spec;
  spec.inputs = {{"features",
                  {static_cast<std::int64_t>(description_->columns.size())},
                  description_->columns}};
  spec.target = description_->target;
  state.put("layout", to_json(description_->layout));
  state.put("spec", treadle::to_json(spec));
  state.put("class_weights", nlohmann::json(description_->class_weights));
  return state;
}

void CsvData::do_load_state(const StateDict& state) {
  TableDescription description;
  description.layout = table_layout_from_json(state.value("layout"));
  DataSpec spec = data_spec_from_json(state.value("spec"));
  if (spec.inputs.size() != 1)
    throw StorageError("stored description of the data contradicts itself");
  description.columns = std::move(spec.inputs[0].columns);
  description.target = std::move(spec.target);
  try {
    description.class_weights = state.value("class_weights").get<std::vector<double>>();
  } catch (const nlohmann::json::exception& error) {
    throw StorageError(std::string("stored class weights cannot be read: ") + error.what());
  }
  check_fits(description);
  description_ = std::move(description);
}

void* CsvData::do_ask(std::string_view interface_id) {
  if (interface_id == RowReader::kInterface && rows_)
    return static_cast<RowReader*>(&*rows_);
  return nullptr;
}

}  // namespace treadle::csv
