#include <treadle/base/atomic_file.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
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

// Where a path leads. A number is an open file of this process, as behind /dev/stdout.
struct Destination {
  std::filesystem::path path;
  int number = -1;
};

// The number in "/proc/self/fd/1", where that is what the path means.
std::optional<int> own_descriptor(const std::filesystem::path& path) {
  const std::string digits = path.filename().string();
  if (digits.empty() || digits.size() > 9 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(path.parent_path(), error);
  if (error || folder != "/proc/" + std::to_string(::getpid()) + "/fd")
    return std::nullopt;
  return std::stoi(digits);
}

// Follows symbolic links to the name that the file has, or will have once it is written.
Destination destination_of(const std::filesystem::path& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  Destination destination{path};
  for (int links = 0; links < kMostLinks; ++links) {
    if (const std::optional<int> number = own_descriptor(destination.path)) {
      destination.number = *number;
      return destination;
    }
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(destination.path, error);
    if (error)
      return destination;
    destination.path = target.is_absolute() ? target : destination.path.parent_path() / target;
  }
  throw_storage_error(path, "cannot be written", ELOOP);
}

// A device, a pipe, a socket: renaming a file over it would put it out of the world.
bool is_no_regular_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

FileDescriptor open_stream(const std::filesystem::path& path, const Destination& destination) {
  if (destination.number < 0)
    return FileDescriptor::open(path, O_WRONLY | O_NOCTTY, "cannot be written");
  // Opened anew, a redirected output would be overwritten from its beginning.
  const int number = ::fcntl(destination.number, F_DUPFD_CLOEXEC, 0);
  if (number < 0)
    throw_storage_error(path, "cannot be written", errno);
  return {path, number};
}

// A name nobody else uses: other processes differ in their id, other calls here find it taken.
// Messages name the path that the caller gave.
std::pair<FileDescriptor, std::filesystem::path> create_temporary(
    const std::filesystem::path& name, const std::filesystem::path& target) {
  for (int attempt = 0;; ++attempt) {
    std::filesystem::path path = target;
    path += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    const int number = ::open(path.c_str(), kFlags, 0666);
    if (number >= 0)
      return {FileDescriptor(name, number), path};
    if (errno != EEXIST && errno != EINTR)
      throw_storage_error(name, "cannot be written", errno);
  }
}

}  // namespace

FileWriter::~FileWriter() = default;

struct AtomicFileWriter::State {
  State(const std::filesystem::path& name, const Destination& destination)
      : path(name), file(open_stream(name, destination)) {}
  State(const std::filesystem::path& name, std::filesystem::path file_name,
        std::pair<FileDescriptor, std::filesystem::path> created)
      : path(name),
        target(std::move(file_name)),
        temporary(std::in_place, std::move(created.second)),
        file(std::move(created.first)) {}

  std::filesystem::path path;
  std::filesystem::path target;
  std::optional<TemporaryName> temporary;  // nothing: written straight
  FileDescriptor file;
  BufferedWriter writer{file};
};

AtomicFileWriter::AtomicFileWriter(const std::filesystem::path& path) {
  const Destination destination = destination_of(path);
  if (destination.number >= 0 || is_no_regular_file(destination.path)) {
    state_ = std::make_unique<State>(path, destination);
  } else {
    state_ =
        std::make_unique<State>(path, destination.path, create_temporary(path, destination.path));
  }
}
AtomicFileWriter::~AtomicFileWriter() = default;

void AtomicFileWriter::write(std::string_view bytes) {
  state_->writer.write(bytes);
}

void AtomicFileWriter::commit() {
  State& state = *state_;
  state.writer.flush();
  if (!state.temporary) {
    state.file.close();
    return;
  }
  state.file.sync();
  state.file.close();
  if (::rename(state.temporary->path().c_str(), state.target.c_str()) != 0)
    throw_storage_error(state.path, "cannot be replaced", errno);
  state.temporary->keep();
  const std::filesystem::path folder =
      state.target.has_parent_path() ? state.target.parent_path() : ".";
  FileDescriptor::open(folder, O_RDONLY | O_DIRECTORY, "cannot be synced to disk").sync();
}

void write_file_atomically(const std::filesystem::path& path,
                           const std::function<void(FileWriter&)>& fill) {
  AtomicFileWriter file(path);
  fill(file);
  file.commit();
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
