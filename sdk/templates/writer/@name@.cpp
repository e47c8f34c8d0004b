#include <treadle/sdk.h>

#include <array>
#include <charconv>
#include <string>
#include <variant>
#include <vector>

#include <treadle/base/atomic_file.h>

namespace {

/// A table as Markdown: `workflow-runner predict RUN DATA -o table.md`. It is in memory until it is
/// complete; the file then replaces what was there, at once.
class @Name@ final : public treadle::TableWriter {
 public:
  explicit @Name@(const treadle::Config& config) : path_(config.get<std::string>("path")) {}

 private:
  void do_open(const std::vector<Column>& columns) override {
    std::string rule;
    for (const Column& column : columns) {
      add(column.name);
      rule += column.type == Column::Type::kText ? "|---" : "|--:";
    }
    text_ += "|\n" + rule + "|\n";
  }

  void do_write(const std::vector<Values>& chunk, std::size_t rows) override {
    for (std::size_t row = 0; row < rows; ++row) {
      for (const Values& column : chunk)
        std::visit([&](const auto& values) { add(values[row]); }, column);
      text_ += "|\n";
    }
  }

  void do_close() override { treadle::write_file_atomically(path_, text_); }

  void add(const std::string& field) {
    text_ += "| ";
    for (const char c : field) {
      if (c == '|' || c == '\\')
        text_ += '\\';
      text_ += c == '\n' || c == '\r' ? ' ' : c;
    }
    text_ += ' ';
  }
  /// The shortest text that reads back as the same number.
  template <typename Number>
  void add(Number number) {
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    add(std::string(digits.data(), end));
  }

  std::string path_;
  std::string text_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
