#include "table_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/path_words.h>

#include "csv_scanner.h"
#include "number_text.h"
#include "row_parser.h"

namespace treadle::csv {
namespace {

using Purpose = OpenRequest::Purpose;

/// Makes tensors and a description of what was parsed.
template <typename T>
class TableBuilder {
 public:
  TableBuilder(std::string shown, const RowPlan& plan, ParsedRows<T> parsed)
      : shown_(std::move(shown)), plan_(plan), parsed_(std::move(parsed)) {}

  Table finish();

 private:
  static constexpr at::ScalarType kDtype = sizeof(T) == sizeof(float) ? at::kFloat : at::kDouble;

  void finish_features(Table& table);
  void finish_target(Table& table);
  void finish_classes(TargetSpec& target);
  void finish_weights(Table& table);
  std::vector<double> class_weights(const TargetSpec& target, const at::Tensor& targets);
  [[noreturn]] void fail(const std::string& message) const {
    throw DataError(shown_ + ": " + message);
  }

  std::string shown_;
  const RowPlan& plan_;
  ParsedRows<T> parsed_;
  std::size_t width_ = plan_.layout.features.size();
};

template <typename T>
Table TableBuilder<T>::finish() {
  if (parsed_.rows == 0) {
    fail(parsed_.dropped > 0 ? "each of the " + std::to_string(parsed_.dropped) +
                                   " rows has a missing value, and \"missing\" is \"drop_row\""
         : plan_.options.header ? std::string("there is a header line, but no row")
                                : std::string("there is no row"));
  }
  Table table;
  table.description.layout = plan_.layout;
  MatrixRows::Matrices& matrices = table.matrices;
  finish_features(table);
  finish_target(table);
  finish_weights(table);
  if (parsed_.groups.size() > 0)
    matrices.groups = parsed_.groups.release({parsed_.rows}, at::kLong);
  if (parsed_.times.size() > 0)
    matrices.timestamps = parsed_.times.release({parsed_.rows}, at::kDouble);
  matrices.spec.inputs = {
      {"features", {static_cast<std::int64_t>(width_)}, table.description.columns}};
  matrices.describe_row = [shown = shown_, lines = parsed_.lines](std::int64_t row) {
    return shown + ":" + std::to_string(lines->line_of(row));
  };
  return table;
}

template <typename T>
void TableBuilder<T>::finish_features(Table& table) {
  std::vector<Column>& columns = table.description.columns;
  if (plan_.known) {
    columns = plan_.known->columns;
  } else {
    for (std::size_t slot = 0; slot < width_; ++slot) {
      Column column{plan_.layout.features[slot].name, {}, parsed_.has_missing[slot] != 0};
      if (plan_.layout.features[slot].is_category) {
        const std::vector<std::int64_t> new_numbers = parsed_.categories[slot].sort();
        column.categories = parsed_.categories[slot].labels();
        T* value = parsed_.features.data() + slot;
        for (std::int64_t row = 0; row < parsed_.rows; ++row, value += width_) {
          if (!std::isnan(*value))
            *value = static_cast<T>(new_numbers[static_cast<std::size_t>(*value)]);
        }
      }
      if (plan_.layout.features[slot].is_category && column.categories.empty())
        fail("column " + quote_text(column.name) + " is a category, but has missing values only");
      columns.push_back(std::move(column));
    }
  }
  table.matrices.inputs = {
      parsed_.features.release({parsed_.rows, static_cast<std::int64_t>(width_)}, kDtype)};
}

template <typename T>
void TableBuilder<T>::finish_target(Table& table) {
  TargetSpec& target = table.description.target;
  if (plan_.request.purpose == Purpose::kPredict) {
    target = plan_.known->target;
    table.description.class_weights = plan_.known->class_weights;
    return;
  }
  if (parsed_.target == TargetKind::kNumbers) {
    target = {plan_.layout.target.name, TargetKind::kNumbers, 1, {}};
    table.matrices.targets = parsed_.target_numbers.release({parsed_.rows, 1}, kDtype);
  } else {
    target = {plan_.layout.target.name, TargetKind::kClasses, 1, {}};
    finish_classes(target);
    table.matrices.targets = parsed_.target_classes.release({parsed_.rows}, at::kLong);
  }
  table.matrices.spec.target = target;
}

template <typename T>
void TableBuilder<T>::finish_classes(TargetSpec& target) {
  if (plan_.known) {
    target.class_names = plan_.known->target.class_names;
    return;
  }
  const std::vector<std::string>& labels = parsed_.classes.labels();
  double value = 0;
  const auto is_number = [&](const std::string& label) { return read_whole_number(label, value); };
  const auto is_fraction = [](const std::string& label) {
    std::string_view text = label;
    return !normalize_integer(text);
  };
  const auto fraction = std::find_if(labels.begin(), labels.end(), is_fraction);
  if (fraction != labels.end() && std::all_of(labels.begin(), labels.end(), is_number)) {
    fail("target " + quote_text(target.name) + " has numbers like " + *fraction +
         "; classes are texts or integers (for numbers, set \"task\": \"regression\" in \"data\" "
         "and take a loss that works on numbers)");
  }
  if (labels.size() == 1) {
    fail("target " + quote_text(target.name) + " has one class only (" + quote_text(labels[0]) +
         "); a classifier needs at least two");
  }
  const std::vector<std::int64_t> new_numbers = parsed_.classes.sort();
  std::int64_t* const numbers = parsed_.target_classes.data();
  for (std::size_t row = 0; row < parsed_.target_classes.size(); ++row)
    numbers[row] = new_numbers[static_cast<std::size_t>(numbers[row])];
  target.class_names = parsed_.classes.labels();
}

template <typename T>
void TableBuilder<T>::finish_weights(Table& table) {
  if (plan_.request.purpose == Purpose::kPredict)
    return;
  const TargetSpec& target = table.description.target;
  std::vector<double>& factors = table.description.class_weights;
  factors =
      plan_.known ? plan_.known->class_weights : class_weights(target, table.matrices.targets);
  if (factors.empty() && !plan_.layout.weight)
    return;
  if (!plan_.layout.weight) {
    std::fill_n(parsed_.weights.room(static_cast<std::size_t>(parsed_.rows)), parsed_.rows, T{1});
    parsed_.weights.commit(static_cast<std::size_t>(parsed_.rows));
  }
  T* const weights = parsed_.weights.data();
  if (!factors.empty()) {
    const std::int64_t* const classes = table.matrices.targets.template data_ptr<std::int64_t>();
    for (std::int64_t row = 0; row < parsed_.rows; ++row)
      weights[row] = static_cast<T>(weights[row] * factors[static_cast<std::size_t>(classes[row])]);
  }
  if (std::all_of(weights, weights + parsed_.rows, [](T weight) { return weight == 0; }))
    fail("every row has the weight 0");
  table.matrices.weights = parsed_.weights.release({parsed_.rows}, kDtype);
  table.matrices.spec.has_weights = true;
}

// Balanced: rows / (classes x rows of the class), as scikit-learn's compute_class_weight.
template <typename T>
std::vector<double> TableBuilder<T>::class_weights(const TargetSpec& target,
                                                   const at::Tensor& targets) {
  if (!plan_.options.balanced && plan_.options.class_weights.empty())
    return {};
  if (target.kind != TargetKind::kClasses) {
    fail("\"class_weights\" needs classes, but the target " + quote_text(target.name) +
         " is numbers");
  }
  const auto classes = static_cast<std::size_t>(target.class_count());
  std::vector<double> factors(classes, 1);
  if (plan_.options.balanced) {
    std::vector<double> counts(classes, 0);
    const std::int64_t* const numbers = targets.data_ptr<std::int64_t>();
    for (std::int64_t row = 0; row < parsed_.rows; ++row)
      counts[static_cast<std::size_t>(numbers[row])] += 1;
    for (std::size_t i = 0; i < classes; ++i)
      factors[i] = static_cast<double>(parsed_.rows) / (static_cast<double>(classes) * counts[i]);
    return factors;
  }
  for (const auto& [name, factor] : plan_.options.class_weights) {
    const auto found = std::find(target.class_names.begin(), target.class_names.end(), name);
    if (found == target.class_names.end()) {
      fail("\"class_weights\" names the class " + quote_text(name) + ", which is not there" +
           "; the classes are " + quoted_list(target.class_names) +
           did_you_mean(name, target.class_names));
    }
    factors[static_cast<std::size_t>(found - target.class_names.begin())] = factor;
  }
  return factors;
}

template <typename T>
Table read_rows(CsvScanner& scanner, const RowPlan& plan) {
  return TableBuilder<T>(scanner.shown(), plan, parse_rows<T>(scanner, plan)).finish();
}

}  // namespace

Table read_table(const CsvOptions& options, const OpenRequest& request,
                 const std::optional<TableDescription>& known) {
  TREADLE_EXPECTS(request.dtype == at::kFloat || request.dtype == at::kDouble,
                  "a table is float32 or float64");
  CsvScanner scanner(options.path, shown_path(options.path), options.separator, options.quote);
  scanner.skip_lines(options.skip_rows);
  if (scanner.begin_row() == nullptr) {
    throw DataError(scanner.shown() +
                    (options.skip_rows == 0
                         ? ": the file is empty"
                         : ": nothing follows the lines that \"skip_rows\" passes over"));
  }
  const std::string place =
      options.header ? scanner.shown() + ":" + std::to_string(scanner.line()) : scanner.shown();
  std::vector<std::string> names =
      options.header ? scanner.read_row()
                     : numbered_columns(static_cast<std::int64_t>(scanner.peek_row().size()));
  const TableLayout layout = known ? known->layout : training_layout(options, names, place);
  const FieldPlan plan =
      plan_fields(layout, std::move(names), options.header, request.purpose, place);
  const RowPlan row_plan{options, request, layout, plan, known};
  return request.dtype == at::kFloat ? read_rows<float>(scanner, row_plan)
                                     : read_rows<double>(scanner, row_plan);
}

}  // namespace treadle::csv
