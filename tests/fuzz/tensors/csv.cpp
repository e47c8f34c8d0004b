#include <array>
#include <string>

#include <nlohmann/json.hpp>

#include "csv_data.h"
#include "memory_file.h"
#include "rows.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;
using Purpose = OpenRequest::Purpose;

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

void read(Json parameters, const MemoryFile& file, std::size_t size) {
  parameters["path"] = file.path().string();
  const auto provider = [&] { return csv::CsvData(Config(parameters, "/data")); };
  std::string refusal;
  csv::CsvData data = provider();
  if (!opens(data, {}, size, refusal))
    return;
  const ReadRows rows = read_rows(data);

  csv::CsvData again = provider();
  again.load_state(data.state());
  OpenRequest request;
  request.purpose = Purpose::kEvaluate;
  promise(opens(again, request, size, refusal), "what was trained on can be evaluated: " + refusal);
  const ReadRows evaluated = read_rows(again);
  promise(evaluated.inputs == rows.inputs && evaluated.targets == rows.targets,
          "a table has the same rows when it is read again");
  if (rows.order.empty())
    promise(evaluated == rows, "a table without groups or times is the same when it is read again");

  csv::CsvData unlabelled = provider();
  unlabelled.load_state(data.state());
  request.purpose = Purpose::kPredict;
  const bool is_open = opens(unlabelled, request, size, refusal);
  // A row to predict cannot be dropped.
  promise(is_open || parameters.value("missing", "") == "drop_row",
          "what was trained on can be predicted: " + refusal);
}

}  // namespace

void csv(std::string_view bytes) {
  const MemoryFile file(bytes);
  for (const Json& reading : readings())
    read(reading, file, bytes.size());
}

}  // namespace treadle::fuzz
