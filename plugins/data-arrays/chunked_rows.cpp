#include "chunked_rows.h"

#include <algorithm>
#include <utility>

#include <treadle/base/error.h>

namespace treadle::arrays {

ChunkedRows::ChunkedRows(std::shared_ptr<const ArrayFiles> array, std::int64_t chunk_rows,
                         std::shared_ptr<ChunkCache> cache)
    : array_(std::move(array)), chunk_rows_(chunk_rows), cache_(std::move(cache)) {
  std::int64_t largest = 0;
  for (std::size_t file = 0; file < array_->files().size(); ++file) {
    first_chunks_.push_back(chunks_.size());
    const std::int64_t rows = array_->files()[file].rows();
    for (std::int64_t begin = 0; begin < rows; begin += chunk_rows_)
      chunks_.push_back({file, begin, std::min(chunk_rows_, rows - begin)});
    largest = std::max(largest, std::min(chunk_rows_, rows));
  }
  const std::size_t bytes = static_cast<std::size_t>(largest) * array_->row_bytes();
  if (bytes > cache_->budget()) {
    throw DataError(array_->shown() + ": a chunk of " + std::to_string(largest) + " rows takes " +
                    std::to_string(bytes) + " bytes, but \"resident_bytes\" is " +
                    std::to_string(cache_->budget()) + "; raise it, or lower \"chunk_rows\"");
  }
  first_in_cache_ = cache_->add_chunks(chunks_.size());
}

std::vector<ChunkedRows::Wanted> ChunkedRows::find(std::span<const std::int64_t> rows) const {
  std::vector<Wanted> wanted(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ArrayFiles::Spot spot = array_->find(rows[i]);
    wanted[i] = {first_chunks_[spot.file] + static_cast<std::size_t>(spot.row / chunk_rows_),
                 spot.row % chunk_rows_, static_cast<std::int64_t>(i)};
  }
  const auto by_chunk = [](const Wanted& a, const Wanted& b) { return a.chunk < b.chunk; };
  if (!std::is_sorted(wanted.begin(), wanted.end(), by_chunk))
    std::sort(wanted.begin(), wanted.end(), by_chunk);
  return wanted;
}

template <typename From, typename To>
void ChunkedRows::copy(const std::vector<Wanted>& wanted, std::size_t items, To* out) const {
  const std::size_t bytes = array_->row_bytes();
  for (auto row = wanted.begin(); row != wanted.end();) {
    const std::size_t number = row->chunk;
    const Chunk& chunk = chunks_[number];
    const ChunkCache::Pin pin =
        cache_->pin(first_in_cache_ + number, static_cast<std::size_t>(chunk.rows) * bytes,
                    [&](std::span<std::byte> loaded) {
                      array_->files()[chunk.file].read_rows(chunk.begin, chunk.rows, loaded);
                    });
    const std::byte* const from = pin.bytes().data();
    for (; row != wanted.end() && row->chunk == number; ++row) {
      convert<From, To>(from + static_cast<std::size_t>(row->row) * bytes, items,
                        out + static_cast<std::size_t>(row->place) * items);
    }
  }
}

void ChunkedRows::gather(std::span<const std::int64_t> rows, at::Tensor& out) const {
  const std::vector<Wanted> wanted = find(rows);
  with_type_of(array_->item(), [&](auto item) {
    with_numbers_of(out, [&](auto* to) { copy<decltype(item)>(wanted, items_of(out), to); });
  });
}

}  // namespace treadle::arrays
