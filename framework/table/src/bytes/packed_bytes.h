#pragma once

#include <memory>
#include <string>

#include <treadle/table/byte_source.h>

namespace treadle::table {

/// Unpacks gzip: one member after the other, as pigz, bgzip and cat write them. Zeros may follow.
/// Throws DataError where Treadle was built without zlib.
std::unique_ptr<ByteSource> unpack_gzip(std::unique_ptr<ByteSource> from, const std::string& shown,
                                        const UnpackLimits& limits);

/// The same for Zstandard: frames with windows up to 128 MiB.
std::unique_ptr<ByteSource> unpack_zstd(std::unique_ptr<ByteSource> from, const std::string& shown,
                                        const UnpackLimits& limits);

}  // namespace treadle::table
