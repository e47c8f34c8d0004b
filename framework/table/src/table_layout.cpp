#include "table_layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/calendar.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

namespace treadle::table {
namespace {

using Json = nlohmann::json;

void name_the_nameless(std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty())
      names[i] = "column_" + std::to_string(i);
  }
}

/// Resolves the columns that parameters name, and sees that each is used once.
class ColumnFinder {
 public:
  explicit ColumnFinder(const TableColumns& columns)
      : columns_(columns), names_(columns.names), uses_(names_.size()) {
    name_the_nameless(names_);
  }

  std::int64_t index(const ColumnName& column, const std::string& key) const {
    const auto count = static_cast<std::int64_t>(names_.size());
    if (const auto* position = std::get_if<std::int64_t>(&column)) {
      const std::int64_t index = *position < 0 ? *position + count : *position;
      if (index < 0 || index >= count) {
        fail("\"" + key + "\" is column " + std::to_string(*position) + ", but there are " +
             std::to_string(count) + " columns (0 to " + std::to_string(count - 1) + ")");
      }
      return index;
    }
    const auto& name = std::get<std::string>(column);
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      if (!columns_.are_named) {
        fail("the columns have no names" + columns_.remedy + ", so \"" + key +
             "\" must be an index from 0, got " + quote_text(name));
      }
      fail("there is no column " + quote_text(name) + " for \"" + key + "\"" +
           "; the columns are " + name_list(names_) + did_you_mean(name, names_));
    }
    return found - names_.begin();
  }

  UsedColumn take(std::int64_t index, const std::string& key) {
    std::string& use = uses_[static_cast<std::size_t>(index)];
    const std::string& name = names_[static_cast<std::size_t>(index)];
    const bool is_named_input = use == "target" && (key == "columns" || key == "inputs");
    if (is_named_input && shared_.insert(index).second)
      return {name, index};
    if (!use.empty()) {
      const std::string& first = is_named_input ? key : use;
      fail("column " + quote_text(name) + " is named " +
           (first == key ? "twice in \"" + key + "\""
                         : "as \"" + first + "\" and in \"" + key + "\"") +
           "; a column has one use");
    }
    use = key;
    return {name, index};
  }
  UsedColumn take(const ColumnName& column, const std::string& key) {
    return take(index(column, key), key);
  }

  bool is_used(std::size_t index) const { return !uses_[index].empty(); }
  /// Whether a parameter makes an input of it without deciding which columns are inputs.
  bool is_named(std::size_t column, const TableOptions& options) const {
    const auto names_it = [&](const std::vector<ColumnName>& list, const char* key) {
      return std::any_of(list.begin(), list.end(), [&](const ColumnName& name) {
        return index(name, key) == static_cast<std::int64_t>(column);
      });
    };
    return names_it(options.categorical, "categorical") || names_it(options.dates, "dates");
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw DataError(columns_.place + ": " + message);
  }

 private:
  const TableColumns& columns_;
  std::vector<std::string> names_;
  std::vector<std::string> uses_;  // the parameter that names the column
  std::set<std::int64_t> shared_;  // columns of targets that are inputs as well
};

void check_names(const TableColumns& columns, const ColumnFinder& finder) {
  const std::vector<std::string>& names = columns.names;
  if (static_cast<std::int64_t>(names.size()) > kMostColumns) {
    finder.fail("there are " + std::to_string(names.size()) + " columns; at most " +
                std::to_string(kMostColumns) + " can be read");
  }
  std::map<std::string_view, std::size_t> first;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty())
      continue;
    const auto [found, is_new] = first.emplace(names[i], i);
    if (!is_new) {
      finder.fail("columns " + std::to_string(found->second) + " and " + std::to_string(i) +
                  " are both named " + quote_text(names[i]) + columns.remedy);
    }
  }
}

Json to_json(const UsedColumn& column) {
  Json stored = {{"name", column.name},
                 {"index", column.index},
                 {"category", column.is_category},
                 {"port", column.port}};
  if (column.is_date)
    stored["date"] = column.calendar;
  return stored;
}

UsedColumn column_from_json(const Json& stored) {
  UsedColumn column{stored.at("name"), stored.at("index"), stored.at("category"),
                    stored.at("port")};
  column.is_date = stored.contains("date");
  if (column.is_date)
    column.calendar = stored.at("date").get<std::vector<std::string>>();
  return column;
}

