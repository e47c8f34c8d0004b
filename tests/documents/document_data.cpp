#include "document_data.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string_view>
#include <utility>

#include <treadle/core/data/table_writer.h>

#include "npy_bytes.h"
#include "parquet_bytes.h"

namespace treadle::testing {
namespace {

using nlohmann::json;

constexpr std::int64_t kFewestRows = 20;
constexpr std::int64_t kMostRows = 44;
constexpr std::int64_t kPositions = 5;
constexpr std::int64_t kWords = 10;

/// One of the four kinds of target, as parts of a document.
struct FileTarget {
  std::string name;
  json spoken;
};

std::vector<std::string> texts(const json& names) {
  return names.get<std::vector<std::string>>();
}

/// A text of up to five words, which may be empty.
std::string draw_note(Dice& dice) {
  static const std::vector<std::string> kWords{"a", "fine", "dull", "old", "film", "song"};
  std::string text;
  for (std::int64_t more = dice.whole(0, 5); more > 0; --more)
    text += (text.empty() ? "" : " ") + dice.one_of(kWords);
  return text;
}

json draw_tokenizer(Dice& dice) {
  return dice.one_of(std::vector<json>{"bytes",
                                       "characters",
                                       "words",
                                       {{"use", "characters"}, {"end_of_text", true}},
                                       {{"use", "words"}, {"min_count", 2}},
                                       {{"use", "byte_bpe"}, {"vocabulary_size", 270}}});
}

void write_table(Drawing& drawing, std::int64_t rows) {
  Dice& dice = drawing.dice;
  std::ofstream file(drawing.folder / "table.csv");
  file << "a,b,c,holes,town,size,weight,group,time,label,grade,number,other,l1,l2,l3,p1,p2,note,"
          "day\n";
  for (std::int64_t row = 0; row < rows; ++row) {
    const double a = dice.normal();
    const double b = dice.normal();
    const double c = dice.between(0, 10);
    const double p = dice.between(0, 1);
    file << a << ',' << b << ',' << c << ',' << (dice.chance(20) ? "" : std::to_string(a + b))
         << ','
         << (dice.chance(50)   ? "Ulm"
             : dice.chance(50) ? "Bonn"
                               : "Kiel")
         << ',' << (c > 6 ? "large" : "small") << ',' << dice.whole(1, 3) << ',' << row / 3 << ','
         << dice.whole(1, 1000) << ','
         << (a + b > 0.5 ? "x"
             : b > 0     ? "y"
                         : "z")
         << ',' << dice.whole(0, 2) << ',' << a - 2 * b + 0.1 * c << ',' << a * b << ',' << (a > 0)
         << ',' << (b > 0) << ',' << (a > b) << ',' << p << ',' << 1 - p << ',' << draw_note(dice)
         << ",2024-" << (c > 5 ? "02" : "11") << "-1" << dice.whole(0, 9) << '\n';
  }
}

/// Writes the rows of a CSV file without quotes, and their numbers as "id". Columns of
/// numbers alone are numbers, others text.
void copy_table(const std::filesystem::path& csv, TableWriter& writer) {
  std::ifstream file(csv);
  std::string line;
  const auto fields = [&] {
    std::vector<std::string> list;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, ',');)
      list.push_back(field);
    return list;
  };
  std::getline(file, line);
  const std::vector<std::string> names = fields();
  std::vector<std::vector<std::string>> texts(names.size());
  while (std::getline(file, line)) {
    const std::vector<std::string> row = fields();
    for (std::size_t i = 0; i < names.size(); ++i)
      texts[i].push_back(row.at(i));
  }
  std::vector<TableWriter::Column> columns{{"id", TableWriter::Column::Type::kInteger}};
  std::vector<std::int64_t> ids(texts[0].size());
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<TableWriter::Values> values{ids};
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<double> numbers;
    for (const std::string& text : texts[i]) {
      char* end = nullptr;
      const double number = text.empty() ? std::nan("") : std::strtod(text.c_str(), &end);
      if (text.empty() || *end == '\0')
        numbers.push_back(number);
    }
    const bool is_number = numbers.size() == texts[i].size();
    columns.push_back({names[i], is_number ? TableWriter::Column::Type::kDouble
                                           : TableWriter::Column::Type::kText});
    if (is_number)
      values.emplace_back(std::move(numbers));
    else
      values.emplace_back(std::move(texts[i]));
  }
  writer.open(std::move(columns));
  writer.write(values);
  writer.close();
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (const std::int64_t size : shape)
    text += std::to_string(size) + ", ";
  return text + ")";
}

