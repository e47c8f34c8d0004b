#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace treadle::cli {

/// A file descriptor that text goes to, and what may be done with it.
class Terminal {
 public:
  explicit Terminal(int descriptor);
  /// For tests: a descriptor that is, or is not, taken for a terminal.
  Terminal(int descriptor, bool is_terminal, bool has_colours);

  bool is_terminal() const noexcept { return is_terminal_; }
  /// A terminal that can erase a line; TERM=dumb cannot.
  bool can_repaint() const noexcept { return can_repaint_; }

  /// Columns there are now: the window may change. A very large number when nothing is cut.
  std::size_t width() const;
  /// Rows there are now; a very large number where there is no window.
  std::size_t height() const;

  /// Writes everything, whatever becomes of it: a run goes on when nobody reads along any more.
  void write(std::string_view text) const;
  /// Writes a command's answer. Throws StorageError when it is lost ("No space left on device"); a
  /// reader who has gone has read enough.
  void answer(std::string_view text) const;

  std::string bold(std::string_view text) const { return styled("1", text); }
  std::string dim(std::string_view text) const { return styled("2", text); }
  std::string green(std::string_view text) const { return styled("32", text); }
  std::string red(std::string_view text) const { return styled("31", text); }

 private:
  /// 0, or the number of the error that ended it.
  int try_to_write(std::string_view text) const;
  std::string styled(std::string_view code, std::string_view text) const;

  int descriptor_;
  bool is_terminal_;
  bool can_repaint_;
  bool has_colours_;  ///< a terminal, and NO_COLOR is not set (no-color.org)
};

/// Columns that UTF-8 text takes: code points, which is right for everything Treadle itself says.
std::size_t columns_of(std::string_view text);

/// The text cut to `columns`, with "…" where something is missing.
std::string cut_to(std::string_view text, std::size_t columns);

/// The text with spaces before or behind it, `columns` wide.
std::string right_aligned(std::string_view text, std::size_t columns);
std::string left_aligned(std::string_view text, std::size_t columns);

/// The path as people would type it: relative where it lies below the working folder.
std::string shown_path(const std::filesystem::path& path);

}  // namespace treadle::cli
