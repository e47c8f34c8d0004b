#include <treadle/base/atomic_file.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include <treadle/base/error.h>

#include "file_descriptor.h"

namespace treadle {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 16;

class BufferedWriter final : public FileWriter {
 public:
  explicit BufferedWriter(const FileDescriptor& file) : file_(file) { buffer_.reserve(kBuffer); }

  void write(std::string_view bytes) override {
    if (buffer_.size() + bytes.size() > kBuffer)
      flush();
    if (bytes.size() >= kBuffer) {
      file_.write(bytes);
    } else {
      buffer_ += bytes;
    }
  }

  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

 private:
  const FileDescriptor& file_;
  std::string buffer_;
};

// Removes the temporary file unless it became the real one.
class TemporaryName {
 public:
  explicit TemporaryName(std::filesystem::path path) : path_(std::move(path)) {}
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName() {
    if (!path_.empty())
      ::unlink(path_.c_str());
  }

  const std::filesystem::path& path() const noexcept { return path_; }
  void keep() noexcept { path_.clear(); }

 private:
  std::filesystem::path path_;
};

// A name nobody else uses: other processes differ in their id, other calls here find it taken.
std::pair<FileDescriptor, std::filesystem::path> create_temporary(
    const std::filesystem::path& target) {
  for (int attempt = 0;; ++attempt) {
    std::filesystem::path path = target;
    path += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    const int number = ::open(path.c_str(), kFlags, 0666);
    if (number >= 0)
      return {FileDescriptor(target, number), path};
    if (errno != EEXIST && errno != EINTR)
      throw_storage_error(target, "cannot be written", errno);
  }
}

}  // namespace

FileWriter::~FileWriter() = default;

void write_file_atomically(const std::filesystem::path& path,
                           const std::function<void(FileWriter&)>& fill) {
  auto [file, temporary_path] = create_temporary(path);
  TemporaryName temporary(std::move(temporary_path));
  BufferedWriter writer(file);
  fill(writer);
  writer.flush();
  file.sync();
  file.close();
  if (::rename(temporary.path().c_str(), path.c_str()) != 0) {
    throw_storage_error(path, "cannot be replaced", errno);
  }
  temporary.keep();
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  FileDescriptor::open(folder, O_RDONLY | O_DIRECTORY, "cannot be synced to disk").sync();
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  write_file_atomically(path, [bytes](FileWriter& writer) { writer.write(bytes); });
}

struct AppendFile::File {
  FileDescriptor descriptor;
};

AppendFile::AppendFile(const std::filesystem::path& path)
    : file_(std::make_unique<File>(
          File{FileDescriptor::open(path, O_WRONLY | O_CREAT | O_APPEND, "cannot be written")})),
      size_(file_->descriptor.size()) {}
AppendFile::~AppendFile() = default;
AppendFile::AppendFile(AppendFile&&) noexcept = default;
AppendFile& AppendFile::operator=(AppendFile&&) noexcept = default;

void AppendFile::append_line(std::string_view line) {
  TREADLE_EXPECTS(line.find('\n') == std::string_view::npos, "a line cannot hold a line feed");
  std::string bytes(line);
  bytes += '\n';
  try {
    file_->descriptor.write(bytes);
  } catch (const StorageError&) {
    try {
      file_->descriptor.truncate(size_);
    } catch (const StorageError&) {
      // Why the line could not be written is what people need to know.
    }
    throw;
  }
  size_ += bytes.size();
}

void AppendFile::sync() {
  file_->descriptor.sync();
}

void AppendFile::truncate_to(std::uint64_t size) {
  TREADLE_EXPECTS(size <= size_, "cutting back cannot make a file longer");
  file_->descriptor.truncate(size);
  size_ = size;
}

}  // namespace treadle
