#pragma once

#include <nlohmann/json.hpp>

#include "drawing.h"

/// Small files for the data components that read some, and what a document says of them.
namespace treadle::testing {

/// Writes table.csv and returns parameters of the component "csv" that suit it.
nlohmann::json csv_parameters(Drawing& drawing);
/// The same as a table of table.db, which the writer "sqlite" writes, for the component "sqlite".
nlohmann::json sqlite_parameters(Drawing& drawing);
/// Writes table.jsonl and returns parameters of the component "jsonl" that suit it.
nlohmann::json jsonl_parameters(Drawing& drawing);
/// Writes table.parquet and returns parameters of the component "parquet" that suit it.
nlohmann::json parquet_parameters(Drawing& drawing);
/// Writes arrays and returns parameters of the component "npy" that suit them.
nlohmann::json npy_parameters(Drawing& drawing);
/// Writes texts.jsonl and returns parameters of the component "text" that suit it.
nlohmann::json text_parameters(Drawing& drawing);

}  // namespace treadle::testing
