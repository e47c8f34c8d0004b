#include "description/file_columns.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <ATen/ops/allclose.h>
#include <ATen/ops/tensor.h>

#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/abilities/table_profile.h>
#include <treadle/core/data/column_origins.h>

#include "components/document_components.h"
#include "document/document_slots.h"

namespace treadle::internal {
namespace {

using describe::ColumnKind;
using describe::DescribedColumn;

/// Texts of more columns are not read.
constexpr std::size_t kMostFileColumns = 50;
/// A column of texts with more different ones than this share of its rows has no categories.
constexpr double kMostCategoriesPerRow = 0.5;
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

/// Reads `digits` digits from the front.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  int number = 0;
  if (text.size() < digits)
    return std::nullopt;
  const auto read = std::from_chars(text.data(), text.data() + digits, number);
  if (read.ec != std::errc() || read.ptr != text.data() + digits)
    return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos)
    return false;
  text.remove_prefix(1);
  return true;
}

/// "13:30", "13:30:05.250"; seconds of the day.
std::optional<double> take_time(std::string_view& text) {
  const auto hours = take_number(text, 2);
  if (!hours || !take(text, ":"))
    return std::nullopt;
  const auto minutes = take_number(text, 2);
  if (!minutes)
    return std::nullopt;
  double seconds = *hours * 3600.0 + *minutes * 60.0;
  if (take(text, ":")) {
    const auto more = take_number(text, 2);
    if (!more)
      return std::nullopt;
    seconds += *more;
    if (take(text, ".")) {
      for (double unit = 0.1; const auto digit = take_number(text, 1); unit /= 10)
        seconds += *digit * unit;
    }
  }
  return seconds;
}

std::optional<double> number_of_text(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

DescribedColumn column_of(const ColumnProfile& profile, const std::vector<std::string>& texts,
                          const std::vector<std::int64_t>& rows,
                          const std::set<std::string>& missing) {
  const auto text_at = [&](std::int64_t row) -> const std::string& {
    return texts[static_cast<std::size_t>(row)];
  };
  DescribedColumn column;
  column.name = profile.name;
  const bool is_date = profile.dates > profile.numbers;
  const bool has_numbers = profile.numbers > 0 && profile.odd_texts.empty() && profile.dates == 0;
  if (is_date || has_numbers) {
    std::vector<double> values;
    values.reserve(rows.size());
    for (const std::int64_t row : rows) {
      const auto value = missing.contains(text_at(row)) ? std::nullopt
                         : is_date                      ? seconds_of_date(text_at(row))
                                                        : number_of_text(text_at(row));
      values.push_back(value.value_or(kMissing));
    }
    column.kind = is_date ? ColumnKind::kTime : ColumnKind::kNumber;
    column.is_date = is_date;
    column.values = at::tensor(values, at::kDouble);
    return column;
  }
  std::map<std::string, std::int64_t> codes;
  for (const std::int64_t row : rows) {
    if (!missing.contains(text_at(row)))
      codes.emplace(text_at(row), 0);
  }
  for (auto& [text, code] : codes) {
    code = static_cast<std::int64_t>(column.names.size());
    column.names.push_back(text);
  }
  std::vector<std::int64_t> values;
  values.reserve(rows.size());
  for (const std::int64_t row : rows) {
    const auto code = codes.find(text_at(row));
    values.push_back(code == codes.end() ? -1 : code->second);
  }
  const bool is_category = static_cast<double>(column.names.size()) <=
                           kMostCategoriesPerRow * static_cast<double>(rows.size());
  column.kind = is_category ? ColumnKind::kCategory : ColumnKind::kText;
  column.values = at::tensor(values, at::kLong);
  return column;
}

/// The columns of the file that are inputs or targets under their own names.
std::set<std::string> columns_in_use(const DocumentComponents& components) {
  std::set<std::string> names;
  const Dataset& dataset = components.dataset();
  for (const PortSpec& port : dataset.source().spec().inputs) {
    for (const Column& column : port.columns)
      names.insert(column.name);
  }
  const auto* const origins = dataset.provider().ask<ColumnOrigins>();
  for (const TargetSpec& target : dataset.spec().targets) {
    names.insert(target.name);
    if (origins != nullptr) {
      for (std::string& column : origins->of_target(target.name))
        names.insert(std::move(column));
    }
  }
  return names;
}

}  // namespace

std::optional<double> seconds_of_date(std::string_view text) {
  const auto year = take_number(text, 4);
  if (!year || !take(text, "-"))
    return std::nullopt;
  const auto month = take_number(text, 2);
  if (!month || !take(text, "-"))
    return std::nullopt;
  const auto day = take_number(text, 2);
  if (!day)
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok())
    return std::nullopt;
  double seconds =
      86400.0 * static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  if (text.empty())
    return seconds;
  if (!take(text, "T "))
    return std::nullopt;
  const auto time = take_time(text);
  if (!time)
    return std::nullopt;
  seconds += *time;
  if (text == "Z" || text.empty())
    return seconds;
  const double sign = text.front() == '-' ? 1 : -1;
  if (!take(text, "+-"))
    return std::nullopt;
  const auto offset = take_time(text);
  return offset && text.empty() ? std::optional(seconds + sign * *offset) : std::nullopt;
}

void add_file_columns(const Runtime& runtime, const DocumentComponents& components,
                      DescribedRows& described) {
  const Dataset& dataset = components.dataset();
  if (dataset.columns() == nullptr || dataset.is_stream())
    return;
  const auto provider = make_in<DataProvider>(runtime, components.workflow().slot("data"), "data");
  const auto* const profiler = provider->ask<TableProfiler>();
  if (profiler == nullptr)
    return;
  const TableProfile profile = profiler->profile();
  const std::set<std::string> used = columns_in_use(components);
  std::vector<const ColumnProfile*> others;
  for (const ColumnProfile& column : profile.columns) {
    if (column.has_name && !used.contains(column.name))
      others.push_back(&column);
  }
  describe::DescribedTable& table = described.table;
  if (others.size() > kMostFileColumns) {
    table.notes.push_back("of " + std::to_string(others.size()) +
                          " columns that are no inputs, only the first " +
                          std::to_string(kMostFileColumns) + " are described");
    others.resize(kMostFileColumns);
  }
  std::vector<std::string> names;
  for (const ColumnProfile* column : others)
    names.push_back(column->name);
  if (names.empty())
    return;
  const std::vector<std::vector<std::string>> texts = dataset.columns()->texts(names);
  const std::set<std::string> missing(profile.missing_values.begin(), profile.missing_values.end());
  const std::vector<DescribedColumn> times = std::exchange(table.others, {});
  for (std::size_t i = 0; i < others.size(); ++i)
    table.others.push_back(column_of(*others[i], texts[i], described.rows, missing));
  for (const DescribedColumn& time : times) {
    const auto same =
        std::find_if(table.others.begin(), table.others.end(), [&](const DescribedColumn& column) {
          return !column.has_codes() && at::allclose(column.values, time.values, 1e-12, 1e-3);
        });
    if (same == table.others.end()) {
      table.others.push_back(time);
    } else {
      same->kind = time.kind;
      same->is_date = time.is_date;
    }
  }
}

}  // namespace treadle::internal
