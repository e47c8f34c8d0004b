#include "window_ports.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::sequences {
namespace {

using Names = std::vector<std::string>;

// As data names the categories of a table beside its numbers, and transforms find them.
constexpr const char* kCategories = ".categories";

std::string without(std::string_view suffix, const std::string& name) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void expect_columns(const char* key, const Names& names, const Names& present) {
  for (const std::string& name : names) {
    if (!contains(present, name)) {
      throw DataError("\"" + std::string(key) +
                      "\" of the sequence windows: no input has a column " + quote_text(name) +
                      (present.empty() ? "; the data's columns have no names"
                                       : "; the columns are " + quoted_list(present)) +
                      did_you_mean(name, present));
    }
  }
}

/// The columns of `table` that `is_chosen`; without names none is, and all are for a null.
template <typename IsChosen>
WindowPort port_of(const PortSpec& table, std::size_t input, WindowPart part,
                   const IsChosen& is_chosen) {
  WindowPort port{.spec = table, .part = part, .input = input, .columns = {}};
  port.spec.columns.clear();
  for (std::int64_t i = 0; i < table.shape[0]; ++i) {
    const Column* const column =
        table.columns.empty() ? nullptr : &table.columns[static_cast<std::size_t>(i)];
    if (!is_chosen(column))
      continue;
    port.columns.push_back(i);
    if (column != nullptr)
      port.spec.columns.push_back(*column);
  }
  port.spec.shape = {static_cast<std::int64_t>(port.columns.size())};
  return port;
}

void join(WindowPort& port, const TargetSpec& target, std::size_t index) {
  const std::int64_t width = target.shape[0];
  port.joined.push_back(index);
  port.spec.shape[0] += width;
  if (port.spec.columns.empty())
    return;
  for (std::int64_t i = 0; i < width; ++i)
    port.spec.columns.push_back({width == 1 ? target.name : target.name + "." + std::to_string(i)});
}

}  // namespace

std::vector<WindowPort> window_ports(const DataSpec& rows, const NamedColumns& named,
                                     const std::vector<std::size_t>& joined) {
  Names present;
  std::size_t of_numbers = 0;
  for (const PortSpec& table : rows.inputs) {
    of_numbers += table.role == Role::kFeatures ? 1U : 0U;
    for (const Column& column : table.columns)
      present.push_back(column.name);
  }
  expect_columns("future", named.future, present);
  expect_columns("static", named.unchanging, present);
  for (const std::string& name : named.unchanging) {
    if (contains(named.future, name)) {
      throw DataError("the sequence windows: column " + quote_text(name) +
                      " is named in \"future\" and in \"static\"; a static column is known in "
                      "advance, so leave it out of \"future\"");
    }
  }
  std::vector<WindowPort> ports;
  const auto add = [&](const PortSpec& table, std::size_t input, WindowPart part,
                       const Names& names, const std::string& name) {
    WindowPort port = port_of(table, input, part, [&](const Column* column) {
      return column != nullptr && contains(names, column->name);
    });
    if (port.columns.empty())
      return;
    const bool is_category = table.role == Role::kCategories;
    port.spec.name = (of_numbers > 1 ? without(kCategories, table.name) + "." : std::string()) +
                     name + (is_category ? kCategories : "");
    ports.push_back(std::move(port));
  };
  bool has_joined = joined.empty();
  for (std::size_t i = 0; i < rows.inputs.size(); ++i) {
    const PortSpec& table = rows.inputs[i];
    WindowPort past = port_of(table, i, WindowPart::kLookback, [&](const Column* column) {
      return column == nullptr || !contains(named.unchanging, column->name);
    });
    if (!has_joined && table.role == Role::kFeatures) {
      has_joined = true;
      for (const std::size_t target : joined)
        join(past, rows.targets[target], target);
    }
    if (past.spec.shape[0] > 0)
      ports.push_back(std::move(past));
  }
  for (std::size_t i = 0; i < rows.inputs.size(); ++i)
    add(rows.inputs[i], i, WindowPart::kHorizon, named.future, "future");
  for (std::size_t i = 0; i < rows.inputs.size(); ++i)
    add(rows.inputs[i], i, WindowPart::kFirstRow, named.unchanging, "static");
  for (auto port = ports.begin(); port != ports.end(); ++port) {
    const auto same = std::find_if(ports.begin(), port, [&](const WindowPort& earlier) {
      return earlier.spec.name == port->spec.name;
    });
    if (same != port) {
      throw DataError("the sequence windows adds an input " + quote_text(port->spec.name) +
                      ", and the data has one of that name; rename it there");
    }
  }
  if (!has_joined) {
    throw DataError(
        "the sequence windows has \"include_targets\": true, and no input has numbers that targets "
        "could stand behind");
  }
  return ports;
}

}  // namespace treadle::sequences
