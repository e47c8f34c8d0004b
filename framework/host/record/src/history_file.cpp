#include <treadle/host/record/history_file.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include <treadle/base/error.h>

// history.csv: a row per epoch and fit, in the order in which epochs ended, until finish() puts
// fits in order. All rows are in memory as well; the file is what people and a resumed run read.
//
// Columns grow: a metric or a logged value may first appear in a later epoch or fit. The file is
// then rewritten atomically; otherwise a row is appended. Names are kept as the file has them
// (column_name() replaces separators), so that a resumed run finds its columns.
//
// The file may be damaged by a crash (a torn last line) or by people. The constructor passes damage
// over, since the checkpoints hold the same rows and restore() puts them back. read(), which has
// nothing else to go by, reports it with its line.
//
// One call at a time: the host serializes them.

namespace treadle {
namespace {

namespace fs = std::filesystem;

/// An undefined number. Pandas and R read it as missing.
constexpr const char* kUndefined = "NA";

/// The shortest text that reads back as the same number.
std::string number_text(const Number& value) {
  if (value.is_undefined())
    return kUndefined;
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value > 0 ? "inf" : "-inf";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value.value()).ptr;
  return {text, end};
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  std::string field;
  std::istringstream stream(line);
  while (std::getline(stream, field, ','))
    fields.push_back(field);
  if (!line.empty() && line.back() == ',')
    fields.emplace_back();
  return fields;
}

constexpr std::string_view kBetweenDecisions = "; ";

std::vector<std::string> split_decisions(std::string_view text) {
  std::vector<std::string> decisions;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kBetweenDecisions), text.size());
    decisions.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + kBetweenDecisions.size(), text.size()));
  }
  return decisions;
}

constexpr std::array kLeading{"fit",           "epoch",      "epochs",  "step",
                              "learning_rate", "train_loss", "val_loss"};
constexpr std::array kTrailing{"best", "seconds"};
// Between them: metrics, what the model logged, and what the training changed, where there was any.
constexpr std::string_view kLogged = "log.";
constexpr const char* kDecisions = "decisions";

/// A metric's name may hold a class name, and that anything: commas would shift columns.
std::string column_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return c == ',' || c == '"' || c == '\n' || c == '\r'; }, '_');
  return name;
}

/// Rows that were read from a file have its columns' order.
void put_in_order_of(const EpochSummary& other, EpochSummary& summary) {
  const auto order = [](const std::vector<MetricValue>& wanted, std::vector<MetricValue>& values) {
    const auto place = [&](const MetricValue& value) {
      return std::find_if(wanted.begin(), wanted.end(),
                          [&](const MetricValue& one) { return one.name == value.name; }) -
             wanted.begin();
    };
    std::stable_sort(values.begin(), values.end(), [&](const MetricValue& a, const MetricValue& b) {
      return place(a) < place(b);
    });
  };
  order(other.metrics, summary.metrics);
  order(other.logged, summary.logged);
}

EpochSummary under_column_names(EpochSummary summary) {
  for (std::vector<MetricValue>* values : {&summary.metrics, &summary.logged}) {
    for (MetricValue& value : *values)
      value.name = column_name(std::move(value.name));
  }
  for (std::string& decision : summary.decisions)
    decision = column_name(std::move(decision));
  return summary;
}

}  // namespace

/// Reads the fields of one line of history.csv; a field that is no number is named with its place.
class HistoryLine {
 public:
  HistoryLine(const fs::path& path, std::int64_t line, const std::vector<std::string>& names,
              std::vector<std::string> fields)
      : path_(path), line_(line), names_(names), fields_(std::move(fields)) {}

  const std::string& text(std::size_t column) const { return fields_[column]; }

  template <typename T>
  T number(std::size_t column) const {
    const std::string& field = fields_[column];
    T value{};
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc{} || end != field.data() + field.size()) {
      throw StorageError(path_.string() + ":" + std::to_string(line_) + ": " + names_[column] +
                         " is \"" + field +
                         "\", which is no number; the file was edited or damaged: "
                         "\"workflow-runner resume\" restores it from the checkpoints");
    }
    return value;
  }

  Number number_or_undefined(std::size_t column) const {
    return fields_[column] == kUndefined
               ? Number::undefined("it was undefined when it was recorded")
               : Number(number<double>(column));
  }

 private:
  const fs::path& path_;
  std::int64_t line_;
  const std::vector<std::string>& names_;
  std::vector<std::string> fields_;
};

HistoryFile::HistoryFile(fs::path path) : path_(std::move(path)) {
  // Damage is mended once the checkpoints, which hold the same rows, have been read.
  if (std::ifstream file(path_); file && !load(file, Damage::kIsPassedOver)) {
    rewrite();
    return;
  }
  file_ = std::make_unique<AppendFile>(path_);
}