// Indices are used without further questions later.
void check_stored(const TableLayout& layout) {
  const auto inside = [&](const UsedColumn& column) {
    const bool has_features =
        std::all_of(column.calendar.begin(), column.calendar.end(),
                    [](const std::string& name) { return find_calendar_feature(name) != nullptr; });
    return column.index >= 0 && column.index < layout.fields && column.port < layout.ports.size() &&
           has_features && !(column.is_date && column.is_category);
  };
  const auto all_inside = [&](const std::vector<UsedColumn>& columns) {
    return !columns.empty() && std::all_of(columns.begin(), columns.end(), inside);
  };
  const auto maybe = [&](const std::optional<UsedColumn>& column) {
    return !column || inside(*column);
  };
  const bool fits_targets =
      std::all_of(layout.targets.begin(), layout.targets.end(),
                  [&](const TargetColumns& target) { return all_inside(target.columns); });
  if (layout.fields > kMostColumns || layout.targets.empty() || !fits_targets ||
      !std::all_of(layout.features.begin(), layout.features.end(), inside) ||
      !std::all_of(layout.texts.begin(), layout.texts.end(), inside) ||
      (layout.features.empty() && layout.texts.empty()) || !maybe(layout.weight) ||
      !maybe(layout.group) || !maybe(layout.time) || !maybe(layout.label_end)) {
    throw StorageError("stored columns of the data contradict each other");
  }
}

std::vector<TargetColumns> take_targets(const TableOptions& options, ColumnFinder& finder) {
  std::vector<TargetColumns> targets;
  for (const TargetOption& option : options.targets) {
    TargetColumns& target = targets.emplace_back();
    target.kind = option.kind;
    for (const ColumnName& column : option.columns)
      target.columns.push_back(finder.take(column, "target"));
    target.name = option.name.empty() ? target.columns[0].name : option.name;
    for (std::size_t i = 0; i + 1 < targets.size(); ++i) {
      if (targets[i].name == target.name)
        finder.fail("two targets are named " + quote_text(target.name));
    }
  }
  return targets;
}

/// A column may be called as one that a date becomes, or as an input of others.
void check_inputs(const TableLayout& layout, const ColumnFinder& finder) {
  std::set<std::string> ports;
  for (const std::string& port : layout.ports)
    ports.insert(
        {port.empty() ? "features" : port, port.empty() ? "categories" : port + ".categories"});
  for (const UsedColumn& text : layout.texts) {
    if (!ports.insert(text.name).second || !ports.insert(text.name + ".lengths").second) {
      finder.fail("two inputs are named " + quote_text(text.name) +
                  ", a column of \"texts\" and other columns; rename the column");
    }
  }
  std::set<std::pair<std::size_t, std::string>> inputs;
  for (const UsedColumn& feature : layout.features) {
    for (const std::string& input : feature.inputs()) {
      if (!inputs.emplace(feature.port, input).second) {
        finder.fail("two inputs are named " + quote_text(input) +
                    ", a column and what a date becomes; leave one of \"columns\" out");
      }
    }
  }
}

std::string target_names(const std::vector<TargetColumns>& targets) {
  std::string text;
  for (const TargetColumns& target : targets)
    text += (text.empty() ? "" : ", ") + quote_text(target.name);
  return text;
}

}  // namespace

std::vector<std::string> UsedColumn::inputs() const {
  if (!is_date)
    return {name};
  std::vector<std::string> names{name + ".days"};
  for (const std::string& feature : calendar) {
    for (const std::string& part : find_calendar_feature(feature)->column_names())
      names.push_back(name + "." + part);
  }
  return names;
}

std::vector<PortSpec> input_ports(const TableLayout& layout, const std::vector<Column>& columns,
                                  c10::ScalarType dtype) {
  std::vector<PortSpec> ports;
  for (std::size_t port = 0; port < layout.ports.size(); ++port) {
    const std::string& name = layout.ports[port];
    PortSpec numbers{name.empty() ? "features" : name, {}, {}, Role::kFeatures, dtype};
    PortSpec categories{
        name.empty() ? "categories" : name + ".categories", {}, {}, Role::kCategories, at::kLong};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const UsedColumn& feature = layout.features[i];
      if (feature.port != port)
        continue;
      std::vector<Column>& of_port = (feature.is_category ? categories : numbers).columns;
      for (std::string& input : feature.inputs()) {
        of_port.push_back(columns[i]);
        of_port.back().name = std::move(input);
      }
    }
    for (PortSpec* one : {&numbers, &categories}) {
      one->shape = {static_cast<std::int64_t>(one->columns.size())};
      if (!one->columns.empty())
        ports.push_back(std::move(*one));
    }
  }
  return ports;
}

