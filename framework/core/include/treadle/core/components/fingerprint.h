#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/version.h>
#include <nlohmann/json.hpp>
#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>) && __has_include(<cuda.h>)
#include <cuda.h>
#endif

#include <treadle/base/component.h>
#include <treadle/base/plugin_abi.h>

/// How the translation unit that includes this was built, as far as it decides whether objects can
/// be handed across to code of another library. Compared by the host before a plugin is loaded: a
/// plugin with other libtorch headers, string ABI or debug switches loads without any error and
/// corrupts memory later. To be included by the generated source of the notes only.
///
/// TBB takes part in libraries that included its headers before this one.
namespace treadle::fingerprint {

/// A text that grows while the compiler runs.
class Text {
 public:
  consteval Text& operator<<(std::string_view text) {
    for (char c : text)
      data_[size_++] = c;  // too long is a compile error
    return *this;
  }
  consteval Text& operator<<(std::size_t number) {
    char digits[20] = {};
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count > 0)
      data_[size_++] = digits[--count];
    return *this;
  }
  template <typename T>
  consteval Text& type(std::string_view name) {
    return *this << name << ":" << sizeof(T) << "/" << alignof(T) << " ";
  }

  consteval std::size_t size() const { return size_; }
  consteval char operator[](std::size_t i) const { return data_[i]; }

 private:
  char data_[4096] = {};
  std::size_t size_ = 0;
};

consteval std::string_view libtorch_flavour() {
#if __has_include(<c10/hip/impl/hip_cmake_macros.h>)
  return "ROCm";
#elif __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)
  return "CUDA";
#else
  return "CPU";
#endif
}

consteval std::string_view sanitizers() {
  // Do not test whether __has_feature is defined: headers define it for GCC, as a macro that is
  // always false.
#if defined(__SANITIZE_ADDRESS__)
  return "address";
#elif defined(__SANITIZE_THREAD__)
  return "thread";
#elif defined(__clang__)
#if __has_feature(address_sanitizer)
  return "address";
#elif __has_feature(thread_sanitizer)
  return "thread";
#elif __has_feature(memory_sanitizer)
  return "memory";
#else
  return "none";
#endif
#else
  return "none";
#endif
}

/// Facts are named as the messages of host/catalog name them; a fact added here gets its words
/// there.
consteval Text facts() {
  Text text;
  text << "sdk_abi=" << TREADLE_ABI_MAJOR << "." << TREADLE_ABI_MINOR << "\n";
  text << "libtorch=" << TORCH_VERSION << "\n";
  text << "libtorch_flavour=" << libtorch_flavour();
#if defined(CUDA_VERSION)
  text << " " << CUDA_VERSION / 1000 << "." << CUDA_VERSION % 1000 / 10;
#endif
  text << "\n";
#if defined(_LIBCPP_VERSION)
  text << "standard_library=libc++ ABI " << _LIBCPP_ABI_VERSION << "\n";
#else
  text << "standard_library=libstdc++\n";
  text << "string_abi=" << (_GLIBCXX_USE_CXX11_ABI != 0 ? "new" : "old") << "\n";
#endif
#if defined(_GLIBCXX_DEBUG) || (defined(_LIBCPP_DEBUG) && _LIBCPP_DEBUG)
  text << "debug_containers=on\n";
#else
  text << "debug_containers=off\n";
#endif
#if defined(__GLIBC__)
  text << "c_library=glibc\n";
#else
  text << "c_library=other\n";
#endif
#if defined(__cpp_rtti)
  text << "rtti=on\n";
#else
  text << "rtti=off\n";
#endif
#if defined(__cpp_exceptions)
  text << "exceptions=on\n";
#else
  text << "exceptions=off\n";
#endif
  text << "sanitizers=" << sanitizers() << "\n";
#if defined(TBB_INTERFACE_VERSION)
  text << "tbb=" << TBB_INTERFACE_VERSION << "\n";
#endif
  text << "nlohmann_json=" << NLOHMANN_JSON_VERSION_MAJOR << "." << NLOHMANN_JSON_VERSION_MINOR
       << "." << NLOHMANN_JSON_VERSION_PATCH;
#if defined(JSON_DIAGNOSTICS) && JSON_DIAGNOSTICS
  text << " with diagnostics";
#endif
  text << "\ntype_sizes=";
  text.type<at::Tensor>("Tensor").type<at::TensorOptions>("TensorOptions");
  text.type<at::Generator>("Generator").type<std::string>("string");
  text.type<std::vector<std::int64_t>>("vector").type<std::function<void()>>("function");
  text.type<std::shared_ptr<void>>("shared_ptr").type<nlohmann::json>("json");
  text.type<Config>("Config").type<ComponentContext>("ComponentContext");
  text << "\n";
#if defined(__clang__)
  text << "info.compiler=clang " << __clang_major__ << "." << __clang_minor__ << "\n";
#else
  text << "info.compiler=gcc " << __GNUC__ << "." << __GNUC_MINOR__ << "\n";
#endif
#if defined(NDEBUG)
  text << "info.assertions=off\n";
#else
  text << "info.assertions=on\n";
#endif
  return text;
}

inline constexpr std::size_t kSize = (facts().size() + 3) / 4 * 4;

consteval ElfNote<kSize> note() {
  constexpr Text text = facts();
  ElfNote<kSize> note;
  note.type = kFingerprintNote;
  for (std::size_t i = 0; i < text.size(); ++i)
    note.text[i] = text[i];
  return note;
}

// GCC 12 takes no default below that calls note(), unless it optimises.
inline constexpr ElfNote<kSize> kNote = note();

/// A manifest note followed by the fingerprint, in one object: what lies between two objects of a
/// section is up to the linker.
template <std::size_t ManifestSize>
struct Notes {
  ElfNote<ManifestSize> manifest{.type = kManifestNote};
  ElfNote<kSize> fingerprint = kNote;
};

/// The notes of a plugin, from the text of its manifest.
template <std::size_t Size>
consteval auto notes(const char (&manifest)[Size]) {
  Notes<(Size + 2) / 4 * 4> notes;
  std::copy_n(manifest, Size - 1, notes.manifest.text);
  return notes;
}

}  // namespace treadle::fingerprint
