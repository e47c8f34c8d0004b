#include <sys/types.h>

#include <optional>

#include <treadle/base/hash.h>
#include <treadle/base/plugin_abi.h>
#include <treadle/host/catalog/elf_notes.h>
#include <treadle/host/catalog/manifest.h>

#include "memory_file.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

// Headers, both notes at their limit, dynamic section and names: "a few hundred KiB".
constexpr std::size_t kMostRead = std::size_t{1} << 20;
constexpr std::size_t kLongestComplaint = 2000;
constexpr std::size_t kMostNeeded = 256;

/// What happens to the file that the reader has open: the linker leads its calls of pread() to
/// __wrap_pread().
struct Reading {
  std::size_t bytes = 0;
  std::size_t calls = 0;
  const MemoryFile* shrinking = nullptr;
  std::size_t shrinks_before_call = 0;
  std::size_t shrinks_to = 0;
};

thread_local Reading* reading = nullptr;

std::optional<LibraryNotes> read(const MemoryFile& file, Reading& how) {
  reading = &how;
  std::optional<LibraryNotes> notes;
  try {
    notes = read_library_notes(file.path());
  } catch (const PluginError& error) {
    promise_readable(error.what(), kLongestComplaint);
  }
  reading = nullptr;
  promise(how.bytes <= kMostRead, "at most a few hundred KiB of a plugin are read, here " +
                                      std::to_string(how.bytes) + " bytes");
  if (!notes)
    return notes;
  promise(notes->manifest.size() <= kNoteLimit, "a manifest has at most kNoteLimit bytes");
  promise(notes->fingerprint.size() <= kNoteLimit, "a fingerprint has at most kNoteLimit bytes");
  promise(notes->build_id.find_first_not_of("0123456789abcdef") == std::string::npos,
          "a build id is hexadecimal");
  promise(notes->needed.size() <= kMostNeeded, "a library needs a bounded number of libraries");
  return notes;
}

}  // namespace

/// Called by __wrap_pread() before it reads `count` bytes.
void before_read(std::size_t count) {
  if (!reading)
    return;
  if (reading->shrinking && reading->calls == reading->shrinks_before_call)
    reading->shrinking->truncate(reading->shrinks_to);
  ++reading->calls;
  reading->bytes += count;
}

void library_notes(std::string_view bytes) {
  const MemoryFile file(bytes);
  Reading whole;
  const std::optional<LibraryNotes> notes = read(file, whole);
  if (notes && !notes->manifest.empty())
    manifest(notes->manifest);

  // Where it becomes shorter must not change from run to run, or a finding could not be repeated.
  const std::string hash = hash_text(bytes);
  Reading shrinking;
  shrinking.shrinking = &file;
  shrinking.shrinks_before_call = std::stoull(hash.substr(0, 16), nullptr, 16) % (whole.calls + 1);
  shrinking.shrinks_to = std::stoull(hash.substr(16, 16), nullptr, 16) % (bytes.size() + 1);
  read(file, shrinking);
}

}  // namespace treadle::fuzz

// The linker's names.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
ssize_t __real_pread(int descriptor, void* buffer, std::size_t count, off_t offset);

ssize_t __wrap_pread(int descriptor, void* buffer, std::size_t count, off_t offset) {
  treadle::fuzz::before_read(count);
  return __real_pread(descriptor, buffer, count, offset);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
