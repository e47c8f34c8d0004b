#include "line_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/table/source_files.h>

namespace treadle::jsonl {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

bool is_blank_line(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

LineReader::LineReader(const std::filesystem::path& path, std::string shown)
    : path_(path),
      shown_(std::move(shown)),
      stamp_(table::file_stamp(path)),
      source_(table::open_bytes(path, shown_)),
      buffer_(kPiece) {
  fill();
  if (std::string_view(buffer_.data(), end_).starts_with("\xEF\xBB\xBF"))
    begin_ = 3;
}

void LineReader::go_to(std::int64_t offset, std::int64_t line) {
  if (stamp_.empty())
    throw DataError(shown_ + ": can be read only once; it must be a file");
  if (table::file_stamp(path_) != stamp_)
    throw DataError(shown_ + ": was changed while it was read");
  source_ = table::open_bytes(path_, shown_);
  source_->skip(static_cast<std::size_t>(offset));
  at_end_of_file_ = false;
  begin_ = end_ = 0;
  offset_ = offset;
  line_ = line;
}

std::size_t LineReader::read_bytes(char* to, std::size_t room) {
  try {
    return source_->read(to, room);
  } catch (const table::ByteError& error) {
    const std::int64_t lines = std::count(buffer_.data() + begin_, buffer_.data() + end_, '\n');
    throw DataError(shown_ + ":" + std::to_string(line_ + 1 + lines) + ": " + error.message());
  }
}

void LineReader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ > kLongestLine) {
    throw DataError(shown_ + ":" + std::to_string(line_ + 1) +
                    ": the line is longer than 64 MiB; JSON Lines has one object per line");
  }
  if (end_ > buffer_.size() / 2)
    buffer_.resize(2 * buffer_.size());
  while (!at_end_of_file_ && end_ < buffer_.size()) {
    const std::size_t count = read_bytes(buffer_.data() + end_, buffer_.size() - end_);
    at_end_of_file_ = count == 0;
    end_ += count;
    offset_ += static_cast<std::int64_t>(count);
  }
}

bool LineReader::find_end(std::size_t& length) {
  for (std::size_t searched = 0;;) {
    const char* const first = buffer_.data() + begin_ + searched;
    if (const void* const end = std::memchr(first, '\n', end_ - begin_ - searched)) {
      length = static_cast<std::size_t>(static_cast<const char*>(end) - buffer_.data()) - begin_;
      return true;
    }
    searched = end_ - begin_;
    if (at_end_of_file_) {
      length = searched;
      return length > 0;
    }
    fill();
  }
}

bool LineReader::has_next() {
  std::size_t length = 0;
  while (find_end(length)) {
    if (!is_blank_line({buffer_.data() + begin_, length}))
      return true;
    begin_ += std::min(length + 1, end_ - begin_);
    ++line_;
  }
  return false;
}

bool LineReader::next(std::string_view& line) {
  std::size_t length = 0;
  if (!has_next() || !find_end(length))
    return false;
  line = {buffer_.data() + begin_, length};
  begin_ += std::min(length + 1, end_ - begin_);
  ++line_;
  return true;
}

}  // namespace treadle::jsonl
