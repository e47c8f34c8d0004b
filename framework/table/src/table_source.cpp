#include <limits>
#include <utility>

#include <treadle/table/table_source.h>

namespace treadle::table {

TableSource::~TableSource() = default;

const TableColumns& TableSource::columns() {
  if (!is_open_) {
    columns_ = do_open();
    start_ = do_bookmark();
    is_open_ = true;
  }
  return columns_;
}

void TableSource::read(RowSink& sink) {
  while (do_read(sink, std::numeric_limits<std::int64_t>::max())) {
  }
}

std::string TableSource::do_remedy_for_comma(bool /*is_trained*/) const {
  return "write it with a decimal point, and thousands without a separator";
}

std::vector<std::string> numbered_columns(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i)
    names.push_back("column_" + std::to_string(i));
  return names;
}

}  // namespace treadle::table
