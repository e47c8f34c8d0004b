#include <array>
#include <string>

#include <nlohmann/json.hpp>

#include "csv_data.h"
#include "memory_file.h"
#include "table_promises.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;

/// Documents that a stranger's table is given to.
const std::array<Json, 3>& readings() {
  static const std::array<Json, 3> all{
      Json::object(),
      Json{{"header", false}, {"separator", ";"}, {"target", 0}, {"missing", "nan"}},
      Json{{"target", Json::array({{{"name", "t"}, {"columns", {0}}, {"kind", "classes"}}})},
           {"categorical", {1}},
           {"time", 2},
           {"group", 3},
           {"missing", "drop_row"}}};
  return all;
}

}  // namespace

void csv(std::string_view bytes) {
  const MemoryFile file(bytes);
  for (const Json& reading : readings())
    read_table<csv::CsvData>(reading, file, bytes.size());
}

}  // namespace treadle::fuzz
