#include "terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <system_error>

#include <treadle/base/error.h>

namespace treadle::cli {
namespace {

constexpr std::size_t kUsualWidth = 80;
constexpr std::size_t kNarrowest = 20;

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool is_dumb() {
  const char* term = std::getenv("TERM");
  return term == nullptr || std::string_view(term) == "dumb" || *term == '\0';
}

bool starts_code_point(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

}  // namespace

Terminal::Terminal(int descriptor)
    : descriptor_(descriptor),
      is_terminal_(isatty(descriptor) == 1),
      can_repaint_(is_terminal_ && !is_dumb()),
      has_colours_(can_repaint_ && !is_set("NO_COLOR")) {}

Terminal::Terminal(int descriptor, bool is_terminal, bool has_colours)
    : descriptor_(descriptor),
      is_terminal_(is_terminal),
      can_repaint_(is_terminal),
      has_colours_(has_colours) {}

std::size_t Terminal::width() const {
  if (!is_terminal_)
    return std::numeric_limits<std::size_t>::max();
  std::size_t width = 0;
  winsize window{};
  if (ioctl(descriptor_, TIOCGWINSZ, &window) == 0)
    width = window.ws_col;
  if (width == 0) {
    const char* columns = std::getenv("COLUMNS");
    width = columns != nullptr ? std::strtoul(columns, nullptr, 10) : 0;
  }
  return width == 0 ? kUsualWidth : std::max(width, kNarrowest);
}

std::size_t Terminal::height() const {
  winsize window{};
  if (!is_terminal_ || ioctl(descriptor_, TIOCGWINSZ, &window) != 0 || window.ws_row == 0)
    return std::numeric_limits<std::size_t>::max();
  return window.ws_row;
}

int Terminal::try_to_write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return written < 0 ? errno : EIO;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

void Terminal::write(std::string_view text) const {
  try_to_write(text);
}

void Terminal::answer(std::string_view text) const {
  const int error = try_to_write(text);
  if (error == 0 || error == EPIPE)
    return;
  throw StorageError(
      "the standard output cannot be written: " + std::generic_category().message(error) +
      "; the answer is not complete: make room, or print it to another place");
}

std::string Terminal::styled(std::string_view code, std::string_view text) const {
  if (!has_colours_)
    return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (char byte : text)
    columns += starts_code_point(byte) ? 1 : 0;
  return columns;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns)
    return std::string(text);
  if (columns == 0)
    return {};
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if (starts_code_point(text[end]) && ++seen == columns)
      break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string right_aligned(std::string_view text, std::size_t columns) {
  const std::size_t taken = columns_of(text);
  return std::string(columns > taken ? columns - taken : 0, ' ') + std::string(text);
}

std::string left_aligned(std::string_view text, std::size_t columns) {
  const std::size_t taken = columns_of(text);
  return std::string(text) + std::string(columns > taken ? columns - taken : 0, ' ');
}

std::string shown_path(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path relative = std::filesystem::relative(path, error);
  const bool is_below = !error && !relative.empty() && *relative.begin() != "..";
  return is_below ? relative.string() : path.string();
}

}  // namespace treadle::cli
