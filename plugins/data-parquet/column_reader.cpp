#include "column_reader.h"

#include <algorithm>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "bytes.h"

namespace treadle::parquet {

ColumnReader::ColumnReader(const ByteSource& source, Compressor& compressor, PageMemory& memory,
                           const Column& column, std::string shown)
    : column_(column), shown_(std::move(shown)), pages_(source, compressor, memory) {
  if (!column_.refusal.empty()) {
    throw DataError(shown_ + ": column " + quote_value(column_.name) +
                    " cannot be read: " + column_.refusal);
  }
  decoder_ = make_decoder(column_);
}

template <typename Action>
void ColumnReader::with_place(const Action& action) const {
  try {
    action();
  } catch (const Damage& damage) {
    throw DataError(shown_ + ": column " + quote_value(column_.name) + ", row group " +
                    std::to_string(group_) +
                    (is_in_page_ ? ", page " + std::to_string(pages_.index()) : std::string()) +
                    ": " + damage.what());
  }
}

void ColumnReader::begin(const ColumnChunk& chunk, std::size_t rows, std::size_t group) {
  group_ = group;
  is_in_page_ = false;
  group_left_ = rows;
  page_left_ = 0;
  with_place([&] {
    if (chunk.physical != column_.physical) {
      throw Damage("it has the type " + name_of(chunk.physical) + ", but the schema has " +
                   name_of(column_.physical));
    }
    if (!chunk.is_encrypted && static_cast<std::size_t>(chunk.values) != rows) {
      throw Damage("it has " + std::to_string(chunk.values) + " values, but the row group has " +
                   std::to_string(rows) + " rows");
    }
    pages_.begin(chunk, column_.is_optional);
    decoder_->begin_chunk();
  });
}

void ColumnReader::next_page() {
  while (page_left_ == 0) {
    is_in_page_ = true;
    if (!pages_.next(page_)) {
      is_in_page_ = false;
      throw Damage("its pages end before its row group; values that are missing: " +
                   std::to_string(group_left_));
    }
    if (page_.type == PageType::kDictionary) {
      decoder_->set_dictionary(page_.bytes, page_.body, page_.values);
      continue;
    }
    if (page_.values > group_left_) {
      throw Damage("it has " + std::to_string(page_.values) + " values, but only " +
                   std::to_string(group_left_) + " rows are left in the row group");
    }
    page_left_ = page_.values;
    if (column_.is_optional && page_.level_encoding == Encoding::kRle)
      levels_ = HybridDecoder(page_.levels, 1);
    level_index_ = 0;
    if (page_left_ > 0)
      decoder_->begin_page(page_.encoding, page_.bytes, page_.body);
  }
}

// Returns how many values are there.
std::size_t ColumnReader::read_levels(std::uint8_t* valid, std::size_t count) {
  if (page_.level_encoding == Encoding::kRle) {
    levels_.read(valid, count);
  } else {
    // From the highest bit of each byte downwards.
    for (std::size_t i = 0; i < count; ++i, ++level_index_) {
      const auto byte = static_cast<unsigned char>(page_.levels[level_index_ / 8]);
      valid[i] = byte >> (7 - level_index_ % 8) & 1;
    }
  }
  std::size_t there = 0;
  for (std::size_t i = 0; i < count; ++i)
    there += valid[i];
  return there;
}

void ColumnReader::read(ColumnValues& out, std::size_t rows) {
  with_place([&] {
    out.rows = rows;
    out.owners.clear();
    out.has_nulls = false;
    decoder_->make_room(out, rows);
    if (column_.is_optional && out.valid.size() < rows)
      out.valid.resize(rows);
    for (std::size_t at = 0; at < rows;) {
      if (page_left_ == 0)
        next_page();
      const std::size_t some = std::min(rows - at, page_left_);
      std::size_t there = some;
      if (column_.is_optional) {
        there = read_levels(out.valid.data() + at, some);
        out.has_nulls = out.has_nulls || there < some;
      }
      decoder_->read(out, at, there);
      if (there < some)
        decoder_->spread(out, at, there, some);
      at += some;
      page_left_ -= some;
      group_left_ -= some;
    }
  });
}

}  // namespace treadle::parquet
