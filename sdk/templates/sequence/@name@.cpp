#include <treadle/sdk.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>

namespace {

/// Rows as samples: sample i is row rows[i] and the `lags` rows before it.
class LaggedRows final : public treadle::SampleReader {
 public:
  LaggedRows(treadle::MatrixRows::Matrices table, std::vector<std::int64_t> rows, std::int64_t lags)
      : table_(std::move(table)), rows_(std::move(rows)), lags_(lags) {}

 private:
  const treadle::DataSpec& do_spec() const override { return table_.spec(); }
  std::int64_t do_rows() const override { return table_.rows(); }
  void do_gather(std::span<const std::int64_t> samples, treadle::Batch& out) const override {
    table_.gather(samples, out);
  }
  at::Tensor do_targets(std::size_t target) const override { return table_.targets(target); }
  at::Tensor do_groups() const override { return table_.groups(); }
  at::Tensor do_timestamps() const override { return table_.timestamps(); }
  std::string do_describe_row(std::int64_t sample) const override {
    return table_.describe_row(sample);
  }

  treadle::SourceRows do_source_rows(std::int64_t sample) const override {
    const std::int64_t row = rows_[static_cast<std::size_t>(sample)];
    return {{row - lags_, row + 1}, {row, row + 1}};
  }

  treadle::MatrixRows table_;
  std::vector<std::int64_t> rows_;
  std::int64_t lags_;
};

/// A table of C columns becomes one of C * (lags + 1): column "x" is followed by "x.lag1" of the row
/// before it, and so on. The first `lags` rows of a series are no samples. Keeps a copy of the table;
/// nothing else is asked of the rows afterwards.
class @Name@ final : public treadle::SequenceProvider {
 public:
  explicit @Name@(const treadle::Config& config) : lags_(config.get<std::int64_t>("lags")) {}

 private:
  std::unique_ptr<treadle::SampleReader> do_samples(const treadle::RowReader& rows) const override {
    const treadle::DataSpec& spec = rows.spec();
    if (spec.inputs.size() != 1 || spec.inputs[0].columns.empty() ||
        spec.inputs[0].role != treadle::Role::kFeatures) {
      throw treadle::DataError("the sequence @name@ takes data with one input, a table of numbers");
    }
    std::vector<std::int64_t> now;
    for (const treadle::RowRange& series : treadle::series_of(rows)) {
      for (std::int64_t row = series.begin + lags_; row < series.end; ++row)
        now.push_back(row);
    }
    if (now.empty()) {
      throw treadle::DataError("the sequence @name@ needs " + std::to_string(lags_ + 1) +
                               " rows of one series; there are " + std::to_string(rows.rows()) +
                               " rows");
    }
    return std::make_unique<LaggedRows>(table_of(rows, now), now, lags_);
  }

  treadle::MatrixRows::Matrices table_of(const treadle::RowReader& rows,
                                         const std::vector<std::int64_t>& now) const {
    treadle::MatrixRows::Matrices table;
    table.spec = rows.spec();
    treadle::PortSpec& input = table.spec.inputs[0];
    const std::vector<treadle::Column> columns = input.columns;
    treadle::Batch batch;
    rows.gather(now, batch);
    std::vector<at::Tensor> parts = {batch.inputs[0]};
    for (std::int64_t lag = 1; lag <= lags_; ++lag) {
      std::vector<std::int64_t> before = now;
      for (std::int64_t& row : before)
        row -= lag;
      treadle::Batch past;
      rows.gather(before, past);
      parts.push_back(past.inputs[0]);
      for (treadle::Column column : columns) {
        column.name += ".lag" + std::to_string(lag);
        input.columns.push_back(std::move(column));
      }
    }
    input.shape = {static_cast<std::int64_t>(input.columns.size())};
    table.inputs = {at::cat(parts, 1)};
    table.targets = batch.targets;
    table.position_weights = batch.position_weights;
    table.weights = batch.weights;
    if (rows.groups().defined())
      table.groups = at::index_select(rows.groups(), 0, batch.rows);
    if (rows.timestamps().defined())
      table.timestamps = at::index_select(rows.timestamps(), 0, batch.rows);
    table.describe_row = [&rows, now](std::int64_t sample) {
      return rows.describe_row(now[static_cast<std::size_t>(sample)]);
    };
    return table;
  }

  std::int64_t lags_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
