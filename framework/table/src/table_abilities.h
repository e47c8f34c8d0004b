#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <treadle/core/data/abilities/local_times.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/abilities/source_hash.h>
#include <treadle/core/data/abilities/table_profile.h>
#include <treadle/core/data/column_origins.h>
#include <treadle/core/data/group_names.h>

#include <treadle/table/table_source.h>

#include "table_layout.h"
#include "values/row_positions.h"

/// The abilities of TableData, which it offers as objects beside itself.
namespace treadle::table {

/// Makes a new source of the same data.
using MakeSource = std::function<std::unique_ptr<TableSource>()>;

/// Reads the source anew.
class TableTexts final : public SourceColumns {
 public:
  TableTexts(MakeSource make, std::shared_ptr<const RowPositions> kept)
      : make_(std::move(make)), kept_(std::move(kept)) {}

 private:
  std::vector<std::vector<std::string>> do_texts(
      const std::vector<std::string>& names) const override;

  MakeSource make_;
  std::shared_ptr<const RowPositions> kept_;
};

class TableHash final : public SourceHash {
 public:
  TableHash(MakeSource make, std::shared_ptr<const RowPositions> kept)
      : make_(std::move(make)), kept_(std::move(kept)) {}

 private:
  std::string do_source_hash() const override;

  MakeSource make_;
  std::shared_ptr<const RowPositions> kept_;
};

class TableGroups final : public GroupNames {
 public:
  explicit TableGroups(std::vector<std::string> names) : names_(std::move(names)) {}

 private:
  std::string do_name_of(std::int64_t group) const override {
    return names_.at(static_cast<std::size_t>(group));
  }

  std::vector<std::string> names_;
};

class TableClocks final : public LocalTimes {
 public:
  explicit TableClocks(at::Tensor utc_offsets) : utc_offsets_(std::move(utc_offsets)) {}

 private:
  at::Tensor do_utc_offsets() const override { return utc_offsets_; }

  at::Tensor utc_offsets_;
};

/// Borrows the layout.
class TableOrigins final : public ColumnOrigins {
 public:
  explicit TableOrigins(const TableLayout& layout) : layout_(layout) {}

 private:
  std::vector<ColumnOrigin> do_of_input(const std::string& column) const override;
  std::vector<std::string> do_of_target(const std::string& target) const override;

  const TableLayout& layout_;
};

class TableCounts final : public TableProfiler {
 public:
  explicit TableCounts(std::function<TableProfile()> profile) : profile_(std::move(profile)) {}

 private:
  TableProfile do_profile() const override { return profile_(); }

  std::function<TableProfile()> profile_;
};

}  // namespace treadle::table
