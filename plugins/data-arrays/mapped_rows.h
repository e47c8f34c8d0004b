#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "array_files.h"
#include "row_source.h"

namespace treadle::arrays {

/// A file's bytes in the address space of the process.
class FileMap {
 public:
  /// Throws DataError when the file is not the one it was.
  explicit FileMap(const NpyFile& file);
  ~FileMap();
  FileMap(FileMap&& other) noexcept;
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  /// The first row.
  const std::byte* rows() const { return begin_ + data_offset_; }
  const Descriptor& descriptor() const { return descriptor_; }
  /// Throws DataError when `file` is not what it was when it was mapped.
  void expect_unchanged(const NpyFile& file) const { file.expect_unchanged(descriptor_); }

 private:
  Descriptor descriptor_;
  std::byte* begin_ = nullptr;
  std::size_t size_ = 0;
  std::size_t data_offset_ = 0;
};

/// Rows that stay in their files, which are mapped: the system holds what fits in memory, and rows
/// are copied, and converted, out of the map.
///
/// Reading a map behind the end of a file kills the process (SIGBUS). So each gather first asks
/// whether the files it reads are what they were; what remains is a file that is cut while a batch
/// is being copied.
class MappedRows final : public RowSource {
 public:
  explicit MappedRows(std::shared_ptr<const ArrayFiles> array);

  void gather(std::span<const std::int64_t> rows, at::Tensor& out) const override;
  at::Tensor view(at::ScalarType dtype) const override;
  void expect_unchanged() const override;

 private:
  void expect_unchanged(std::span<const std::int64_t> rows) const;

  std::shared_ptr<const ArrayFiles> array_;
  // One per file; those without rows are not mapped. Views keep them.
  std::shared_ptr<const std::vector<FileMap>> maps_;
};

}  // namespace treadle::arrays