std::size_t product(const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (const std::int64_t size : shape)
    count *= static_cast<std::size_t>(size);
  return count;
}

class Arrays {
 public:
  explicit Arrays(Drawing& drawing)
      : dice_(drawing.dice), folder_(drawing.folder), rows_(dice_.whole(kFewestRows, kMostRows)) {}

  template <typename Next>
  std::string write(const std::string& name, std::vector<std::int64_t> shape, Next&& next) {
    shape.insert(shape.begin(), rows_);
    std::vector<decltype(next())> values(product(shape));
    std::generate(values.begin(), values.end(), next);
    const std::string path = (folder_ / (name + ".npy")).string();
    std::ofstream(path, std::ios::binary) << arrays::npy_of(shape_text(shape), values);
    return path;
  }
  std::string numbers(const std::string& name, std::vector<std::int64_t> shape) {
    return write(name, std::move(shape), [this] { return static_cast<float>(dice_.normal()); });
  }
  std::string integers(const std::string& name, std::vector<std::int64_t> shape, std::int64_t least,
                       std::int64_t most) {
    return write(name, std::move(shape), [=, this] { return dice_.whole(least, most); });
  }
  /// Small ones, so that a model learns from them as they are.
  std::string bytes(const std::string& name, std::vector<std::int64_t> shape) {
    return write(name, std::move(shape),
                 [this] { return static_cast<std::uint8_t>(dice_.whole(0, 3)); });
  }
  std::string distributions(const std::string& name) {
    double rest = 0;
    return write(name, {2}, [this, rest, second = false]() mutable {
      second = !second;
      rest = second ? dice_.between(0, 1) : 1 - rest;
      return static_cast<float>(rest);
    });
  }

 private:
  Dice& dice_;
  const std::filesystem::path folder_;
  const std::int64_t rows_;
};

/// The inputs that a document may choose from; each a description, or a path alone.
json draw_inputs(Dice& dice, Arrays& arrays) {
  json inputs = json::object();
  const auto add_table = [&] { inputs["table"] = arrays.numbers("table", {4}); };
  const auto add_image = [&] {
    const std::vector<std::int64_t> shape = {2, 5, 5};
    const bool are_bytes = dice.chance(50);
    inputs["image"] = {
        {"path", are_bytes ? arrays.bytes("image", shape) : arrays.numbers("image", shape)},
        {"role", "image"}};
  };
  // What tells attention which positions a position sees.
  const auto describe = [&](const char* name) {
    if (dice.chance(40)) {
      inputs["documents"] = {{"path", arrays.integers("documents", {kPositions}, 0, 2)},
                             {"role", "segments"},
                             {"of", name}};
    }
    if (dice.chance(25)) {
      inputs["seen"] = {
          {"path", arrays.integers("seen", {kPositions}, 0, 1)}, {"role", "mask"}, {"of", name}};
    }
  };
  const auto add_words = [&] {
    inputs["words"] = {{"path", arrays.integers("words", {kPositions}, 0, kWords - 1)},
                       {"role", "tokens"},
                       {"vocabulary_size", kWords}};
    if (dice.chance(60))
      inputs["words"]["lengths"] = arrays.integers("lengths", {}, 1, kPositions);
    describe("words");
  };
  const auto add_signal = [&] {
    inputs["signal"] = {{"path", arrays.numbers("signal", {kPositions, 3})}};
    if (dice.chance(40))
      inputs["signal"]["lengths"] = arrays.integers("signal-lengths", {}, 1, kPositions);
    describe("signal");
  };
  switch (dice.below(6)) {
    case 0:
      add_image();
      break;
    case 1:
      add_words();
      break;
    case 2:
      add_signal();
      break;
    case 3:
      add_image();
      add_table();
      break;
    case 4:
      add_signal();
      add_table();
      break;
    default:
      add_table();
  }
  return inputs;
}

