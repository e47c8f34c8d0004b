#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// The contract of a plugin file and its host before any C++ crosses between them: one C function
/// and ELF notes that are read without running the file. Fields are only ever appended, and both
/// sides read no more than the smaller struct_size.

/// Plugins with another major number are refused. Within major 0 nothing is frozen, so the minor
/// number must be the host's; from 1.0 on a plugin's may be lower. The major number grows when a
/// compiled plugin would misread a header, and names the folder plugins are installed in.
#define TREADLE_ABI_MAJOR 0
#define TREADLE_ABI_MINOR 1

extern "C" {

/// Given to the entry by the host; lives for that call only.
struct TreadlePluginHost {
  std::size_t struct_size;
  std::uint32_t abi_major;
  std::uint32_t abi_minor;
  /// A treadle::Registrar. Only touched after the notes have shown that both sides were built
  /// alike.
  void* registrar;
  /// Takes the text of what went wrong; copies it. Never throws.
  void (*report_error)(void* error_context, const char* text);
  void* error_context;
};

/// Returns 0, or another number after it called report_error. Never throws.
typedef int (*TreadlePluginEntry)(const TreadlePluginHost* host);

}  // extern "C"

namespace treadle {

/// The only symbol a plugin exports.
inline constexpr std::string_view kPluginEntrySymbol = "treadle_plugin_entry_v1";

/// Both notes of a library lie in this section, one after the other.
inline constexpr std::string_view kNoteSection = ".note.treadle.plugin";
inline constexpr std::string_view kNoteOwner = "TREADLE";
/// The manifest, JSON text: {"manifest_version", "id", "version", "summary", "license",
/// "interfaces": [{"word", "id", "summary"}], "components": [{"interface", "name", "summary",
/// "schema"}]}. "interfaces" may be left out.
inline constexpr std::uint32_t kManifestNote = 1;
/// The fingerprint, one `key=value` a line. Keys that begin with "info." are not compared.
inline constexpr std::uint32_t kFingerprintNote = 2;
inline constexpr std::size_t kNoteLimit = 256 * 1024;
inline constexpr int kManifestVersion = 1;

/// One ELF note as it lies in the file. `Size` is a multiple of 4, so that notes in a row need no
/// padding between them.
template <std::size_t Size>
struct alignas(4) ElfNote {
  static_assert(Size % 4 == 0);

  std::uint32_t name_size = 8;
  std::uint32_t text_size = Size;
  std::uint32_t type = 0;
  char name[8] = {'T', 'R', 'E', 'A', 'D', 'L', 'E', '\0'};
  char text[Size] = {};  ///< what is left over is zero bytes, which readers drop
};

}  // namespace treadle

/// Puts a constant into the note section. Clang's address sanitizer would otherwise pad it.
#if defined(__clang__)
#define TREADLE_NOTE_ATTRIBUTES section(".note.treadle.plugin"), used, no_sanitize("address")
#else
#define TREADLE_NOTE_ATTRIBUTES section(".note.treadle.plugin"), used
#endif
#define TREADLE_NOTE alignas(4) __attribute__((TREADLE_NOTE_ATTRIBUTES)) static constexpr
