#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/column_origins.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/matrix_rows.h>

#include "series_rows.h"

namespace treadle::series {

/// The data provider `series`: the rows of another provider as series, in memory. Its state is that
/// of the other.
class SeriesData final : public DataProvider {
 public:
  SeriesData(const Config& config, const ComponentContext& context);
  ~SeriesData() override;

 private:
  /// Those of the source, and lags and differences of them.
  class Origins final : public ColumnOrigins {
   public:
    Origins(const ColumnOrigins& source, const SeriesOptions& options)
        : source_(source), options_(options) {}

   private:
    std::vector<ColumnOrigin> do_of_input(const std::string& column) const override;
    std::vector<std::string> do_of_target(const std::string& target) const override {
      return source_.of_target(target);
    }

    const ColumnOrigins& source_;
    const SeriesOptions& options_;
  };

  void do_open(const OpenRequest& request) override;
  const DataSpec& do_spec() const override { return rows_->spec(); }
  std::string do_content_hash() const override { return rows_->content_hash(); }
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void* do_ask(std::string_view interface_id) override;

  SeriesOptions options_;
  std::unique_ptr<DataProvider> source_;
  std::optional<MatrixRows> rows_;  // after open()
  std::optional<Origins> origins_;  // likewise, where the source knows its own
};

}  // namespace treadle::series
