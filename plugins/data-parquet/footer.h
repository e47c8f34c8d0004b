#pragma once

#include <cstddef>
#include <string_view>

#include "format.h"

namespace treadle::parquet {

/// Reads the struct FileMetaData, which is the file's footer. Throws Damage: for bytes that are no
/// such struct, for missing fields, negative counts, and for a schema that is no tree.
FileMetadata read_footer(std::string_view bytes);

/// Reads a page's header at the front of `bytes`; `size` is its length in bytes. Throws Damage.
PageHeader read_page_header(std::string_view bytes, std::size_t& size);

}  // namespace treadle::parquet