TableLayout training_layout(const TableOptions& options, const TableColumns& columns,
                            const std::vector<std::string>& columns_in_use) {
  ColumnFinder finder(columns);
  check_names(columns, finder);
  std::vector<std::string> names = columns.names;
  const auto unnamed = std::find(names.begin(), names.end(), "");
  const std::int64_t nameless = unnamed == names.end() ? -1 : unnamed - names.begin();
  name_the_nameless(names);

  TableLayout layout;
  layout.fields = static_cast<std::int64_t>(names.size());
  layout.ports = {""};
  layout.targets = take_targets(options, finder);
  if (options.weight)
    layout.weight = finder.take(*options.weight, "weight");
  if (options.group)
    layout.group = finder.take(*options.group, "group");
  if (options.time)
    layout.time = finder.take(*options.time, "time");
  if (options.label_end)
    layout.label_end = finder.take(*options.label_end, "label_end");
  for (const TextOption& text : options.texts)
    layout.texts.push_back(finder.take(text.column, "texts"));
  if (options.inputs) {
    layout.ports.clear();
    for (const auto& [port, listed] : *options.inputs) {
      for (const ColumnName& column : listed) {
        layout.features.push_back(finder.take(column, "inputs"));
        layout.features.back().port = layout.ports.size();
      }
      layout.ports.push_back(port);
    }
  } else if (options.columns) {
    for (const ColumnName& column : *options.columns)
      layout.features.push_back(finder.take(column, "columns"));
  } else {
    // **Rationale:** a nameless column is what some programs write the row's number into. In a file
    // sorted by class that number gives the class away.
    if (nameless >= 0 && !finder.is_used(static_cast<std::size_t>(nameless))) {
      finder.fail("column " + std::to_string(nameless) +
                  " has no name; give it one, or say in \"columns\" which columns to use");
    }
    const auto holds = [](const std::vector<std::string>& list, const std::string& name) {
      return std::find(list.begin(), list.end(), name) != list.end();
    };
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool is_key = holds(columns.keys, names[i]) && !finder.is_named(i, options);
      if (!finder.is_used(i) && !is_key && !holds(columns_in_use, names[i]))
        layout.features.push_back({names[i], static_cast<std::int64_t>(i)});
    }
  }
  if (layout.features.empty() && layout.texts.empty()) {
    finder.fail("no column is left to predict " + target_names(layout.targets) +
                " from; the columns are " + name_list(names));
  }
  const auto feature_of = [&](const ColumnName& column, const std::string& key) -> UsedColumn& {
    const std::int64_t index = finder.index(column, key);
    const auto found = std::find_if(layout.features.begin(), layout.features.end(),
                                    [&](const UsedColumn& used) { return used.index == index; });
    if (found == layout.features.end()) {
      finder.fail("column " + quote_text(names[static_cast<std::size_t>(index)]) + " is in \"" +
                  key + "\", but not among the columns to predict from");
    }
    return *found;
  };
  for (const ColumnName& column : options.categorical)
    feature_of(column, "categorical").is_category = true;
  for (const ColumnName& column : options.dates) {
    UsedColumn& date = feature_of(column, "dates");
    if (date.is_category) {
      finder.fail("column " + quote_text(date.name) +
                  " is in \"categorical\" and in \"dates\"; a column is one of them");
    }
    date.is_date = true;
    date.calendar = options.calendar;
  }
  check_inputs(layout, finder);
  return layout;
}

