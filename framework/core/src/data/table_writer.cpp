#include <treadle/core/data/table_writer.h>

#include <string>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {
namespace {

std::size_t rows_of(const TableWriter::Values& values) {
  return std::visit([](const auto& list) { return list.size(); }, values);
}

}  // namespace

TableWriter::~TableWriter() = default;

void TableWriter::open(std::vector<Column> columns) {
  if (open_)
    throw ContractViolation("TableWriter::open: was called before");
  if (columns.empty())
    throw ContractViolation("TableWriter::open: expected at least one column");
  columns_ = std::move(columns);
  call_plugin(*this, "open", [&] { do_open(columns_); });
  open_ = true;
}

void TableWriter::write(const std::vector<Values>& chunk) {
  if (!open_)
    throw ContractViolation("TableWriter::write: expected open() before, and no close()");
  if (chunk.size() != columns_.size()) {
    throw ContractViolation("TableWriter::write: expected " + std::to_string(columns_.size()) +
                            " columns, got " + std::to_string(chunk.size()));
  }
  const std::size_t rows = rows_of(chunk.front());
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    if (chunk[i].index() != static_cast<std::size_t>(columns_[i].type) || rows_of(chunk[i]) != rows)
      throw ContractViolation("TableWriter::write: column \"" + columns_[i].name +
                              "\" has values of another type or number than the table");
  }
  if (rows > 0)
    call_plugin(*this, "write", [&] { do_write(chunk, rows); });
}

void TableWriter::close() {
  if (!open_)
    throw ContractViolation("TableWriter::close: expected open() before, and no close()");
  open_ = false;
  call_plugin(*this, "close", [&] { do_close(); });
}

}  // namespace treadle
