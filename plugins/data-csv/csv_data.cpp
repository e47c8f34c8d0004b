#include "csv_data.h"

#include <treadle/base/path_words.h>

#include "csv_source.h"
#include "written_form.h"

namespace treadle::csv {

std::unique_ptr<table::TableSource> CsvData::do_source(table::SourceUse use) const {
  return std::make_unique<CsvSource>(options_, use);
}

TableProfile CsvData::do_profile() const {
  const std::vector<std::string>& missing_values = table_options().missing_values;
  nlohmann::json parameters = nlohmann::json::object();
  CsvSource source(as_written(options_, missing_values, parameters), table::SourceUse::kProfile);
  TableProfile profile = profile_table(source, missing_values);
  profile.parameters = std::move(parameters);
  return profile;
}

}  // namespace treadle::csv
