#include "line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>

namespace treadle::jsonl {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

std::string reason() {
  return std::generic_category().message(errno);
}

bool is_blank_line(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

LineReader::LineReader(const std::filesystem::path& path, std::string shown)
    : shown_(std::move(shown)), buffer_(kPiece) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) {
    throw DataError(shown_ +
                    (errno == ENOENT ? ": no such file" : ": cannot be opened: " + reason()));
  }
  try {
    struct stat status {};
    if (::fstat(descriptor_, &status) == 0 && S_ISDIR(status.st_mode))
      throw DataError(shown_ + ": is a folder; \"path\" must name a file");
    fill();
    const std::string_view start(buffer_.data(), end_);
    if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF"))
      throw DataError(shown_ + ": is UTF-16; save it as UTF-8");
    if (start.starts_with("\xEF\xBB\xBF"))
      begin_ = 3;
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

LineReader::~LineReader() {
  ::close(descriptor_);
}

void LineReader::go_to(std::int64_t offset, std::int64_t line) {
  if (::lseek(descriptor_, offset, SEEK_SET) < 0)
    throw DataError(shown_ + ": cannot be read again: " + reason());
  at_end_of_file_ = false;
  begin_ = end_ = 0;
  offset_ = offset;
  line_ = line;
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
    const ssize_t count = ::read(descriptor_, buffer_.data() + end_, buffer_.size() - end_);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      throw DataError(shown_ + ": cannot be read: " + reason());
    at_end_of_file_ = count == 0;
    end_ += static_cast<std::size_t>(count);
    offset_ += count;
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
