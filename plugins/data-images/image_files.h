#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace treadle::images {

/// Size, time of change and identity of a file: equal as long as it is the file that was read.
struct FileStamp {
  std::int64_t size = 0;
  std::int64_t changed = 0;  ///< nanoseconds
  std::uint64_t inode = 0;

  bool operator==(const FileStamp&) const = default;
};

/// Reads the whole file into `bytes`, whose memory is reused. Throws BadImage where it is no
/// regular file, cannot be read, changes meanwhile, or has more than `most_bytes`.
FileStamp read_file(const std::filesystem::path& file, std::int64_t most_bytes,
                    std::vector<std::uint8_t>& bytes);

/// No image of `max_pixels` pixels is larger: 8 bytes for each, and 64 MiB for metadata.
std::int64_t most_bytes_of(std::int64_t max_pixels);

}  // namespace treadle::images