json draw_targets(Dice& dice, Arrays& arrays, const json& inputs) {
  std::vector<FileTarget> all{
      {"class", {{"path", arrays.integers("class", {}, 0, 2)}, {"kind", "classes"}}},
      {"price", {{"path", arrays.numbers("price", {1})}, {"kind", "numbers"}}},
      {"pair", {{"path", arrays.numbers("pair", {2})}, {"kind", "numbers"}}},
      {"marks",
       {{"path", arrays.integers("marks", {3}, 0, 1)},
        {"kind", "labels"},
        {"classes", {"m1", "m2", "m3"}}}},
      {"share",
       {{"path", arrays.distributions("share")},
        {"kind", "distribution"},
        {"classes", {"p", "q"}}}}};
  for (const char* const name : {"words", "signal"}) {
    if (!inputs.contains(name) || dice.chance(40))
      continue;
    all = {{"tag", {{"path", arrays.integers("tag", {kPositions}, 0, 2)}, {"kind", "classes"}}},
           {"curve", {{"path", arrays.numbers("curve", {kPositions, 1})}, {"kind", "numbers"}}}};
    for (FileTarget& target : all) {
      if (inputs[name].contains("lengths"))
        target.spoken["padded_like"] = name;
      if (dice.chance(40))
        target.spoken["weights"] = arrays.integers(target.name + "-weights", {kPositions}, 0, 2);
    }
  }
  json targets = json::object();
  for (std::size_t count = dice.chance(70) ? 1 : 2; count-- > 0;) {
    const FileTarget& target = dice.one_of(all);
    targets[target.name] = target.spoken;
  }
  return targets;
}

/// Of any source of tables that has the columns of table.csv.
json table_parameters(Dice& dice) {
  json parameters = {{"inputs", nullptr},   {"columns", nullptr},   {"categorical", nullptr},
                     {"dates", nullptr},    {"calendar", nullptr},  {"date_format", nullptr},
                     {"timezone", nullptr}, {"ambiguous", nullptr}, {"in_memory", nullptr}};
  const std::vector<json> targets{
      "label",
      "number",
      {{"name", "grade"}, {"columns", json::array({"grade"})}, {"kind", "classes"}},
      {{"name", "both"}, {"columns", {"number", "other"}}, {"kind", "numbers"}},
      {{"name", "marks"}, {"columns", {"l1", "l2", "l3"}}, {"kind", "labels"}},
      {{"name", "share"}, {"columns", {"p1", "p2"}}, {"kind", "distribution"}}};
  const std::size_t first = dice.below(targets.size());
  const std::size_t second = dice.below(targets.size());
  const bool overlap = (first == 1 && second == 3) || (first == 3 && second == 1);
  if (first < 2 && dice.chance(50)) {
    parameters["target"] = targets[first];
  } else {
    parameters["target"] = json::array({targets[first]});
    if (second != first && !overlap && dice.chance(40))
      parameters["target"].push_back(targets[second]);
  }
  const bool with_holes = dice.chance(25);
  std::vector<std::string> columns = texts({"a", "b", "c"});
  if (with_holes)
    columns.emplace_back("holes");
  parameters["missing"] = with_holes ? json(dice.chance(70) ? "nan" : "drop_row") : json();
  std::vector<std::string> categorical;
  if (dice.chance(35))
    categorical = dice.some_of(texts({"town", "size"}));
  if (!categorical.empty())
    parameters["categorical"] = categorical;
  columns.insert(columns.end(), categorical.begin(), categorical.end());
  if (dice.chance(20)) {
    columns.emplace_back("day");
    parameters["dates"] = {"day"};
    if (dice.chance(50))
      parameters["calendar"] = dice.some_of(texts({"day_of_week", "month", "weekend"}));
    if (dice.chance(30))
      parameters["timezone"] = "+09:00";
  }
  if (dice.chance(80)) {
    parameters["columns"] = columns;
  } else {
    const std::size_t cut = 1 + dice.below(columns.size() - 1);
    const auto middle = columns.begin() + static_cast<std::ptrdiff_t>(cut);
    parameters["inputs"] = {{"left", std::vector<std::string>(columns.begin(), middle)},
                            {"right", std::vector<std::string>(middle, columns.end())}};
  }
  for (const char* const key : {"weight", "group", "time"})
    parameters[key] = dice.chance(25) ? json(key) : json();
  parameters["texts"] = nullptr;
  if (dice.chance(15)) {
    parameters["texts"] = json::array({{{"column", "note"},
                                        {"tokenizer", draw_tokenizer(dice)},
                                        {"max_length", dice.whole(1, 9)}}});
  } else if (dice.chance(15)) {
    parameters["in_memory"] = false;
    for (const char* const key : {"group", "time", "label_end"})
      parameters[key] = nullptr;
  }
  return parameters;
}

