#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <span>
#include <string>

#include "npy_header.h"

namespace treadle::arrays {

/// An open file, closed with the object.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;

  int number() const { return number_; }

 private:
  int number_ = -1;
};

/// One .npy file: what its header says, and which file it was. Holds no descriptor, so there may be
/// thousands. Immutable after construction; its functions may be called from any thread.
class NpyFile {
 public:
  /// Reads the header and compares it with the file's size. Throws DataError.
  explicit NpyFile(std::filesystem::path path);

  const NpyHeader& header() const { return header_; }
  std::int64_t rows() const { return header_.rows(); }
  /// The name in messages.
  const std::string& shown() const { return shown_; }
  std::size_t size() const { return static_cast<std::size_t>(identity_.size); }

  /// Opens the file once more. Throws DataError when it is not the one it was.
  Descriptor open() const;
  /// Throws DataError when the open file has been written to since it was first opened.
  void expect_unchanged(const Descriptor& file) const;
  /// Opens the file and fills `out`, which has the size of `count` rows. Throws DataError naming
  /// the rows.
  void read_rows(std::int64_t first, std::int64_t count, std::span<std::byte> out) const;

 private:
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    timespec written{};
  };

  static Identity identity_of(const Descriptor& file);
  Descriptor open_unchanged() const;
  void compare(const Identity& now) const;
  void read_header(const Descriptor& file);

  std::filesystem::path path_;
  std::string shown_;
  Identity identity_;
  NpyHeader header_;
};

}  // namespace treadle::arrays
