#pragma once

#include <memory>

#include <treadle/table/byte_source.h>

namespace treadle::table {

/// The bytes of `from`, produced while those before them are used: by a thread that starts with the
/// second piece, waits once it is a few pieces ahead, and ends with the source. So a file of one
/// piece, or one that is only looked into, takes no thread.
std::unique_ptr<ByteSource> read_ahead(std::unique_ptr<ByteSource> from);

}  // namespace treadle::table
