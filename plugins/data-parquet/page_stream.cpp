#include "page_stream.h"

#include <algorithm>
#include <string>

#include "bytes.h"
#include "footer.h"

namespace treadle::parquet {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;          // bytes read at once
constexpr std::size_t kUsualHeader = 512;                     // bytes; statistics make it longer
constexpr std::size_t kLongestHeader = std::size_t{1} << 24;  // bytes

}  // namespace

void PageMemory::exchange(std::size_t less, std::size_t more) {
  if (held_ - less + more > most_) {
    throw Damage("the pages of all columns become " + std::to_string(held_ - less + more) +
                 " bytes at once, too many for a file of this size; read fewer columns");
  }
  held_ = held_ - less + more;
}

void PageStream::begin(const ColumnChunk& chunk, bool is_optional) {
  if (chunk.is_encrypted)
    throw Damage("it is encrypted, which is not supported");
  if (chunk.is_elsewhere)
    throw Damage("it is in another file, which is not supported");
  Compressor::check(chunk.codec);
  std::int64_t begin = chunk.data_offset;
  // 0 stands for none in files of some writers.
  if (chunk.dictionary_offset && *chunk.dictionary_offset > 0)
    begin = std::min(begin, *chunk.dictionary_offset);
  offset_ = static_cast<std::uint64_t>(begin);
  left_ = static_cast<std::uint64_t>(chunk.compressed_size);
  if (offset_ > source_.size() || left_ > source_.size() - offset_) {
    throw Damage("it has " + std::to_string(left_) + " bytes from byte " + std::to_string(offset_) +
                 " on, but the file ends at byte " + std::to_string(source_.size()));
  }
  codec_ = chunk.codec;
  is_optional_ = is_optional;
  begin_ = end_ = 0;
  index_ = next_index_ = 0;
}

// Bytes of the chunk from the current place on: as many as that, or all there are.
std::string_view PageStream::at_least(std::size_t count) {
  if (end_ - begin_ < count && left_ > 0) {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
    const auto more =
        static_cast<std::size_t>(std::min<std::uint64_t>(left_, std::max(count - end_, kPiece)));
    if (buffer_.size() < end_ + more)
      buffer_.resize(end_ + more);
    source_.read(offset_, buffer_.data() + end_, more);
    end_ += more;
    offset_ += more;
    left_ -= more;
  }
  return {buffer_.data() + begin_, end_ - begin_};
}

PageHeader PageStream::read_header() {
  for (std::size_t count = kUsualHeader;; count *= 16) {
    const std::string_view bytes = at_least(count);
    const bool is_all = left_ == 0 || bytes.size() >= kLongestHeader;
    try {
      std::size_t size = 0;
      const PageHeader header = read_page_header(bytes, size);
      begin_ += size;
      return header;
    } catch (const Damage&) {
      if (is_all)
        throw;
    }
  }
}

bool PageStream::next(Page& page) {
  for (;;) {
    if (begin_ == end_ && left_ == 0)
      return false;
    index_ = next_index_++;
    const PageHeader header = read_header();
    if (header.compressed_size > kLargestPage || header.uncompressed_size > kLargestPage) {
      throw Damage("it has " +
                   std::to_string(std::max(header.compressed_size, header.uncompressed_size)) +
                   " bytes; at most " + std::to_string(kLargestPage) + " are supported");
    }
    const auto size = static_cast<std::size_t>(header.compressed_size);
    std::string_view stored = at_least(size);
    if (stored.size() < size) {
      throw Damage("it has " + std::to_string(size) + " bytes, but its column ends after " +
                   std::to_string(stored.size()));
    }
    stored = stored.substr(0, size);
    begin_ += size;
    const bool is_known = header.type == PageType::kData || header.type == PageType::kDataV2 ||
                          header.type == PageType::kDictionary;
    if (!is_known)
      continue;  // an index, or what the format may get one day
    if (header.crc && *header.crc != crc_of(stored))
      throw Damage("it is damaged: its checksum differs");
    fill(page, header, stored);
    return true;
  }
}

// Kept for the next page unless texts of this one are still in use.
void PageStream::make_room(Page& page, std::size_t size) {
  if (page.bytes && page.bytes.use_count() == 1 && room_ >= size)
    return;
  page.bytes.reset();
  const std::size_t room = std::max<std::size_t>(size, 1);
  memory_.exchange(room_, room);
  room_ = room;
  page.bytes.reset(new char[room_]);
}

void PageStream::fill(Page& page, const PageHeader& header, std::string_view stored) {
  page.type = header.type;
  page.encoding = header.encoding;
  page.values = static_cast<std::size_t>(header.values);
  page.levels = {};
  page.level_encoding = Encoding::kRle;
  const auto size = static_cast<std::size_t>(header.uncompressed_size);

  std::size_t levels = 0;
  if (header.type == PageType::kDataV2) {
    if (header.repetition_bytes != 0)
      throw Damage("it has repetition levels, but no list to repeat");
    levels = static_cast<std::size_t>(header.definition_bytes);
    if (levels > stored.size() || levels > size)
      throw Damage("its levels have " + std::to_string(levels) + " bytes, more than the page");
  }
  const std::string_view values = stored.substr(levels);
  const Codec codec =
      header.type == PageType::kDataV2 && !header.is_compressed ? Codec::kUncompressed : codec_;
  // Nothing may be stored as nothing.
  const bool is_empty = values.empty() && size == levels;
  if (!is_empty)
    Compressor::check_ratio(codec, values, size - levels);
  make_room(page, size);
  std::copy_n(stored.begin(), levels, page.bytes.get());
  if (!is_empty)
    compressor_.decompress(codec, values, page.bytes.get() + levels, size - levels);

  page.body = {page.bytes.get() + levels, size - levels};
  if (header.type == PageType::kDataV2) {
    if (is_optional_)
      page.levels = {page.bytes.get(), levels};
    return;
  }
  if (header.type == PageType::kDictionary || !is_optional_)
    return;
  page.level_encoding = header.level_encoding;
  if (page.level_encoding == Encoding::kBitPacked) {
    levels = (page.values + 7) / 8;
    if (levels > page.body.size())
      throw Damage("it ends within its levels");
    page.levels = page.body.substr(0, levels);
    page.body.remove_prefix(levels);
    return;
  }
  if (page.level_encoding != Encoding::kRle) {
    throw Damage("its levels have the encoding " + name_of(page.level_encoding) +
                 ", which levels cannot have");
  }
  ByteCursor cursor(page.body);
  page.levels = cursor.take(cursor.fixed<std::uint32_t>());
  page.body = cursor.rest();
}

}  // namespace treadle::parquet
