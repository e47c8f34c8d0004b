#pragma once

#include <memory>
#include <string>

#include <treadle/table/byte_source.h>

namespace treadle::table {

/// The text in `from`, which is written in `encoding`, in UTF-8. Expects is_encoding().
std::unique_ptr<ByteSource> decode_bytes(std::unique_ptr<ByteSource> from, const std::string& shown,
                                         const std::string& encoding);

/// Whether the name is one of UTF-8, which needs no conversion.
bool is_utf8(const std::string& encoding);

}  // namespace treadle::table