std::string HistoryFile::header() const {
  std::string text;
  for (const char* name : kLeading)
    text += std::string(name) + ",";
  for (const auto& metric : metrics_)
    text += metric.first + ",";
  for (const std::string& name : logged_)
    text += std::string(kLogged) + name + ",";
  if (has_decisions_)
    text += std::string(kDecisions) + ",";
  return text + kTrailing[0] + "," + kTrailing[1];
}

std::string HistoryFile::line(const Row& row) const {
  const EpochSummary& s = row.epoch;
  std::string text = row.fit + "," + std::to_string(s.epoch) + "," +
                     (s.epochs ? std::to_string(*s.epochs) : "") + "," + std::to_string(s.step) +
                     "," + number_text(s.learning_rate) + "," + number_text(s.train_loss) + "," +
                     (s.val_loss ? number_text(*s.val_loss) : "") + ",";
  const auto add = [&](const std::vector<MetricValue>& values, const std::string& name) {
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const MetricValue& m) { return m.name == name; });
    text += (found == values.end() ? "" : number_text(found->value)) + ",";
  };
  for (const auto& column : metrics_)
    add(s.metrics, column.first);
  for (const std::string& name : logged_)
    add(s.logged, name);
  if (has_decisions_) {
    for (std::size_t i = 0; i < s.decisions.size(); ++i) {
      text += (i == 0 ? "" : std::string(kBetweenDecisions)) + s.decisions[i];
    }
    text += ",";
  }
  return text + (s.best ? "1," : "0,") + number_text(s.seconds);
}

EpochSummary as_in_history(EpochSummary summary) {
  summary = under_column_names(std::move(summary));
  for (std::vector<MetricValue>* values : {&summary.metrics, &summary.logged}) {
    for (MetricValue& value : *values)
      value.direction = Direction::kNone;
  }
  return summary;
}

void HistoryFile::add(const std::string& fit, const EpochSummary& epoch) {
  // Names as a reader of the file sees them, so that a resumed run finds its columns again.
  rows_.push_back({fit, under_column_names(epoch)});
  const bool grew = take_columns(rows_.back().epoch);
  if (grew || rows_.size() == 1) {
    rewrite();
  } else {
    file_->append_line(line(rows_.back()));
  }
}

bool HistoryFile::take_columns(const EpochSummary& kept) {
  bool grew = false;
  for (const MetricValue& metric : kept.metrics) {
    const auto known = std::any_of(metrics_.begin(), metrics_.end(),
                                   [&](const auto& m) { return m.first == metric.name; });
    if (known)
      continue;
    metrics_.emplace_back(metric.name, metric.direction);
    grew = true;
  }
  for (const MetricValue& value : kept.logged) {
    if (std::find(logged_.begin(), logged_.end(), value.name) != logged_.end())
      continue;
    logged_.push_back(value.name);
    grew = true;
  }
  if (!kept.decisions.empty() && !has_decisions_)
    has_decisions_ = grew = true;
  return grew;
}

void HistoryFile::rewrite() {
  std::string text = header() + "\n";
  for (const Row& row : rows_)
    text += line(row) + "\n";
  write_file_atomically(path_, text);
  file_ = std::make_unique<AppendFile>(path_);
}

bool HistoryFile::load(std::istream& file, Damage damage) {
  std::string text;
  if (!std::getline(file, text))
    return true;
  const std::vector<std::string> names = split(text);
  if (names.size() < kLeading.size() + kTrailing.size())
    return true;
  std::size_t end = names.size() - kTrailing.size();
  has_decisions_ = end > kLeading.size() && names[end - 1] == kDecisions;
  if (has_decisions_)
    --end;
  for (std::size_t i = kLeading.size(); i < end; ++i) {
    if (names[i].starts_with(kLogged)) {
      logged_.push_back(names[i].substr(kLogged.size()));
    } else {
      metrics_.emplace_back(names[i], Direction::kNone);
    }
  }
  for (std::int64_t number = 2; std::getline(file, text); ++number) {
    // A crash can cut the last line off anywhere, a number included.
    if (file.eof())
      return false;
    std::vector<std::string> fields = split(text);
    if (fields.size() != names.size())
      continue;  // written before a metric appeared, by a crash in between
    try {
      rows_.push_back(row_of(HistoryLine(path_, number, names, std::move(fields)), names.size()));
    } catch (const StorageError&) {
      if (damage == Damage::kIsAnError)
        throw;
    }
  }
  return true;
}

HistoryFile::Row HistoryFile::row_of(const HistoryLine& line, std::size_t columns) const {
  Row row;
  row.fit = line.text(0);
  EpochSummary& s = row.epoch;
  s.epoch = line.number<std::int64_t>(1);
  if (!line.text(2).empty())
    s.epochs = line.number<std::int64_t>(2);
  s.step = line.number<std::int64_t>(3);
  s.learning_rate = line.number<double>(4);
  s.train_loss = line.number_or_undefined(5);
  if (!line.text(6).empty())
    s.val_loss = line.number_or_undefined(6);
  const auto read = [&](std::vector<MetricValue>& values, const std::string& name,
                        std::size_t column) {
    if (line.text(column).empty())
      return;
    values.push_back({name, line.number_or_undefined(column), Direction::kNone});
  };
  std::size_t column = kLeading.size();
  for (const auto& metric : metrics_)
    read(s.metrics, metric.first, column++);
  for (const std::string& value : logged_)
    read(s.logged, value, column++);
  if (has_decisions_)
    s.decisions = split_decisions(line.text(column));
  s.best = line.text(columns - 2) == "1";
  s.seconds = line.number<double>(columns - 1);
  return row;
}

