#include <treadle/sdk.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>

#include <ATen/ops/from_blob.h>

namespace {

namespace fs = std::filesystem;

/// A table as it stands in the file.
struct @Name@Rows {
  std::size_t columns = 0;
  std::vector<double> numbers;      // row after row
  std::vector<std::int64_t> lines;  // of each row, from 1
};

[[noreturn]] void refuse(const fs::path& path, std::int64_t line, const std::string& what) {
  throw treadle::DataError(path.string() + ":" + std::to_string(line) + ": " + what);
}

/// Adds the numbers of one line; false for a line without any.
bool add_numbers(std::string_view text, const fs::path& path, std::int64_t line, @Name@Rows& table) {
  constexpr std::string_view kBlanks = " \t\r";
  text = text.substr(0, text.find('#'));
  const std::size_t before = table.numbers.size();
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (text.empty())
      break;
    const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
    double number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(number))
      refuse(path, line, "expected a number, got \"" + std::string(word) + "\"");
    table.numbers.push_back(number);
    text.remove_prefix(word.size());
  }
  const std::size_t count = table.numbers.size() - before;
  if (count == 0)
    return false;
  if (table.columns == 0)
    table.columns = count;
  if (count != table.columns) {
    refuse(path, line,
           "expected " + std::to_string(table.columns) + " numbers, as in the first row, got " +
               std::to_string(count));
  }
  return true;
}

@Name@Rows read_table(const fs::path& path) {
  std::ifstream file(path);
  if (!file)
    throw treadle::DataError(path.string() + ": cannot be read");
  @Name@Rows table;
  std::int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (add_numbers(line, path, number, table))
      table.lines.push_back(number);
  }
  if (table.lines.empty())
    throw treadle::DataError(path.string() + ": has no rows");
  return table;
}

/// Reads the file once, when it is opened, and keeps it in memory; after that everything is const
/// and called from several threads at once. Columns are called x1, x2, … and y.
///
/// State: how many columns to predict from, so that a model that was trained on one file can be
/// evaluated on another one, or predict for one without a target.
class @Name@ final : public treadle::DataProvider {
 public:
  // Touches nothing: a document may be checked where its data is not.
  explicit @Name@(const treadle::Config& config) : path_(config.get<std::string>("path")) {}

 private:
  void do_open(const treadle::OpenRequest& request) override {
    if (request.task == treadle::Task::kClassification ||
        !request.takes("", treadle::TargetKind::kNumbers)) {
      throw treadle::DataError(path_.string() +
                               ": its last column is numbers, but classes are required; choose a "
                               "loss for numbers, such as mse");
    }
    @Name@Rows table = read_table(path_);
    const bool predicts = request.purpose == treadle::OpenRequest::Purpose::kPredict;
    const auto columns = static_cast<std::int64_t>(table.columns);
    if (features_ == 0)
      features_ = columns - 1;
    if (features_ < 1)
      throw treadle::DataError(path_.string() +
                               ": has one column; there is nothing to predict from");
    if (columns != features_ + 1 && !(predicts && columns == features_)) {
      throw treadle::DataError(path_.string() + ": has " + std::to_string(columns) +
                               " columns, but the model was trained with " +
                               std::to_string(features_) + " and a target");
    }

    const auto rows = static_cast<std::int64_t>(table.lines.size());
    const at::Tensor numbers =
        at::from_blob(table.numbers.data(), {rows, columns}, at::kDouble).clone();
    treadle::MatrixRows::Matrices matrices;
    treadle::PortSpec port{"features", {features_}, {}, treadle::Role::kFeatures, at::kDouble};
    for (std::int64_t i = 1; i <= features_; ++i) {
      std::string name = "x";
      name += std::to_string(i);
      port.columns.push_back({std::move(name), {}});
    }
    matrices.spec.inputs = {std::move(port)};
    matrices.inputs = {numbers.slice(1, 0, features_).contiguous()};
    if (!predicts) {
      matrices.spec.targets = {treadle::number_target("y")};
      matrices.targets = {numbers.slice(1, features_).contiguous()};
    }
    matrices.describe_row = [lines = std::move(table.lines), path = path_](std::int64_t row) {
      return "line " + std::to_string(lines[static_cast<std::size_t>(row)]) + " of " +
             path.string();
    };
    rows_.emplace(std::move(matrices));
  }

  const treadle::DataSpec& do_spec() const override { return rows_->spec(); }
  std::string do_content_hash() const override { return rows_->content_hash(); }

  // The rows can be read in any order: folds share them.
  void* do_ask(std::string_view interface_id) override {
    if (interface_id == treadle::RowReader::kInterface && rows_)
      return static_cast<treadle::RowReader*>(&*rows_);
    return nullptr;
  }

  treadle::StateDict do_state() const override {
    treadle::StateDict state;
    state.put("features", nlohmann::json(features_));
    return state;
  }
  void do_load_state(const treadle::StateDict& state) override {
    const nlohmann::json& features = state.value("features");
    if (!features.is_number_integer() || features < 1)
      throw treadle::StorageError("saved number of columns is not one: " + features.dump());
    features_ = features.get<std::int64_t>();
  }

  fs::path path_;
  std::int64_t features_ = 0;  // 0: not known yet
  std::optional<treadle::MatrixRows> rows_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
