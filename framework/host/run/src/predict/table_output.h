#pragma once

#include <functional>
#include <string>

#include <treadle/core/data/table_writer.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// Lets `fill` write a table to `output`; it closes what it opens.
///
/// `output` is a file, or a component of the interface `writer` as documents have it,
/// `{"use": "sqlite", "path": "out.db", "table": "answers"}`. A file is written by the writer whose
/// schema lists its ending in x-treadle-extensions, else as CSV, of which a device or a FIFO gets
/// each line as it is made.
///
/// Throws a DocumentError for a component that cannot be made, a UsageError for text that is no
/// JSON, a StorageError for what cannot be written; nothing is left behind then.
void write_table(const Runtime& runtime, const std::string& output,
                 const std::function<void(TableWriter&)>& fill);

}  // namespace treadle::internal