/// The rows of table.csv in two files: their list, or a pattern.
json in_parts(Drawing& drawing) {
  std::ifstream table(drawing.folder / "table.csv");
  std::ofstream first(drawing.folder / "part-1.csv");
  std::ofstream second(drawing.folder / "part-2.csv");
  std::string line;
  std::getline(table, line);
  first << line << '\n';
  second << line << '\n';
  for (std::int64_t row = 0; std::getline(table, line); ++row)
    (row < kFewestRows / 2 ? first : second) << line << '\n';
  if (drawing.dice.chance(50))
    return (drawing.folder / "part-*.csv").string();
  return {(drawing.folder / "part-1.csv").string(), (drawing.folder / "part-2.csv").string()};
}

/// The rows of table.csv as spreadsheets write them where numbers have a decimal comma.
std::string with_decimal_commas(const Drawing& drawing) {
  std::ifstream table(drawing.folder / "table.csv");
  const std::string path = (drawing.folder / "commas.csv").string();
  std::ofstream file(path);
  for (std::string line; std::getline(table, line);) {
    std::replace(line.begin(), line.end(), ',', ';');
    std::replace(line.begin(), line.end(), '.', ',');
    file << line << '\n';
  }
  return path;
}

/// The lines of table.csv as fields, none of which is quoted; the first has the names.
std::vector<std::vector<std::string>> table_fields(const Drawing& drawing) {
  std::ifstream table(drawing.folder / "table.csv");
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(table, line);) {
    std::istringstream rest(line);
    std::vector<std::string>& fields = lines.emplace_back();
    for (std::string field; std::getline(rest, field, ',');)
      fields.push_back(field);
  }
  return lines;
}

void write_lines_of_json(const Drawing& drawing) {
  std::vector<std::vector<std::string>> lines = table_fields(drawing);
  const std::vector<std::string> names = lines.front();
  std::ofstream file(drawing.folder / "table.jsonl");
  for (std::size_t line = 1; line < lines.size(); ++line) {
    json object;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string& field = lines[line][i];
      const json number = json::parse(field, nullptr, false);
      if (!field.empty())
        object[names[i]] = number.is_number() ? number : json(field);
    }
    file << object << '\n';
  }
}

}  // namespace

json csv_parameters(Drawing& drawing) {
  write_table(drawing, drawing.dice.whole(kFewestRows, kMostRows));
  json parameters = table_parameters(drawing.dice);
  parameters["path"] = (drawing.folder / "table.csv").string();
  if (drawing.dice.chance(25)) {
    parameters["path"] = in_parts(drawing);
  } else if (drawing.dice.chance(25)) {
    parameters["path"] = with_decimal_commas(drawing);
    parameters["separator"] = ";";
    parameters["decimal"] = ",";
  }
  for (const char* const key :
       {"header", "separator", "quote", "skip_rows", "encoding", "decimal", "thousands"}) {
    if (!parameters.contains(key))
      parameters[key] = nullptr;
  }
  return parameters;
}

