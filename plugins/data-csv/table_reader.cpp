#include "table_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/path_words.h>

#include "csv_scanner.h"
#include "file_format.h"
#include "number_text.h"
#include "row_parser.h"

namespace treadle::csv {
namespace {

using Purpose = OpenRequest::Purpose;

/// Makes tensors and a description of what was parsed.
class TableBuilder {
 public:
  TableBuilder(std::string shown, const RowPlan& plan, ParsedRows parsed)
      : shown_(std::move(shown)), plan_(plan), parsed_(std::move(parsed)) {}

  Table finish();

 private:
  void finish_features(Table& table);
  void finish_targets(Table& table);
  void finish_classes(std::size_t target, TargetSpec& spec);
  void finish_weights(Table& table);
  [[noreturn]] void fail(const std::string& message) const {
    throw DataError(shown_ + ": " + message);
  }

  std::string shown_;
  const RowPlan& plan_;
  ParsedRows parsed_;
};

Table TableBuilder::finish() {
  if (parsed_.rows == 0) {
    fail(parsed_.dropped > 0 && plan_.options.missing != Missing::kDropRow
             ? "none of the " + std::to_string(parsed_.dropped) + " rows has a target"
         : parsed_.dropped > 0 ? "each of the " + std::to_string(parsed_.dropped) +
                                     " rows has a missing value, and \"missing\" is \"drop_row\""
         : plan_.options.header ? std::string("there is a header line, but no row")
                                : std::string("there is no row"));
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
  if (plan_.known) {
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
  table.description.has_dates = plan_.known ? plan_.known->has_dates : parsed_.times_are_dates;
  matrices.spec.has_dates = table.description.has_dates;
  matrices.spec.inputs = input_ports(plan_.layout, table.description.columns, at::kFloat);
  for (std::size_t port = 0; port < matrices.inputs.size(); ++port)
    matrices.spec.inputs[port].dtype = matrices.inputs[port].scalar_type();
  table.lines = parsed_.lines;
  matrices.describe_row = [shown = shown_, lines = parsed_.lines](std::int64_t row) {
    return shown + ":" + std::to_string(lines->line_of(row));
  };
  return table;
}

void TableBuilder::finish_features(Table& table) {
  std::vector<Column>& columns = table.description.columns;
  const std::vector<UsedColumn>& features = plan_.layout.features;
  if (plan_.known) {
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
  if (plan_.known) {
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
  if (weights.eq(0).all().item<bool>())
    fail("every row has the weight 0");
  table.matrices.weights = weights;
  table.matrices.spec.has_weights = true;
}

Table read_rows(CsvScanner& scanner, const RowPlan& plan) {
  return TableBuilder(scanner.shown(), plan, parse_rows(scanner, plan)).finish();
}

[[noreturn]] void fail_for_separator(const CsvOptions& options, bool is_known,
                                     const std::string& place, const std::string& found,
                                     char other) {
  const std::string shown = shown_separator(other);
  // What a trained model reads is as its training data was.
  throw DataError(place + ": " + found + "; the separator seems to be " + shown +
                  (is_known
                       ? ", and the model reads files with " + shown_separator(options.separator) +
                             ", as its training data had: write the file with that"
                       : ". Set \"separator\": " + shown));
}

// A first row of one field, or followed by one of another number, was written with another
// separator, more often than not. `next` is empty at the end of the file.
void check_separator(const CsvOptions& options, bool is_known, const std::string& place,
                     const std::vector<std::string>& first, const std::vector<std::string>& next) {
  if (first.size() > 1 && (next.empty() || next.size() == first.size()))
    return;
  if (const std::optional<char> other = other_separator(options)) {
    fail_for_separator(options, is_known, place,
                       first.size() == 1
                           ? "the line has one field, " + quote_text(first[0])
                           : "the line has " + std::to_string(first.size()) +
                                 " fields, but the next one " + std::to_string(next.size()),
                       *other);
  }
}

/// The same for first rows that cannot be cut: with the wrong separator, quotes are not where
/// fields begin and end.
void check_first_rows(const CsvOptions& options, bool is_known) {
  const std::optional<char> other = other_separator(options);
  if (!other)
    return;
  CsvScanner scanner(options.path, shown_path(options.path), options.separator, options.quote,
                     options.encoding);
  try {
    scanner.skip_lines(options.skip_rows);
    for (int row = 0; row < kRowsThatTell && scanner.begin_row() != nullptr; ++row)
      scanner.read_row();
  } catch (const DataError&) {
    fail_for_separator(
        options, is_known, scanner.shown() + ":" + std::to_string(scanner.line()),
        "the line cannot be cut into fields at " + shown_separator(options.separator), *other);
  }
}

/// Where each of `names` is among the columns.
std::vector<std::size_t> places_of(const std::vector<std::string>& names,
                                   const std::vector<std::string>& columns,
                                   const std::string& place) {
  std::vector<std::size_t> places;
  for (const std::string& name : names) {
    const auto found = std::find(columns.begin(), columns.end(), name);
    if (found == columns.end()) {
      throw DataError(place + ": there is no column " + quote_text(name) + " to keep; there are " +
                      quoted_list(columns) + did_you_mean(name, columns));
    }
    if (std::count(columns.begin(), columns.end(), name) > 1)
      throw DataError(place + ": the column " + quote_text(name) + " to keep is there twice");
    places.push_back(static_cast<std::size_t>(found - columns.begin()));
  }
  return places;
}

Table read_whole_table(const CsvOptions& options, const OpenRequest& request,
                       const std::optional<TableDescription>& known) {
  CsvScanner scanner(options.path, shown_path(options.path), options.separator, options.quote,
                     options.encoding);
  scanner.skip_lines(options.skip_rows);
  if (scanner.begin_row() == nullptr) {
    throw DataError(scanner.shown() +
                    (options.skip_rows == 0
                         ? ": the file is empty"
                         : ": nothing follows the lines that \"skip_rows\" passes over"));
  }
  const std::int64_t first_line = scanner.line();
  const std::string place =
      options.header ? scanner.shown() + ":" + std::to_string(scanner.line()) : scanner.shown();
  const std::vector<std::string> first = options.header ? scanner.read_row() : scanner.peek_row();
  check_separator(options, known.has_value(), scanner.shown() + ":" + std::to_string(first_line),
                  first, options.header ? scanner.peek_row() : std::vector<std::string>());
  std::vector<std::string> names =
      options.header ? first : numbered_columns(static_cast<std::int64_t>(first.size()));
  const TableLayout layout =
      known ? known->layout : training_layout(options, names, place, request.columns_in_use);
  const FieldPlan plan =
      plan_fields(layout, std::move(names), options.header, request.purpose, place);
  const RowPlan row_plan{options, request, layout, plan, known};
  return read_rows(scanner, row_plan);
}

}  // namespace

std::vector<std::vector<std::string>> read_texts(const CsvOptions& options, const LineIndex& rows,
                                                 const std::vector<std::string>& names) {
  CsvScanner scanner(options.path, shown_path(options.path), options.separator, options.quote,
                     options.encoding);
  scanner.skip_lines(options.skip_rows);
  const std::string place = scanner.shown();
  const auto changed = [&] {
    return DataError(place + ": was changed while it was read, or can only be read once");
  };
  if (scanner.begin_row() == nullptr)
    throw changed();
  const std::vector<std::string> columns =
      options.header ? scanner.read_row()
                     : numbered_columns(static_cast<std::int64_t>(scanner.peek_row().size()));
  const std::vector<std::size_t> places = places_of(names, columns, place);
  std::vector<std::vector<std::string>> texts(names.size());
  for (std::int64_t row = 0; row < rows.rows(); ++row) {
    // Rows in between were left out for a missing value.
    while (scanner.begin_row() != nullptr && scanner.line() < rows.line_of(row))
      scanner.read_row();
    if (scanner.begin_row() == nullptr || scanner.line() != rows.line_of(row))
      throw changed();
    std::vector<std::string> fields = scanner.read_row();
    if (fields.size() != columns.size())
      throw changed();
    for (std::size_t i = 0; i < places.size(); ++i)
      texts[i].push_back(fields[places[i]]);
  }
  return texts;
}

Table read_table(const CsvOptions& options, const OpenRequest& request,
                 const std::optional<TableDescription>& known) {
  try {
    return read_whole_table(options, request, known);
  } catch (const DataError&) {
    check_first_rows(options, known.has_value());
    throw;
  }
}

}  // namespace treadle::csv
