#include "mapped_rows.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <type_traits>
#include <utility>

#include <treadle/base/error.h>

namespace treadle::arrays {
namespace {

// Reading ahead helps as long as what was read ahead stays in memory.
bool fits_in_memory(std::size_t bytes) {
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  const auto page = ::sysconf(_SC_PAGESIZE);
  return pages <= 0 || page <= 0 ||
         bytes / 2 < static_cast<std::size_t>(pages) / 4 * static_cast<std::size_t>(page);
}

template <typename From, typename To>
void copy_from_maps(const ArrayFiles& array, const std::vector<FileMap>& maps,
                    std::span<const std::int64_t> rows, std::size_t items, To* to) {
  const std::size_t bytes = array.row_bytes();
  if (maps.size() == 1) {
    const std::byte* const begin = maps[0].rows();
    for (const std::int64_t row : rows) {
      convert<From, To>(begin + static_cast<std::size_t>(row) * bytes, items, to);
      to += items;
    }
    return;
  }
  for (const std::int64_t row : rows) {
    const ArrayFiles::Spot spot = array.find(row);
    convert<From, To>(maps[spot.file].rows() + static_cast<std::size_t>(spot.row) * bytes, items,
                      to);
    to += items;
  }
}

}  // namespace

FileMap::FileMap(const NpyFile& file)
    : descriptor_(file.open()), data_offset_(file.header().data_offset) {
  if (file.rows() == 0)
    return;
  size_ = file.size();
  void* const map = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_.number(), 0);
  if (map == MAP_FAILED) {
    throw DataError(file.shown() + ": cannot be mapped: " + std::generic_category().message(errno) +
                    "; \"access\": \"chunked\" reads it in pieces");
  }
  begin_ = static_cast<std::byte*>(map);
  if (!fits_in_memory(size_))
    ::madvise(map, size_, MADV_RANDOM);
}

FileMap::~FileMap() {
  if (begin_ != nullptr)
    ::munmap(begin_, size_);
}

FileMap::FileMap(FileMap&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      begin_(std::exchange(other.begin_, nullptr)),
      size_(other.size_),
      data_offset_(other.data_offset_) {}

MappedRows::MappedRows(std::shared_ptr<const ArrayFiles> array) : array_(std::move(array)) {
  maps_.reserve(array_->files().size());
  for (const NpyFile& file : array_->files())
    maps_.emplace_back(file);
}

void MappedRows::expect_unchanged(std::span<const std::int64_t> rows) const {
  if (maps_.size() == 1) {
    array_->files()[0].expect_unchanged(maps_[0].descriptor());
    return;
  }
  std::vector<bool> asked(maps_.size());
  for (const std::int64_t row : rows) {
    const std::size_t file = array_->find(row).file;
    if (!asked[file])
      array_->files()[file].expect_unchanged(maps_[file].descriptor());
    asked[file] = true;
  }
}

void MappedRows::gather(std::span<const std::int64_t> rows, at::Tensor& out) const {
  expect_unchanged(rows);
  with_type_of(array_->item(), [&](auto item) {
    with_numbers_of(out, [&](auto* to) {
      copy_from_maps<decltype(item)>(*array_, maps_, rows, items_of(out), to);
    });
  });
}

}  // namespace treadle::arrays