json parquet_parameters(Drawing& drawing) {
  write_table(drawing, drawing.dice.whole(kFewestRows, kMostRows));
  std::vector<std::vector<std::string>> rows = table_fields(drawing);
  const std::vector<std::string> names = rows.front();
  rows.erase(rows.begin());
  const std::filesystem::path path = drawing.folder / "table.parquet";
  std::ofstream(path, std::ios::binary) << parquet_of(names, rows);
  json parameters = table_parameters(drawing.dice);
  parameters["path"] = path.string();
  return parameters;
}

json jsonl_parameters(Drawing& drawing) {
  write_table(drawing, drawing.dice.whole(kFewestRows, kMostRows));
  write_lines_of_json(drawing);
  json parameters = table_parameters(drawing.dice);
  parameters["path"] = (drawing.folder / "table.jsonl").string();
  return parameters;
}

json sqlite_parameters(Drawing& drawing) {
  json parameters = csv_parameters(drawing);
  for (const char* const key : {"header", "separator", "quote", "skip_rows"})
    parameters.erase(key);
  const std::filesystem::path path = drawing.folder / "table.db";
  std::filesystem::remove(path);
  copy_table(drawing.folder / "table.csv",
             *drawing.runtime.registry().make<TableWriter>(
                 "sqlite", Config(json{{"path", path.string()}, {"table", "rows"}})));
  parameters["path"] = path.string();
  const bool is_query = drawing.dice.chance(50);
  parameters["table"] = is_query ? json() : json("rows");
  parameters["query"] = is_query ? json("SELECT * FROM rows WHERE id >= ?1") : json();
  parameters["parameters"] = is_query ? json::array({drawing.dice.whole(0, 3)}) : json();
  parameters["order_by"] = json::array({"id"});
  return parameters;
}

json npy_parameters(Drawing& drawing) {
  Dice& dice = drawing.dice;
  Arrays arrays(drawing);
  const json inputs = draw_inputs(dice, arrays);
  json parameters = {{"inputs", inputs},   {"target", draw_targets(dice, arrays, inputs)},
                     {"classes", nullptr}, {"columns", nullptr},
                     {"missing", nullptr}, {"weights", nullptr},
                     {"groups", nullptr},  {"times", nullptr}};
  // A single target needs no name: its keys are then those of the parameter itself.
  if (parameters["target"].size() == 1 && dice.chance(40))
    parameters["target"] = json(*parameters["target"].begin());
  if (inputs.size() == 1 && inputs.contains("table") && dice.chance(30))
    parameters["columns"] = {"t0", "t1", "t2", "t3"};
  if (dice.chance(25))
    parameters["weights"] = arrays.integers("weights", {}, 1, 3);
  if (dice.chance(25))
    parameters["groups"] = arrays.integers("groups", {}, 0, 8);
  if (dice.chance(25))
    parameters["times"] = arrays.integers("times", {}, 1, 1000);
  return parameters;
}

json text_parameters(Drawing& drawing) {
  Dice& dice = drawing.dice;
  const std::vector<std::string> words{"a", "fine", "dull", "old", "film", "song"};
  const std::string path = (drawing.folder / "texts.jsonl").string();
  std::ofstream file(path);
  for (std::int64_t row = dice.whole(kFewestRows, kMostRows); row > 0; --row) {
    std::string text = dice.one_of(words);
    for (std::int64_t more = dice.whole(0, 4); more > 0; --more)
      text += " " + dice.one_of(words);
    const bool is_good = text.find("fine") != std::string::npos;
    file << json{{"text", text}, {"mood", is_good ? "good" : "bad"}, {"stars", dice.whole(1, 3)}}
         << '\n';
  }
  const json tokenizer = draw_tokenizer(dice);
  return {{"path", path},           {"target", dice.chance(60) ? "mood" : "stars"},
          {"tokenizer", tokenizer}, {"text_key", nullptr},
          {"format", nullptr},      {"rows", nullptr}};
}

}  // namespace treadle::testing
