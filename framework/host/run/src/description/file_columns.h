#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <treadle/host/run/runtime.h>

#include "description/described_rows.h"

namespace treadle::internal {

class DocumentComponents;

/// Adds the columns of the file that no model is given as table.others: dates as times, others as
/// numbers, categories or texts. The time of the rows gets the name that its column has in the
/// file. Nothing where the data does not describe its columns.
void add_file_columns(const Runtime& runtime, const DocumentComponents& components,
                      DescribedRows& described);

/// Seconds since 1970-01-01T00:00:00Z of an ISO 8601 date, with or without a time of day and an
/// offset: "2024-06-01", "2024-06-01T13:30:05+02:00". Nothing for other texts.
std::optional<double> seconds_of_date(std::string_view text);

}  // namespace treadle::internal
