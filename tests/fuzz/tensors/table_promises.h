#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

#include "memory_file.h"
#include "rows.h"
#include "targets.h"

namespace treadle::fuzz {

/// The promises of a source of tables: the file is refused in words, or the same rows are read from
/// it again with the state of the training, to evaluate and to predict.
template <typename Data>
void read_table(nlohmann::json parameters, const MemoryFile& file, std::size_t size) {
  using Purpose = OpenRequest::Purpose;
  parameters["path"] = file.path().string();
  const auto provider = [&] { return Data(Config(parameters, "/data")); };
  std::string refusal;
  Data data = provider();
  if (!opens(data, {}, size, refusal))
    return;
  const ReadRows rows = read_rows(data);

  Data again = provider();
  again.load_state(data.state());
  OpenRequest request;
  request.purpose = Purpose::kEvaluate;
  promise(opens(again, request, size, refusal), "what was trained on can be evaluated: " + refusal);
  const ReadRows evaluated = read_rows(again);
  promise(evaluated.inputs == rows.inputs && evaluated.targets == rows.targets,
          "a table has the same rows when it is read again");
  if (rows.order.empty())
    promise(evaluated == rows, "a table without groups or times is the same when it is read again");

  Data unlabelled = provider();
  unlabelled.load_state(data.state());
  request.purpose = Purpose::kPredict;
  const bool is_open = opens(unlabelled, request, size, refusal);
  // A row to predict cannot be dropped.
  promise(is_open || parameters.value("missing", "") == "drop_row",
          "what was trained on can be predicted: " + refusal);
}

}  // namespace treadle::fuzz