std::vector<HistoryRow> HistoryFile::read(const fs::path& path, Damage damage) {
  HistoryFile file(path, Unopened{});
  std::ifstream stream(path);
  file.load(stream, damage);
  return {file.rows_.begin(), file.rows_.end()};
}

std::vector<TrainingCurve> curves_of(const std::vector<HistoryRow>& rows) {
  std::vector<TrainingCurve> curves;
  for (const HistoryRow& row : rows) {
    const auto found = std::find_if(curves.begin(), curves.end(), [&](const TrainingCurve& curve) {
      return curve.fit == row.fit;
    });
    TrainingCurve& curve =
        found == curves.end() ? curves.emplace_back(TrainingCurve{row.fit, {}}) : *found;
    curve.epochs.push_back(row.epoch);
  }
  return curves;
}

void HistoryFile::cut_back(const std::string& fit, std::int64_t epochs) {
  const auto is_later = [&](const Row& row) { return row.fit == fit && row.epoch.epoch > epochs; };
  if (std::none_of(rows_.begin(), rows_.end(), is_later))
    return;
  std::erase_if(rows_, is_later);
  rewrite();
}

std::string HistoryFile::text_of(const std::string& fit, std::int64_t epochs) const {
  // Its own columns in its own order, which do not depend on the fits beside it.
  HistoryFile own(path_, Unopened{});
  for (const Row& row : rows_) {
    if (row.fit != fit || row.epoch.epoch > epochs)
      continue;
    own.rows_.push_back(row);
    own.take_columns(row.epoch);
  }
  std::string text = own.header() + "\n";
  for (const Row& row : own.rows_)
    text += own.line(row) + "\n";
  return text;
}

bool HistoryFile::restore(const std::string& fit, const std::string& text) {
  HistoryFile kept(path_, Unopened{});
  std::istringstream stream(text);
  kept.load(stream, Damage::kIsAnError);
  adopt_columns(kept);
  const auto lines = [&](const std::deque<Row>& rows) {
    std::vector<std::string> found;
    for (const Row& row : rows) {
      if (row.fit == fit)
        found.push_back(line(row));
    }
    return found;
  };
  if (lines(rows_) == lines(kept.rows_)) {
    auto other = kept.rows_.begin();
    for (Row& row : rows_) {
      if (row.fit == fit)
        put_in_order_of((other++)->epoch, row.epoch);
    }
    return false;
  }
  std::erase_if(rows_, [&](const Row& row) { return row.fit == fit; });
  rows_.insert(rows_.end(), kept.rows_.begin(), kept.rows_.end());
  rewrite();
  return true;
}

void HistoryFile::adopt_columns(const HistoryFile& other) {
  for (const auto& metric : other.metrics_) {
    if (std::none_of(metrics_.begin(), metrics_.end(),
                     [&](const auto& known) { return known.first == metric.first; })) {
      metrics_.push_back(metric);
    }
  }
  for (const std::string& name : other.logged_) {
    if (std::find(logged_.begin(), logged_.end(), name) == logged_.end())
      logged_.push_back(name);
  }
  has_decisions_ = has_decisions_ || other.has_decisions_;
}

// Fits that run at once, or that another process has trained, write in any order: which columns
// come first must not depend on it.
void HistoryFile::finish(const std::vector<std::string>& fits) {
  std::erase_if(rows_, [&](const Row& row) {
    return std::find(fits.begin(), fits.end(), row.fit) == fits.end();
  });
  const auto place = [&](const Row& row) {
    return std::find(fits.begin(), fits.end(), row.fit) - fits.begin();
  };
  std::stable_sort(rows_.begin(), rows_.end(), [&](const Row& a, const Row& b) {
    return std::pair(place(a), a.epoch.epoch) < std::pair(place(b), b.epoch.epoch);
  });
  metrics_.clear();
  logged_.clear();
  for (const Row& row : rows_)
    take_columns(row.epoch);
  rewrite();
}

void HistoryFile::sync() {
  file_->sync();
}

std::vector<TrainingCurve> HistoryFile::curves(const std::vector<std::string>& fits) const {
  std::vector<TrainingCurve> curves;
  for (const std::string& fit : fits) {
    TrainingCurve curve{fit, {}};
    for (const Row& row : rows_) {
      if (row.fit == fit)
        curve.epochs.push_back(row.epoch);
    }
    if (!curve.epochs.empty())
      curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace treadle
