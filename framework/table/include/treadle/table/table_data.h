#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <treadle/core/data/abilities/table_profile.h>
#include <treadle/core/data/data_provider.h>

#include <treadle/table/table_options.h>
#include <treadle/table/table_source.h>

namespace treadle::table {

/// The reason a source is opened for, which decides what a message advises.
enum class SourceUse : std::uint8_t {
  kTraining,  ///< the document decides how it is read
  kTrained,   ///< a trained model reads it as its training data was read
  kProfile    ///< nothing is decided yet
};

/// A data provider over a table: everything but the format of the source. A plugin derives from it:
///
///     class CsvData final : public TableData {
///      public:
///       CsvData(const Config& config, const ComponentContext& context)
///           : TableData(config, context), options_(config) {}
///
///      private:
///       std::unique_ptr<TableSource> do_source(SourceUse) const override {
///         return std::make_unique<CsvSource>(options_);
///       }
///
///       CsvOptions options_;
///     };
///
/// The table is read once, whole, into one row-major matrix per input (RowReader), or with
/// `"in_memory": false` in chunks, in each pass anew (a stream). Its abilities: SourceColumns,
/// SourceHash, LocalTimes, ColumnOrigins, TableProfiler, GroupNames.
///
/// Its state is what the training data decided: the columns with their categories, the names of
/// classes and groups. Data opened with that state must fit it; columns are matched by name.
///
/// Up to five bad rows are listed in a DataError, each with its place, the others counted.
class TableData : public DataProvider {
 public:
  ~TableData() override;

 protected:
  /// `context` makes the tokenizers of columns of text.
  TableData(const Config& config, const ComponentContext& context);

  const TableOptions& table_options() const;

 private:
  /// A new source, which touches nothing yet. Called from any thread, also after open().
  virtual std::unique_ptr<TableSource> do_source(SourceUse use) const = 0;
  /// The default counts all columns of do_source(SourceUse::kProfile).
  virtual TableProfile do_profile() const;

  void do_open(const OpenRequest& request) final;
  const DataSpec& do_spec() const final;
  std::string do_content_hash() const final;
  std::unique_ptr<BatchStream> do_stream(std::int64_t batch_size) const final;
  std::optional<std::int64_t> do_stream_rows() const final;
  StateDict do_state() const final;
  void do_load_state(const StateDict& state) final;
  void* do_ask(std::string_view interface_id) final;

  class Contents;
  std::unique_ptr<Contents> contents_;
};

/// Reads the source and counts what is in each column. Memory: the different texts of a column, up
/// to 65536, and those of a column of numbers up to 1024. Throws DataError where it is no table.
TableProfile profile_table(TableSource& source, const std::vector<std::string>& missing_values,
                           const DateFormat& dates = DateFormat());

}  // namespace treadle::table
