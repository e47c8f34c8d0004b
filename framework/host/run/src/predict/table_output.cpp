#include "predict/table_output.h"

#include <array>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/atomic_file.h>
#include <treadle/base/config.h>
#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/base/json_words.h>
#include <treadle/base/quoted_text.h>

#include "data/dataset.h"

namespace treadle::internal {
namespace {

void add_field(std::string& line, const std::string& text) {
  line += csv_field(text);
}

/// The shortest text that reads back as the same number.
template <typename Number>
void add_field(std::string& line, Number value) {
  std::array<char, 32> digits;
  char* const begin = digits.data();
  line.append(begin, std::to_chars(begin, begin + digits.size(), value).ptr);
}

/// Lines of text, as they come: also to a pipe.
class CsvTable final : public TableWriter {
 public:
  explicit CsvTable(FileWriter& file) : file_(file) {}

 private:
  void do_open(const std::vector<Column>& columns) override {
    std::string header;
    for (const Column& column : columns)
      header += (header.empty() ? "" : ",") + csv_field(column.name);
    file_.write(header + "\n");
  }

  void do_write(const std::vector<Values>& chunk, std::size_t rows) override {
    std::string text;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < chunk.size(); ++i) {
        if (i > 0)
          text += ',';
        std::visit([&](const auto& values) { add_field(text, values[row]); }, chunk[i]);
      }
      text += '\n';
    }
    file_.write(text);
  }

  void do_close() override {}

  FileWriter& file_;
};

/// The writer for files of this ending; empty: none claims it.
std::string writer_of(const Runtime& runtime, const std::string& file) {
  for (const std::string& name : runtime.registry().names<TableWriter>()) {
    if (claims_file(runtime.registry().describe<TableWriter>(name).schema, file))
      return name;
  }
  return {};
}

void write_with(const Runtime& runtime, const std::string& name, nlohmann::json parameters,
                const std::function<void(TableWriter&)>& fill) {
  const std::unique_ptr<TableWriter> writer =
      runtime.registry().make<TableWriter>(name, Config(std::move(parameters), "/output"));
  fill(*writer);
}

}  // namespace

void write_table(const Runtime& runtime, const std::string& output,
                 const std::function<void(TableWriter&)>& fill) {
  if (output.starts_with('{')) {
    nlohmann::json component = parse_json(output);
    if (component.is_discarded() || !component.contains("use") || !component["use"].is_string()) {
      throw UsageError(
          "expected a file, or a writer as documents have components, "
          "{\"use\": NAME, …}, got " +
          quote_text(output) + "; \"plugins list writer\" shows those there are");
    }
    const std::string name = component["use"].get<std::string>();
    component.erase("use");
    write_with(runtime, name, std::move(component), fill);
  } else if (const std::string name = writer_of(runtime, output); !name.empty()) {
    write_with(runtime, name, {{"path", output}}, fill);
  } else {
    write_file_atomically(output, [&](FileWriter& file) {
      CsvTable table(file);
      fill(table);
    });
  }
}

}  // namespace treadle::internal
