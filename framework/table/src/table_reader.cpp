#include "table_reader.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

#include <treadle/table/number_text.h>

namespace treadle::table {
namespace {

using Purpose = OpenRequest::Purpose;

/// Makes tensors and a description of parsed rows.
class TableBuilder {
 public:
  TableBuilder(TableColumns columns, std::string shown, const RowPlan& plan, ParsedRows parsed)
      : columns_(std::move(columns)),
        shown_(std::move(shown)),
        plan_(plan),
        parsed_(std::move(parsed)) {}

  /// `rows`: of the whole table, of which parsed rows may be the end.
  Table finish(std::int64_t rows);

 private:
  void finish_features(Table& table);
  void finish_targets(Table& table);
  void finish_classes(std::size_t target, TargetSpec& spec);
  void finish_weights(Table& table);
  [[noreturn]] void fail(const std::string& message) const {
    throw DataError(shown_ + ": " + message);
  }

  TableColumns columns_;
  std::string shown_;
  const RowPlan& plan_;
  ParsedRows parsed_;
};

Table TableBuilder::finish(std::int64_t rows) {
  if (rows == 0) {
    fail(parsed_.dropped > 0 && plan_.options.missing != Missing::kDropRow
             ? "none of the " + std::to_string(parsed_.dropped) + " rows has a target"
         : parsed_.dropped > 0 ? "each of the " + std::to_string(parsed_.dropped) +
                                     " rows has a missing value, and \"missing\" is \"drop_row\""
                               : columns_.no_rows);
  }
  Table table;
  table.description.layout = plan_.layout;
  MatrixRows::Matrices& matrices = table.matrices;
  finish_features(table);
  finish_targets(table);
  finish_weights(table);
  if (parsed_.groups.size() > 0) {
    const std::vector<std::int64_t> settled = parsed_.group_names.settle();
    for (std::size_t row = 0; row < parsed_.groups.size(); ++row)
      parsed_.groups.data()[row] = settled[static_cast<std::size_t>(parsed_.groups.data()[row])];
    matrices.groups = parsed_.groups.release({parsed_.rows}, at::kLong);
  }
  table.group_names = parsed_.group_names.labels();
  if (plan_.known != nullptr) {
    table.description.groups = plan_.known->groups;
  } else if (parsed_.group_names.size() <= LabelDictionary::kMostLabels) {
    table.description.groups = table.group_names;
  }
  if (parsed_.times.size() > 0)
    matrices.timestamps = parsed_.times.release({parsed_.rows}, at::kDouble);
  if (parsed_.utc_offsets.size() > 0)
    table.utc_offsets = parsed_.utc_offsets.release({parsed_.rows}, at::kDouble);
  if (parsed_.label_ends.size() > 0)
    matrices.label_ends = parsed_.label_ends.release({parsed_.rows}, at::kDouble);
  table.description.has_dates =
      plan_.known != nullptr ? plan_.known->has_dates : parsed_.times_are_dates;
  matrices.spec.has_dates = table.description.has_dates;
  matrices.spec.inputs = input_ports(plan_.layout, table.description.columns, at::kFloat);
  for (std::size_t port = 0; port < matrices.inputs.size(); ++port)
    matrices.spec.inputs[port].dtype = matrices.inputs[port].scalar_type();
  table.positions = parsed_.positions;
  return table;
}

void TableBuilder::finish_features(Table& table) {
  std::vector<Column>& columns = table.description.columns;
  const std::vector<UsedColumn>& features = plan_.layout.features;
  if (plan_.known != nullptr) {
    columns = plan_.known->columns;
    for (std::size_t i = 0; i < columns.size(); ++i)
      columns[i].may_be_missing = columns[i].may_be_missing || parsed_.has_missing[i] != 0;
  } else {
    for (std::size_t i = 0; i < features.size(); ++i) {
      Column column{
          features[i].name, {}, parsed_.has_missing[i] != 0 || plan_.options.unknown_is_missing};
      if (features[i].is_category) {
        const std::vector<std::int64_t> new_numbers = parsed_.labels[i].sort();
        column.categories = parsed_.labels[i].labels();
        auto& part = parsed_.categories[features[i].port];
        std::int64_t* value = part.values.data() + parsed_.places[i];
        for (std::int64_t row = 0; row < parsed_.rows; ++row, value += part.width) {
          if (*value >= 0)
            *value = new_numbers[static_cast<std::size_t>(*value)];
        }
      }
      if (features[i].is_category && column.categories.empty())
        fail("column " + quote_text(column.name) + " is a category, but has missing values only");
      columns.push_back(std::move(column));
    }
  }
  std::vector<at::Tensor>& inputs = table.matrices.inputs;
  for (std::size_t port = 0; port < plan_.layout.ports.size(); ++port) {
    auto& numbers = parsed_.numbers[port];
    auto& categories = parsed_.categories[port];
    if (numbers.width > 0) {
      inputs.push_back(
          numbers.values.release({parsed_.rows, static_cast<std::int64_t>(numbers.width)}));
    }
    if (categories.width > 0) {
      inputs.push_back(categories.values.release(
          {parsed_.rows, static_cast<std::int64_t>(categories.width)}, at::kLong));
    }
  }
}

void TableBuilder::finish_targets(Table& table) {
  std::vector<TargetSpec>& targets = table.description.targets;
  if (plan_.request.purpose == Purpose::kPredict) {
    targets = plan_.known->targets;
    return;
  }
  for (std::size_t t = 0; t < plan_.layout.targets.size(); ++t) {
    const TargetColumns& columns = plan_.layout.targets[t];
    const auto width = static_cast<std::int64_t>(columns.columns.size());
    TargetSpec target{columns.name, parsed_.target_kinds[t], {width}};
    if (target.kind == TargetKind::kClasses) {
      target.shape = {};
      finish_classes(t, target);
      table.matrices.targets.push_back(
          parsed_.target_classes[t].values.release({parsed_.rows}, at::kLong));
    } else {
      for (const UsedColumn& column : columns.columns) {
        if (target.kind != TargetKind::kNumbers)
          target.class_names.push_back(column.name);
      }
      table.matrices.targets.push_back(
          parsed_.target_numbers[t].values.release({parsed_.rows, width}));
    }
    targets.push_back(std::move(target));
  }
  table.matrices.spec.targets = targets;
}

void TableBuilder::finish_classes(std::size_t t, TargetSpec& target) {
  if (plan_.known != nullptr) {
    target.class_names = plan_.known->targets[t].class_names;
    return;
  }
  const std::vector<std::string>& labels = parsed_.classes[t].labels();
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
  const std::vector<std::int64_t> new_numbers = parsed_.classes[t].sort();
  if (labels.size() == 1) {
    fail("target " + quote_text(target.name) + " has one class only (" + quote_text(labels[0]) +
         "); a classifier needs at least two");
  }
  GrowingBuffer<std::int64_t>& classes = parsed_.target_classes[t].values;
  for (std::size_t row = 0; row < classes.size(); ++row)
    classes.data()[row] = new_numbers[static_cast<std::size_t>(classes.data()[row])];
  target.class_names = parsed_.classes[t].labels();
}

void TableBuilder::finish_weights(Table& table) {
  if (plan_.request.purpose == Purpose::kPredict || !plan_.layout.weight)
    return;
  const at::Tensor weights = parsed_.weights.release({parsed_.rows});
  if (parsed_.rows > 0 && weights.eq(0).all().item<bool>())
    fail("every row has the weight 0");
  table.matrices.weights = weights;
  table.matrices.spec.has_weights = true;
}

}  // namespace

TableReading::TableReading(TableSource& source, const TableOptions& options,
                           const OpenRequest& request, const TableDescription* known)
    : source_(source), options_(options), request_(request), known_(known) {
  const TableColumns& columns = source_.columns();
  layout_ = known_ != nullptr ? known_->layout
                              : training_layout(options_, columns, request_.columns_in_use);
  fields_ = plan_fields(layout_, columns, request_.purpose);
}

Table TableReading::finish(ParsedRows rows) const {
  const std::int64_t count = rows.rows;
  return TableBuilder(source_.columns(), source_.shown(), plan(), std::move(rows)).finish(count);
}

Table TableReading::describe(ParsedRows last, std::int64_t rows) const {
  return TableBuilder(source_.columns(), source_.shown(), plan(), std::move(last)).finish(rows);
}

Table read_table(TableSource& source, const TableOptions& options, const OpenRequest& request,
                 const TableDescription* known) {
  const TableReading reading(source, options, request, known);
  TableRows rows(source, reading.plan());
  source.read(rows);
  return reading.finish(rows.finish());
}

}  // namespace treadle::table
