#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <treadle/base/error.h>

namespace treadle {

/// A plugin in good order that was made for something else than this runner.
class ForeignPlugin : public PluginError {
 public:
  using PluginError::PluginError;
};

/// The notes of a shared library, read from its file without running its code.
struct LibraryNotes {
  std::string manifest;             ///< JSON text; empty when the library is no plugin
  std::string fingerprint;          ///< key=value lines; empty when the library is not ours
  std::string build_id;             ///< the linker's, in hexadecimal; empty without one
  std::vector<std::string> needed;  ///< the libraries it is linked to, by their DT_NEEDED names
};

/// Reads the notes of a 64-bit little-endian ELF library for this machine, through its program
/// headers and, where a tool has moved the notes out of them, through its section headers.
///
/// The file may be anything: nothing in it is believed before it was compared with the file's size,
/// and no more than a few hundred KiB are read. Throws PluginError (ForeignPlugin for another
/// architecture) with a sentence that begins with a verb ("is truncated: …"), to be put after the
/// file's name.
LibraryNotes read_library_notes(const std::filesystem::path& file);

}  // namespace treadle
