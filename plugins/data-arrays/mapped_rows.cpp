#include "mapped_rows.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <type_traits>
#include <utility>

#include <ATen/ops/from_blob.h>

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
  auto maps = std::make_shared<std::vector<FileMap>>();
  maps->reserve(array_->files().size());
  for (const NpyFile& file : array_->files())
    maps->emplace_back(file);
  maps_ = std::move(maps);
}

at::Tensor MappedRows::view(at::ScalarType dtype) const {
  const auto own_type = with_type_of(array_->item(), [](auto number) {
    return c10::CppTypeToScalarType<decltype(number)>::value;
  });
  if (maps_->size() != 1 || own_type != dtype)
    return {};
  const std::byte* const rows = maps_->front().rows();
  if (reinterpret_cast<std::uintptr_t>(rows) % size_of(array_->item()) != 0)
    return {};
  std::vector<std::int64_t> shape = array_->row_shape();
  shape.insert(shape.begin(), array_->rows());
  // The map is read-only: who writes to the tensor crashes.
  return at::from_blob(
      const_cast<std::byte*>(rows), shape, [maps = maps_](void*) {}, at::dtype(dtype));
}

// Of several files there is no view.
void MappedRows::expect_unchanged() const {
  if (maps_->size() == 1)
    maps_->front().expect_unchanged(array_->files().front());
}

void MappedRows::expect_unchanged(std::span<const std::int64_t> rows) const {
  if (maps_->size() == 1)
    return expect_unchanged();
  std::vector<bool> asked(maps_->size());
  for (const std::int64_t row : rows) {
    const std::size_t file = array_->find(row).file;
    if (!asked[file])
      (*maps_)[file].expect_unchanged(array_->files()[file]);
    asked[file] = true;
  }
}

void MappedRows::gather(std::span<const std::int64_t> rows, at::Tensor& out) const {
  expect_unchanged(rows);
  with_type_of(array_->item(), [&](auto item) {
    with_numbers_of(out, [&](auto* to) {
      copy_from_maps<decltype(item)>(*array_, *maps_, rows, items_of(out), to);
    });
  });
}

}  // namespace treadle::arrays
