#include "opened_plugin.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include <treadle/base/error.h>

namespace treadle::testing {
namespace {

std::string manifest_in(const char* notes, std::size_t size, std::size_t alignment) {
  const auto aligned = [&](std::size_t offset) {
    return (offset + alignment - 1) / alignment * alignment;
  };
  for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes + at, sizeof head);
    const std::size_t owner = at + sizeof head;
    const std::size_t text = aligned(owner + head.n_namesz);
    if (text + head.n_descsz > size)
      return {};
    if (head.n_type == kManifestNote && kNoteOwner == notes + owner) {
      const std::string_view whole(notes + text, head.n_descsz);
      return std::string(whole.substr(0, whole.find('\0')));
    }
    at = aligned(text + head.n_descsz);
  }
  return {};
}

/// The text of the manifest note, as it lies in memory; empty without one.
std::string manifest_of(void* library) {
  struct Search {
    const link_map* map = nullptr;
    std::string manifest;
  } search;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &search.map) != 0)
    return {};
  const auto look = [](dl_phdr_info* info, std::size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    if (info->dlpi_addr != wanted.map->l_addr)
      return 0;
    for (std::size_t i = 0; i < info->dlpi_phnum && wanted.manifest.empty(); ++i) {
      const auto& part = info->dlpi_phdr[i];
      if (part.p_type == PT_NOTE) {
        wanted.manifest = manifest_in(reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr),
                                      part.p_memsz, std::max<std::size_t>(part.p_align, 4));
      }
    }
    return 1;
  };
  ::dl_iterate_phdr(look, &search);
  return search.manifest;
}

}  // namespace

OpenedPlugin open_plugin(const std::filesystem::path& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr)
    throw PluginError(file.string() + ": cannot be opened: " + ::dlerror());
  OpenedPlugin opened;
  opened.entry = reinterpret_cast<TreadlePluginEntry>(::dlsym(library, kPluginEntrySymbol.data()));
  if (opened.entry == nullptr)
    throw PluginError(file.string() + ": is no plugin: it has no " + kPluginEntrySymbol.data());
  opened.manifest = nlohmann::json::parse(manifest_of(library), nullptr,
                                          /*allow_exceptions=*/false);
  if (!opened.manifest.is_object())
    throw PluginError(file.string() + ": has no manifest: build it with treadle_add_plugin()");
  return opened;
}

std::string run_entry(TreadlePluginEntry entry, Registrar& registrar) {
  std::string failure;
  const TreadlePluginHost host{
      .struct_size = sizeof(TreadlePluginHost),
      .abi_major = TREADLE_ABI_MAJOR,
      .abi_minor = TREADLE_ABI_MINOR,
      .registrar = &registrar,
      .report_error = [](void* context,
                         const char* text) { *static_cast<std::string*>(context) = text; },
      .error_context = &failure};
  if (entry(&host) == 0)
    return "";
  return failure.empty() ? "it says nothing" : failure;
}

}  // namespace treadle::testing
