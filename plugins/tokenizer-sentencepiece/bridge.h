#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// SentencePiece behind a table of functions, in a library of its own.
///
/// Rationale: libsentencepiece of Debian 12 has a copy of protobuf and exports it, libtorch brings
/// another version of protobuf, and the dynamic linker makes one of the two: the program crashes.
/// The library with this table is loaded with RTLD_DEEPBIND, so that SentencePiece finds its own
/// copy. No object that one side allocates is freed by the other.
namespace treadle::sentencepiece_plugin {

enum class PieceKind : std::uint8_t { kText, kByte, kUnknown, kControl };

/// Receives a result during the call.
struct BytesSink {
  void (*put)(void* to, std::string_view bytes);
  void* to;
  void operator()(std::string_view bytes) const { put(to, bytes); }
};

struct TrainingOptions {
  std::int64_t vocabulary_size;
  std::string_view model_type;
  double character_coverage;
  bool byte_fallback;
};

/// Functions that return false have put what failed into `error`. No function throws.
struct Bridge {
  bool (*train)(const TrainingOptions& options, std::span<const std::string_view> lines,
                BytesSink model, BytesSink error) noexcept;

  /// A model from its bytes; null where they are none. The other functions take it; those that do
  /// not change it may run at once.
  void* (*open)(std::string_view model, BytesSink error) noexcept;
  void (*close)(void* model) noexcept;

  std::int64_t (*size)(const void* model) noexcept;
  std::int64_t (*end_of_text)(const void* model) noexcept;  ///< -1: none
  PieceKind (*kind)(const void* model, std::int64_t token) noexcept;
  bool (*piece)(const void* model, std::int64_t token, BytesSink text, BytesSink error) noexcept;
  /// Puts tokens as int, one after the other.
  bool (*encode)(const void* model, std::string_view text, BytesSink tokens,
                 BytesSink error) noexcept;
  bool (*decode)(const void* model, std::span<const int> tokens, BytesSink text,
                 BytesSink error) noexcept;
};

/// The name of the one function that the library exports: `const Bridge* (*)()`.
inline constexpr const char* kBridgeEntry = "treadle_sentencepiece_bridge_v1";

}  // namespace treadle::sentencepiece_plugin
