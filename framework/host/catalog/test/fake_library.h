#pragma once

#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <stdlib.h>

#include <treadle/base/plugin_abi.h>

namespace treadle::testing {

/// A folder that is gone when the test is over.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "treadle-XXXXXX").string();
    path_ = std::filesystem::canonical(::mkdtemp(name.data()));
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::filesystem::path& name, std::string_view bytes) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    return file;
  }

 private:
  std::filesystem::path path_;
};

/// The bytes of one ELF note.
inline std::string note_bytes(std::string_view owner, std::uint32_t type, std::string_view text) {
  const auto padded = [](std::string part) {
    part.resize((part.size() + 3) / 4 * 4);
    return part;
  };
  const Elf64_Nhdr header{static_cast<Elf64_Word>(owner.size() + 1),
                          static_cast<Elf64_Word>(text.size()), type};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes + padded(std::string(owner) + '\0') + padded(std::string(text));
}

/// The bytes of an ELF file that has nothing but what the catalog reads: headers, notes, the names
/// of needed libraries. Written field by field, independently of the reader.
struct FakeLibrary {
  std::string manifest;
  std::string fingerprint;
  std::string build_id = "\x01\xab";
  std::vector<std::string> needed;
  /// Where the notes can be found: through a program header, through a section header.
  bool in_segment = true;
  bool in_section = false;

  std::string bytes() const {
    std::string notes;
    if (!build_id.empty())
      notes += note_bytes("GNU", NT_GNU_BUILD_ID, build_id);
    if (!manifest.empty())
      notes += note_bytes(kNoteOwner, kManifestNote, manifest);
    if (!fingerprint.empty())
      notes += note_bytes(kNoteOwner, kFingerprintNote, fingerprint);

    std::string strings(1, '\0');
    std::vector<Elf64_Dyn> dynamic;
    for (const std::string& name : needed) {
      dynamic.push_back({DT_NEEDED, {strings.size()}});
      strings += name + '\0';
    }
    const std::size_t headers = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
    const std::size_t strings_at = headers + notes.size();
    const std::size_t dynamic_at = strings_at + strings.size();
    dynamic.push_back({DT_STRTAB, {kAddress + strings_at}});
    dynamic.push_back({DT_STRSZ, {strings.size()}});
    dynamic.push_back({DT_NULL, {0}});
    const std::size_t dynamic_size = dynamic.size() * sizeof(Elf64_Dyn);
    const std::size_t sections_at = dynamic_at + dynamic_size;

    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = kMachine;
    header.e_version = EV_CURRENT;
    header.e_ehsize = sizeof(Elf64_Ehdr);
    header.e_phoff = sizeof(Elf64_Ehdr);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 3;
    header.e_shentsize = sizeof(Elf64_Shdr);
    if (in_section) {
      header.e_shoff = sections_at;
      header.e_shnum = 1;
    }

    Elf64_Phdr load{};
    load.p_type = PT_LOAD;
    load.p_vaddr = kAddress;
    load.p_filesz = load.p_memsz = sections_at;
    Elf64_Phdr note{};
    note.p_type = in_segment ? PT_NOTE : PT_NULL;
    note.p_offset = headers;
    note.p_filesz = notes.size();
    note.p_align = 4;
    Elf64_Phdr dyn{};
    dyn.p_type = PT_DYNAMIC;
    dyn.p_offset = dynamic_at;
    dyn.p_filesz = dynamic_size;
    Elf64_Shdr section{};
    section.sh_type = SHT_NOTE;
    section.sh_offset = headers;
    section.sh_size = notes.size();
    section.sh_addralign = 4;

    std::string file;
    const auto append = [&file](const auto& part) {
      file.append(reinterpret_cast<const char*>(&part), sizeof part);
    };
    append(header);
    append(load);
    append(note);
    append(dyn);
    file += notes + strings;
    for (const Elf64_Dyn& entry : dynamic)
      append(entry);
    if (in_section)
      append(section);
    return file;
  }

 private:
  static constexpr Elf64_Addr kAddress = 0x10000;
#if defined(__x86_64__)
  static constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
  static constexpr Elf64_Half kMachine = EM_AARCH64;
#elif defined(__riscv)
  static constexpr Elf64_Half kMachine = EM_RISCV;
#else
  static constexpr Elf64_Half kMachine = EM_PPC64;
#endif
};

}  // namespace treadle::testing
