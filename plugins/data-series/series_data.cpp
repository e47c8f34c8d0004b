#include "series_data.h"

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/data/abilities/local_times.h>
#include <treadle/core/data/group_names.h>

namespace treadle::series {

SeriesData::SeriesData(const Config& config, const ComponentContext& context)
    : options_(config), source_(make_nested<DataProvider>(context, config, "source")) {}

SeriesData::~SeriesData() = default;

void SeriesData::do_open(const OpenRequest& request) {
  source_->open(request);
  const auto* const rows = source_->ask<RowReader>();
  if (rows == nullptr) {
    throw DataError("the data series sorts its rows, and its source can only be read in order");
  }
  const auto* const clocks = source_->ask<LocalTimes>();
  rows_.emplace(
      series_rows(*rows, options_, clocks != nullptr ? clocks->utc_offsets() : at::Tensor()));
  if (const auto* const origins = source_->ask<ColumnOrigins>())
    origins_.emplace(*origins, options_);
}

std::vector<ColumnOrigin> SeriesData::Origins::do_of_input(const std::string& column) const {
  for (const SeriesOptions::Lag& lag : options_.lags) {
    if (column != lag.name())
      continue;
    std::vector<ColumnOrigin> made_of = source_.of_input(lag.column);
    for (ColumnOrigin& origin : made_of)
      origin.steps_before += lag.is_difference ? 0 : lag.steps;
    return made_of;
  }
  return source_.of_input(column);
}

StateDict SeriesData::do_state() const {
  StateDict state;
  state.put("source", source_->state());
  return state;
}

void SeriesData::do_load_state(const StateDict& state) {
  source_->load_state(state.part("source"));
}

void* SeriesData::do_ask(std::string_view interface_id) {
  if (interface_id == RowReader::kInterface && rows_)
    return static_cast<RowReader*>(&*rows_);
  if (interface_id == ColumnOrigins::kInterface && origins_)
    return static_cast<ColumnOrigins*>(&*origins_);
  if (interface_id == GroupNames::kInterface)
    return source_->ask<GroupNames>();
  return nullptr;
}

}  // namespace treadle::series
