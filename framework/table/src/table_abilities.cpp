#include "table_abilities.h"

#include <algorithm>

#include <treadle/base/hash.h>

#include "texts/table_texts.h"

namespace treadle::table {

std::vector<std::vector<std::string>> TableTexts::do_texts(
    const std::vector<std::string>& names) const {
  return read_texts(*make_(), *kept_, names);
}

std::string TableHash::do_source_hash() const {
  const std::unique_ptr<TableSource> source = make_();
  source->columns();  // opens it
  std::string rows = source->hash() + " " + std::to_string(kept_->rows());
  for (const auto& [row, position] : kept_->breaks())
    rows += " " + std::to_string(row) + ":" + std::to_string(position);
  return hash_text(rows);
}

std::vector<ColumnOrigin> TableOrigins::do_of_input(const std::string& column) const {
  for (const UsedColumn& feature : layout_.features) {
    const std::vector<std::string> inputs = feature.inputs();
    if (std::find(inputs.begin(), inputs.end(), column) != inputs.end())
      return {{feature.name, 0}};
  }
  return {};
}

std::vector<std::string> TableOrigins::do_of_target(const std::string& target) const {
  std::vector<std::string> columns;
  for (const TargetColumns& known : layout_.targets) {
    for (const UsedColumn& column : known.columns) {
      if (known.name == target)
        columns.push_back(column.name);
    }
  }
  return columns;
}

}  // namespace treadle::table
