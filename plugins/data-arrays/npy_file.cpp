#include "npy_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/path_words.h>

namespace treadle::arrays {
namespace {

/// Why a file cannot be used. The caller says which one, and which rows.
class Unusable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

std::string reason() {
  return std::generic_category().message(errno);
}

Descriptor open_file(const std::filesystem::path& path) {
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (number >= 0)
    return Descriptor(number);
  if (errno == ENOENT)
    throw Unusable("no such file");
  const char* const remedy =
      errno == EMFILE ? "; \"access\": \"chunked\" keeps no file open, or raise ulimit -n" : "";
  throw Unusable("cannot be opened: " + reason() + remedy);
}

// As much as there is.
std::size_t read_at(const Descriptor& file, std::size_t offset, std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = ::pread(file.number(), out.data() + done, out.size() - done,
                                  static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      throw Unusable("cannot be read: " + reason());
    if (count == 0)
      break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

std::string read_text(const Descriptor& file, std::size_t offset, std::size_t size) {
  std::string text(size, '\0');
  text.resize(read_at(file, offset, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0)
    ::close(number_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

NpyFile::NpyFile(std::filesystem::path path) : path_(std::move(path)), shown_(shown_path(path_)) {
  try {
    const Descriptor file = open_file(path_);
    struct stat status {};
    if (::fstat(file.number(), &status) == 0 && !S_ISREG(status.st_mode)) {
      throw Unusable(S_ISDIR(status.st_mode) ? "is a folder; name the files in it"
                                             : "is not a regular file");
    }
    identity_ = identity_of(file);
    read_header(file);
  } catch (const Unusable& why) {
    throw DataError(shown_ + ": " + why.what());
  }
}

void NpyFile::read_header(const Descriptor& file) {
  const NpyPrefix prefix = read_npy_prefix(read_text(file, 0, kMostPrefixBytes), shown_);
  const std::string text = read_text(file, prefix.text_begin, prefix.text_size);
  if (text.size() < prefix.text_size)
    throw Unusable("is cut off: it ends within its header");
  header_ = read_npy_header(text, prefix, shown_);
  const std::size_t expected = static_cast<std::size_t>(rows()) * header_.row_bytes();
  const std::size_t present = size() - std::min(size(), header_.data_offset);
  if (present == expected)
    return;
  const std::string takes = "an array of the shape " + shape_text(header_.shape) + " and type " +
                            std::string(name_of(header_.item)) + " takes " +
                            std::to_string(expected) + " bytes, and " + std::to_string(present) +
                            " follow the header";
  throw Unusable(present < expected ? "is cut off: " + takes
                                    : "has more in it than one array: " + takes +
                                          "; save each array in a file of its own");
}

NpyFile::Identity NpyFile::identity_of(const Descriptor& file) {
  struct stat status {};
  ::fstat(file.number(), &status);
  return {status.st_dev, status.st_ino, status.st_size, status.st_mtim};
}

void NpyFile::compare(const Identity& now) const {
  std::string what;
  if (now.size != identity_.size) {
    what = " (it had " + std::to_string(identity_.size) + " bytes, now it has " +
           std::to_string(now.size) + ")";
  }
  const bool is_same = now.device == identity_.device && now.inode == identity_.inode &&
                       now.size == identity_.size &&
                       now.written.tv_sec == identity_.written.tv_sec &&
                       now.written.tv_nsec == identity_.written.tv_nsec;
  if (!is_same) {
    throw Unusable("has changed since the data was opened" + what +
                   "; nothing may write to the files of a run");
  }
}

Descriptor NpyFile::open_unchanged() const {
  Descriptor file = open_file(path_);
  compare(identity_of(file));
  return file;
}

Descriptor NpyFile::open() const {
  try {
    return open_unchanged();
  } catch (const Unusable& why) {
    throw DataError(shown_ + ": " + why.what());
  }
}

void NpyFile::expect_unchanged(const Descriptor& file) const {
  try {
    compare(identity_of(file));
  } catch (const Unusable& why) {
    throw DataError(shown_ + ": " + why.what());
  }
}

void NpyFile::read_rows(std::int64_t first, std::int64_t count, std::span<std::byte> out) const {
  try {
    const Descriptor file = open_unchanged();
    const std::size_t offset =
        header_.data_offset + static_cast<std::size_t>(first) * header_.row_bytes();
    if (read_at(file, offset, out) < out.size())
      throw Unusable("has become shorter");
  } catch (const Unusable& why) {
    throw DataError(shown_ + ": rows " + std::to_string(first) + " to " +
                    std::to_string(first + count - 1) + ": " + why.what());
  }
}

}  // namespace treadle::arrays
