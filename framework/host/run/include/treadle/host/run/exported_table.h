#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <treadle/host/run/runtime.h>

namespace treadle {

/// A table that a finished run left, for other programs: "history" (each training by epoch) or
/// "predictions" (of each row that a fold held out). `output` is a file, written by the plugin that
/// claims its ending, else as CSV; or a writer as documents have components. Columns whose fields
/// are whole numbers, or numbers, are such ones; a number that is missing is NaN. Returns the
/// number of rows.
///
/// Throws UsageError for another name, StorageError where the run has no such table, and what
/// writing throws.
std::int64_t export_table(const Runtime& runtime, const std::filesystem::path& run,
                          const std::string& table, const std::string& output);

}  // namespace treadle
