#include "load_bridge.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include <treadle/base/error.h>

namespace treadle::sentencepiece_plugin {
namespace {

namespace fs = std::filesystem;

const Bridge& loaded() {
  ::Dl_info own{};
  if (::dladdr(reinterpret_cast<const void*>(&bridge), &own) == 0 || own.dli_fname == nullptr)
    throw PluginError("the tokenizer sentencepiece: its own library cannot be found");
  std::error_code ignored;
  const fs::path folder = fs::canonical(own.dli_fname, ignored).parent_path();
  // Beside the folder of plugins; the test program lies elsewhere in the build.
  fs::path file = folder / "../../sentencepiece-bridge.so";
  if (!fs::exists(file, ignored))
    file = folder / "../lib/treadle/sentencepiece-bridge.so";
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  void* const entry = library == nullptr ? nullptr : ::dlsym(library, kBridgeEntry);
  if (entry == nullptr) {
    throw PluginError(
        "the tokenizer sentencepiece: its part that uses SentencePiece cannot be "
        "loaded: " +
        std::string(::dlerror()) + "; install SentencePiece (Debian: libsentencepiece0)");
  }
  return *reinterpret_cast<const Bridge* (*)()>(entry)();
}

}  // namespace

const Bridge& bridge() {
  static const Bridge& bridge = loaded();
  return bridge;
}

}  // namespace treadle::sentencepiece_plugin