FieldPlan plan_fields(const TableLayout& layout, const TableColumns& columns,
                      OpenRequest::Purpose purpose) {
  std::vector<std::string> names = columns.names;
  const std::string& place = columns.place;
  const bool has_header = columns.are_named;
  name_the_nameless(names);
  using Purpose = OpenRequest::Purpose;
  struct Wanted {
    const UsedColumn* column;
    FieldPlan::Entry entry;
    bool is_needed = true;
  };
  std::vector<Wanted> wanted;
  for (std::size_t i = 0; i < layout.features.size(); ++i)
    wanted.push_back({&layout.features[i], {Use::kFeature, i}});
  for (const UsedColumn& text : layout.texts)
    wanted.push_back({&text, {Use::kNone}});
  if (purpose != Purpose::kPredict) {
    for (std::size_t t = 0; t < layout.targets.size(); ++t) {
      const std::vector<UsedColumn>& targets = layout.targets[t].columns;
      for (std::size_t i = 0; i < targets.size(); ++i)
        wanted.push_back({&targets[i], {Use::kTarget, i, t}});
    }
    if (layout.weight)
      wanted.push_back({&*layout.weight, {Use::kWeight}});
  }
  const bool is_training = purpose == Purpose::kTrain;
  if (layout.group)
    wanted.push_back({&*layout.group, {Use::kGroup}, is_training});
  if (layout.time)
    wanted.push_back({&*layout.time, {Use::kTime}, is_training});
  if (is_training && layout.label_end)
    wanted.push_back({&*layout.label_end, {Use::kLabelEnd}});

  FieldPlan plan;
  plan.names = names;
  plan.entries.resize(names.size());
  plan.second.resize(names.size());
  const auto put = [&](std::size_t field, const FieldPlan::Entry& entry) {
    (plan.entries[field].use == Use::kNone ? plan.entries : plan.second)[field] = entry;
  };
  const auto fields = static_cast<std::int64_t>(names.size());
  if (!has_header && fields == layout.fields) {
    for (const Wanted& want : wanted)
      put(static_cast<std::size_t>(want.column->index), want.entry);
    return plan;
  }
  if (!has_header) {
    const auto features = static_cast<std::int64_t>(layout.features.size());
    const bool may_be_alone = purpose == Purpose::kPredict && layout.texts.empty();
    const bool features_alone = may_be_alone && fields == features;
    if (!features_alone) {
      throw DataError(place + ": expected " + std::to_string(layout.fields) +
                      " fields, as in the training data" +
                      (may_be_alone && features != layout.fields
                           ? ", or the " + std::to_string(features) + " to predict from"
                           : "") +
                      ", got " + std::to_string(fields));
    }
    // In the order of the training file, whatever the order of "columns" was.
    std::vector<std::pair<std::int64_t, std::size_t>> by_index;
    for (const Wanted& want : wanted) {
      if (want.entry.use == Use::kFeature)
        by_index.emplace_back(want.column->index, want.entry.slot);
    }
    std::sort(by_index.begin(), by_index.end());
    for (std::size_t i = 0; i < by_index.size(); ++i)
      plan.entries[i] = {Use::kFeature, by_index[i].second};
    return plan;
  }
  std::vector<std::string> missing;
  for (const Wanted& want : wanted) {
    const std::string& name = want.column->name;
    const auto count = std::count(names.begin(), names.end(), name);
    if (count > 1) {
      throw DataError(place + ": " + std::to_string(count) + " columns are named " +
                      quote_text(name));
    }
    if (count == 0 && !want.is_needed)
      continue;
    if (count == 0) {
      const std::string shown =
          quote_text(name) + (want.entry.use == Use::kTarget
                                  ? " (the target: evaluate compares with it, predict does without)"
                                  : "");
      if (std::find(missing.begin(), missing.end(), shown) == missing.end())
        missing.push_back(shown);
      continue;
    }
    put(static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin()),
        want.entry);
  }
  if (!missing.empty()) {
    std::string list;
    for (const std::string& one : missing)
      list += (list.empty() ? "" : ", ") + one;
    throw DataError(place + ": the model needs the column" + (missing.size() == 1 ? " " : "s ") +
                    list + ", which " + (missing.size() == 1 ? "is" : "are") +
                    " not there; the columns are " + name_list(names));
  }
  return plan;
}

nlohmann::json to_json(const TableLayout& layout) {
  const auto list = [](const std::vector<UsedColumn>& columns) {
    Json stored = Json::array();
    for (const UsedColumn& column : columns)
      stored.push_back(to_json(column));
    return stored;
  };
  Json targets = Json::array();
  for (const TargetColumns& target : layout.targets)
    targets.push_back({{"name", target.name}, {"columns", list(target.columns)}});
  Json stored = {{"fields", layout.fields},
                 {"ports", layout.ports},
                 {"features", list(layout.features)},
                 {"targets", std::move(targets)}};
  if (!layout.texts.empty())
    stored["texts"] = list(layout.texts);
  const std::pair<const char*, const std::optional<UsedColumn>*> others[] = {
      {"weight", &layout.weight},
      {"group", &layout.group},
      {"time", &layout.time},
      {"label_end", &layout.label_end}};
  for (const auto& [key, column] : others) {
    if (*column)
      stored[key] = to_json(**column);
  }
  return stored;
}

TableLayout table_layout_from_json(const nlohmann::json& stored) try {
  TableLayout layout;
  layout.fields = stored.at("fields");
  layout.ports = stored.at("ports").get<std::vector<std::string>>();
  for (const Json& column : stored.at("features"))
    layout.features.push_back(column_from_json(column));
  for (const Json& column : stored.value("texts", Json::array()))
    layout.texts.push_back(column_from_json(column));
  for (const Json& target : stored.at("targets")) {
    TargetColumns& columns = layout.targets.emplace_back();
    columns.name = target.at("name");
    for (const Json& column : target.at("columns"))
      columns.columns.push_back(column_from_json(column));
  }
  const std::pair<const char*, std::optional<UsedColumn>*> others[] = {
      {"weight", &layout.weight},
      {"group", &layout.group},
      {"time", &layout.time},
      {"label_end", &layout.label_end}};
  for (const auto& [key, column] : others) {
    if (stored.contains(key))
      *column = column_from_json(stored.at(key));
  }
  check_stored(layout);
  return layout;
} catch (const Json::exception& error) {
  throw StorageError(std::string("stored columns of the data cannot be read: ") + error.what());
}

}  // namespace treadle::table
