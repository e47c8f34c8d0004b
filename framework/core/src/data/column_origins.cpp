#include <treadle/core/data/column_origins.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/port_spec.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/core/data/target_spec.h>

namespace treadle {
namespace {

struct Answer {
  std::string target;
  std::int64_t steps_before = 0;
};

/// The newest value of a target that a column is made of.
std::optional<Answer> newest_answer(const ColumnOrigins& origins,
                                    const std::vector<TargetSpec>& targets,
                                    const std::string& column) {
  std::optional<Answer> newest;
  for (const ColumnOrigin& origin : origins.of_input(column)) {
    for (const TargetSpec& target : targets) {
      const std::vector<std::string> columns = origins.of_target(target.name);
      if (std::find(columns.begin(), columns.end(), origin.column) != columns.end() &&
          (!newest || origin.steps_before < newest->steps_before)) {
        newest = {target.name, origin.steps_before};
      }
    }
  }
  return newest;
}

std::string counted(std::int64_t steps) {
  return std::to_string(steps) + (steps == 1 ? " step" : " steps");
}

/// `ahead`: of the input's last row.
[[noreturn]] void refuse(const RowReader& rows, const PortSpec& port, const std::string& column,
                         const Answer& answer, std::int64_t ahead) {
  std::string text = "input " + quote_text(port.name) + " has column " + quote_text(column) +
                     ", which is made of target " + quote_text(answer.target);
  text += answer.steps_before == 0 ? " at its own step"
                                   : ", " + counted(answer.steps_before) + " before its own";
  // The first step whose answer is not known when the sample is predicted.
  const std::int64_t steps = rows.samples() != nullptr && port.shape.size() > 1 ? port.shape[0] : 1;
  const std::int64_t first = std::max<std::int64_t>(1, steps - ahead + answer.steps_before + 1);
  text +=
      ": " + rows.describe_row(0) +
      (steps > 1 ? ", step " + std::to_string(first) + " of " + std::to_string(steps) + "," : "") +
      " would hold what is to be predicted, and so would all others; leave the column out of "
      "this input, or take its value at least " +
      counted(ahead) + " before";
  throw DataError(text);
}

}  // namespace

ColumnOrigins::~ColumnOrigins() = default;

void expect_no_answers(const RowReader& rows, const ColumnOrigins& origins) {
  const DataSpec& spec = rows.spec();
  const bool is_reconstruction =
      std::all_of(spec.inputs.begin(), spec.inputs.end(), [&](const PortSpec& port) {
        return !port.columns.empty() &&
               std::all_of(port.columns.begin(), port.columns.end(), [&](const Column& column) {
                 const auto answer = newest_answer(origins, spec.targets, column.name);
                 return answer && answer->steps_before == 0;
               });
      });
  for (std::size_t input = 0; input < spec.inputs.size(); ++input) {
    const PortSpec& port = spec.inputs[input];
    const std::int64_t ahead = rows.samples() != nullptr ? rows.samples()->steps_ahead(input) : 1;
    for (const Column& column : port.columns) {
      const auto answer = newest_answer(origins, spec.targets, column.name);
      const bool is_task = is_reconstruction && rows.samples() == nullptr;
      if (answer && answer->steps_before < ahead && !is_task)
        refuse(rows, port, column.name, *answer, ahead);
    }
  }
}

}  // namespace treadle
