#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <treadle/core/data/data_provider.h>

#include <treadle/table/table_options.h>
#include <treadle/table/table_source.h>

namespace treadle::table {

/// The use of a field.
enum class Use : std::uint8_t {
  kNone,  ///< or text, which a pass of its own reads
  kFeature,
  kTarget,
  kWeight,
  kGroup,
  kTime,
  kLabelEnd
};

/// One column that is used.
struct UsedColumn {
  std::string name;
  std::int64_t index = 0;  ///< in the file it was first read from
  bool is_category = false;
  std::size_t port = 0;  ///< of a feature: the input it belongs to, of TableLayout::ports
  bool is_date = false;
  std::vector<std::string> calendar = {};  ///< of a date: its columns beside the days

  /// The model's columns that it becomes: itself, or those of a date.
  std::vector<std::string> inputs() const;
};

/// The columns of one target.
struct TargetColumns {
  std::string name;
  KindAsked kind = KindAsked::kAuto;
  std::vector<UsedColumn> columns;
};

/// Which columns of a file mean what. Made from the parameters and the header of the training file;
/// kept in the provider's state, so that files read later are understood the same way.
struct TableLayout {
  std::int64_t fields = 0;           ///< in a row of the training file
  std::vector<std::string> ports;    ///< "" for the only one, whose columns were not given a name
  std::vector<UsedColumn> features;  ///< may be empty beside texts
  std::vector<UsedColumn> texts;     ///< of TableOptions::texts
  std::vector<TargetColumns> targets;
  std::optional<UsedColumn> weight;
  std::optional<UsedColumn> group;
  std::optional<UsedColumn> time;
  std::optional<UsedColumn> label_end;
};

/// The decisions of the training data, which data read later must fit.
struct TableDescription {
  TableLayout layout;
  std::vector<Column> columns;      ///< of the features, with their categories
  std::vector<TargetSpec> targets;  ///< one per target of the layout
  bool has_dates = false;           ///< times are dates
  /// Of the groups, by number; empty without any, and where there are more than
  /// LabelDictionary::kMostLabels.
  std::vector<std::string> groups;
};

/// The inputs that a description makes: for each port its numbers, then its categories.
std::vector<PortSpec> input_ports(const TableLayout& layout, const std::vector<Column>& columns,
                                  c10::ScalarType dtype);

/// The use of each column of one table, by its index.
struct FieldPlan {
  struct Entry {
    Use use = Use::kNone;
    std::size_t slot = 0;    ///< of a feature: which; of a target's column: which of them
    std::size_t target = 0;  ///< of a target's column
  };
  std::vector<Entry> entries;  ///< one per column
  /// A second use: a target's column that is a feature too.
  std::vector<Entry> second;
  std::vector<std::string> names;  ///< of the file's columns, for messages
};

/// Finds the parameters' columns among those of the training data. `columns_in_use`:
/// OpenRequest::columns_in_use. Throws DataError.
TableLayout training_layout(const TableOptions& options, const TableColumns& columns,
                            const std::vector<std::string>& columns_in_use = {});

/// Where a layout's columns are among these columns: by name where they have names, else by
/// position. For kPredict only the features are needed; such a table without names may have the
/// features alone. Times and groups of a file with another purpose than training are taken where
/// it has them. Throws DataError naming every column that is missing and what is there.
FieldPlan plan_fields(const TableLayout& layout, const TableColumns& columns,
                      OpenRequest::Purpose purpose);

nlohmann::json to_json(const TableLayout& layout);
/// Throws StorageError.
TableLayout table_layout_from_json(const nlohmann::json& stored);

}  // namespace treadle::table
