#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/abilities/local_times.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/abilities/source_hash.h>
#include <treadle/core/data/abilities/table_profile.h>
#include <treadle/core/data/column_origins.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/group_names.h>
#include <treadle/core/data/matrix_rows.h>

#include "csv_options.h"
#include "line_index.h"
#include "table_layout.h"

namespace treadle::csv {

/// The data provider `csv`: a table in a text file, read once, whole, into memory; random access
/// through RowReader. Parameters: csv.schema.json; how files are read: README.md.
///
/// Its state is what the training file taught: the columns with their categories, the names of
/// classes and groups. Files opened with that state are read to fit.
class CsvData final : public DataProvider {
 public:
  explicit CsvData(const Config& config);
  ~CsvData() override;

 private:
  /// What the file holds beside numbers and classes, read anew.
  class Texts final : public SourceColumns {
   public:
    Texts(const CsvOptions& options, std::shared_ptr<const LineIndex> lines)
        : options_(options), lines_(std::move(lines)) {}

   private:
    std::vector<std::vector<std::string>> do_texts(
        const std::vector<std::string>& names) const override;

    const CsvOptions& options_;
    std::shared_ptr<const LineIndex> lines_;
  };

  class Source final : public SourceHash {
   public:
    Source(const CsvOptions& options, std::shared_ptr<const LineIndex> lines)
        : options_(options), lines_(std::move(lines)) {}

   private:
    std::string do_source_hash() const override;

    const CsvOptions& options_;
    std::shared_ptr<const LineIndex> lines_;
  };

  class Profiler final : public TableProfiler {
   public:
    explicit Profiler(const CsvOptions& options) : options_(options) {}

   private:
    TableProfile do_profile() const override;

    const CsvOptions& options_;
  };

  class Groups final : public GroupNames {
   public:
    explicit Groups(std::vector<std::string> names) : names_(std::move(names)) {}

   private:
    std::string do_name_of(std::int64_t group) const override {
      return names_.at(static_cast<std::size_t>(group));
    }

    std::vector<std::string> names_;
  };

  class Clocks final : public LocalTimes {
   public:
    explicit Clocks(at::Tensor utc_offsets) : utc_offsets_(std::move(utc_offsets)) {}

   private:
    at::Tensor do_utc_offsets() const override { return utc_offsets_; }

    at::Tensor utc_offsets_;
  };

  class Origins final : public ColumnOrigins {
   public:
    explicit Origins(const TableLayout& layout) : layout_(layout) {}

   private:
    std::vector<ColumnOrigin> do_of_input(const std::string& column) const override;
    std::vector<std::string> do_of_target(const std::string& target) const override;

    const TableLayout& layout_;
  };

  void do_open(const OpenRequest& request) override;
  const DataSpec& do_spec() const override { return rows_->spec(); }
  std::string do_content_hash() const override { return rows_->content_hash(); }
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void* do_ask(std::string_view interface_id) override;

  CsvOptions options_;
  Profiler profiler_{options_};
  std::optional<TableDescription> description_;  // after open() or load_state()
  std::optional<MatrixRows> rows_;               // after open()
  std::optional<Texts> texts_;                   // after open()
  std::optional<Source> source_;                 // after open()
  std::optional<Clocks> clocks_;                 // after open()
  std::optional<Origins> origins_;               // after open()
  std::optional<Groups> groups_;                 // after open(), where rows have groups
};

}  // namespace treadle::csv
