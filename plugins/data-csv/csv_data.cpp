#include "csv_data.h"

#include <nlohmann/json.hpp>

#include "csv_source.h"
#include "written_form.h"

namespace treadle::csv {

std::unique_ptr<table::TableSource> CsvData::do_source(table::SourceUse use) const {
  return std::make_unique<CsvSource>(options_, use);
}

TableProfile CsvData::do_profile() const {
  const std::vector<std::string>& missing_values = table_options().missing_values;
  const auto profile = [&](const CsvOptions& given, nlohmann::json parameters) {
    const CsvOptions options = as_written(given, missing_values, parameters);
    table::DateFormat dates = table_options().date_format;
    if (const std::string format =
            dates.is_iso() ? written_date_format(options, missing_values) : "";
        !format.empty()) {
      dates = table::DateFormat(format);
      parameters["date_format"] = format;
    }
    CsvSource source(options, table::SourceUse::kProfile);
    TableProfile found = profile_table(source, missing_values, dates);
    found.parameters = std::move(parameters);
    return found;
  };
  try {
    return profile(options_, nlohmann::json::object());
  } catch (const EncodingError& error) {
    CsvOptions options = options_;
    options.encoding = error.likely();
    return profile(options, {{"encoding", options.encoding}});
  }
}

}  // namespace treadle::csv
