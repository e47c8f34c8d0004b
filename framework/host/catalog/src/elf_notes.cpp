#include <treadle/host/catalog/elf_notes.h>

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/plugin_abi.h>

namespace treadle {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr std::uint16_t kMachine = EM_RISCV;
#elif defined(__powerpc64__)
constexpr std::uint16_t kMachine = EM_PPC64;
#else
#error "say here which ELF machine this is"
#endif

constexpr std::size_t kMaxProgramHeaders = 64;
constexpr std::size_t kMaxSections = 4096;
constexpr std::size_t kMaxDynamicEntries = 4096;
constexpr std::size_t kMaxNeeded = 256;
// Both of our notes at their limit, and what the linker adds.
constexpr std::size_t kMaxNoteBytes = 2 * kNoteLimit + 64 * 1024;

std::string machine_name(std::uint16_t machine) {
  static constexpr std::pair<std::uint16_t, const char*> kNames[] = {
      {EM_386, "x86"},      {EM_X86_64, "x86-64"}, {EM_ARM, "ARM"},    {EM_AARCH64, "ARM64"},
      {EM_RISCV, "RISC-V"}, {EM_PPC64, "PowerPC"}, {EM_S390, "S/390"}, {EM_MIPS, "MIPS"}};
  for (const auto& [number, name] : kNames) {
    if (number == machine)
      return name;
  }
  return "machine " + std::to_string(machine);
}

[[noreturn]] void refuse(const std::string& sentence) {
  throw PluginError(sentence);
}

/// Reads parts of a file. Not mapped: a file that is cut short while it is read must not end the
/// process.
class File {
 public:
  explicit File(const std::filesystem::path& path)
      // O_NONBLOCK: somebody may have put a named pipe into a plugin folder.
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0)
      refuse_with_errno(path);
    if (!S_ISREG(status.st_mode)) {
      ::close(descriptor_);
      refuse("is not a file");
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::uint64_t size() const { return size_; }

  bool has(std::uint64_t offset, std::uint64_t count) const {
    return offset <= size_ && count <= size_ - offset;
  }

  void expect(std::uint64_t offset, std::uint64_t count, std::string_view what) const {
    if (has(offset, count))
      return;
    const bool overflows = offset + count < offset;
    refuse("is truncated: " + std::string(what) + " should end at byte " +
           (overflows ? "2^64 or later" : std::to_string(offset + count)) + ", the file has " +
           std::to_string(size_));
  }

  std::string read(std::uint64_t offset, std::size_t count, std::string_view what) const {
    expect(offset, count, what);
    std::string bytes(count, '\0');
    std::size_t done = 0;
    while (done < count) {
      const ssize_t got = ::pread(descriptor_, bytes.data() + done, count - done,
                                  static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        refuse("cannot be read: " + std::generic_category().message(errno));
      if (got == 0)
        refuse("is truncated: it became shorter while it was read");
      done += static_cast<std::size_t>(got);
    }
    return bytes;
  }

  template <typename T>
  std::vector<T> table(std::uint64_t offset, std::size_t count, std::string_view what) const {
    const std::string bytes = read(offset, count * sizeof(T), what);
    std::vector<T> rows(count);
    if (!rows.empty())
      std::memcpy(rows.data(), bytes.data(), bytes.size());
    return rows;
  }

 private:
  void refuse_with_errno(const std::filesystem::path& path) const {
    const int error = errno;
    const std::string reason = std::generic_category().message(error);
    if (descriptor_ >= 0)
      ::close(descriptor_);
    // Not the plugin's fault, and not to be remembered as such.
    if (error == EMFILE || error == ENFILE) {
      throw StorageError(path.string() + ": cannot be read: " + reason +
                         "; raise the limit on open files: ulimit -n 1024");
    }
    refuse("cannot be read: " + reason);
  }

  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

Elf64_Ehdr read_header(const File& file) {
  std::array<unsigned char, EI_NIDENT> identity{};
  const std::string start =
      file.read(0, std::min<std::uint64_t>(file.size(), identity.size()), "the file");
  std::copy(start.begin(), start.end(), identity.begin());
  if (file.size() == 0)
    refuse("is empty");
  if (std::memcmp(identity.data(), ELFMAG, SELFMAG) != 0) {
    refuse("is not a shared library: it does not begin with an ELF header");
  }
  // The fields up to e_version lie at the same places in 32-bit files.
  constexpr std::size_t kCommon = offsetof(Elf64_Ehdr, e_version);
  static_assert(kCommon == offsetof(Elf32_Ehdr, e_version));
  Elf64_Ehdr header{};
  std::memcpy(&header, file.read(0, kCommon, "its ELF header").data(), kCommon);
  if (identity[EI_CLASS] != ELFCLASS64 || identity[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != kMachine) {
    const bool big_endian = identity[EI_DATA] == ELFDATA2MSB;
    std::uint16_t machine = header.e_machine;
    if (big_endian)
      machine = static_cast<std::uint16_t>(machine << 8 | machine >> 8);
    throw ForeignPlugin("is for another architecture (" +
                        std::string(identity[EI_CLASS] == ELFCLASS64 ? "64-bit " : "32-bit ") +
                        (big_endian ? "big-endian " : "") + machine_name(machine) +
                        "; this runner is 64-bit " + machine_name(kMachine) +
                        "); build it for this machine");
  }
  std::memcpy(&header, file.read(0, sizeof header, "its ELF header").data(), sizeof header);
  if (header.e_type != ET_DYN) {
    refuse("is not a shared library: it is an ELF file of type " + std::to_string(header.e_type));
  }
  return header;
}

/// Takes the notes we know from a run of notes. Stops at the first that cannot be one: what comes
/// after it cannot be found.
void take_notes(std::string_view bytes, std::uint64_t alignment, LibraryNotes& found) {
  const std::size_t align = alignment == 8 ? 8 : 4;
  const auto padded = [align](std::size_t size) { return (size + align - 1) / align * align; };
  while (bytes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note{};
    std::memcpy(&note, bytes.data(), sizeof note);
    const std::size_t text_begin = padded(sizeof note + note.n_namesz);
    if (text_begin > bytes.size() || note.n_descsz > bytes.size() - text_begin)
      return;
    std::string_view owner = bytes.substr(sizeof note, note.n_namesz);
    owner = owner.substr(0, owner.find('\0'));
    const std::string_view text = bytes.substr(text_begin, note.n_descsz);
    if (owner == kNoteOwner && note.n_type <= kFingerprintNote && note.n_type >= kManifestNote) {
      if (text.size() > kNoteLimit) {
        refuse("has a note of " + std::to_string(text.size()) + " bytes; at most " +
               std::to_string(kNoteLimit) + " are read");
      }
      std::string& target = note.n_type == kManifestNote ? found.manifest : found.fingerprint;
      if (target.empty())
        target = text.substr(0, text.find('\0'));
    } else if (owner == "GNU" && note.n_type == NT_GNU_BUILD_ID && text.size() <= 64) {
      found.build_id.clear();
      for (const unsigned char byte : text) {
        constexpr char kDigits[] = "0123456789abcdef";
        found.build_id += kDigits[byte >> 4];
        found.build_id += kDigits[byte & 15];
      }
    }
    bytes.remove_prefix(std::min(bytes.size(), padded(text_begin + note.n_descsz)));
  }
}

/// For all runs of notes together: many headers may point to the same bytes.
void expect_few(std::uint64_t bytes) {
  if (bytes > kMaxNoteBytes) {
    refuse("has " + std::to_string(bytes) + " bytes of notes; at most " +
           std::to_string(kMaxNoteBytes) + " are read");
  }
}

void take_segment_notes(const File& file, const std::vector<Elf64_Phdr>& segments,
                        LibraryNotes& found) {
  std::uint64_t bytes = 0;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE)
      continue;
    expect_few(segment.p_filesz);
    expect_few(bytes += segment.p_filesz);
    take_notes(file.read(segment.p_offset, segment.p_filesz, "a segment of notes"), segment.p_align,
               found);
  }
}

void take_section_notes(const File& file, const Elf64_Ehdr& header, LibraryNotes& found) {
  if (header.e_shoff == 0 || header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr))
    return;
  const std::size_t count = std::min<std::size_t>(header.e_shnum, kMaxSections);
  std::uint64_t bytes = 0;
  for (const Elf64_Shdr& section :
       file.table<Elf64_Shdr>(header.e_shoff, count, "its section header table")) {
    if (section.sh_type != SHT_NOTE || section.sh_size > kMaxNoteBytes)
      continue;
    expect_few(bytes += section.sh_size);
    take_notes(file.read(section.sh_offset, section.sh_size, "a section of notes"),
               section.sh_addralign, found);
  }
}

/// Where the byte that is loaded at `address` lies in the file.
std::optional<std::uint64_t> file_offset(std::uint64_t address,
                                         const std::vector<Elf64_Phdr>& segments) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

void take_needed(const File& file, const std::vector<Elf64_Phdr>& segments, LibraryNotes& found) {
  const auto dynamic =
      std::find_if(segments.begin(), segments.end(),
                   [](const Elf64_Phdr& segment) { return segment.p_type == PT_DYNAMIC; });
  if (dynamic == segments.end())
    return;
  const std::size_t count =
      std::min<std::size_t>(dynamic->p_filesz / sizeof(Elf64_Dyn), kMaxDynamicEntries);
  std::vector<std::uint64_t> names;
  std::uint64_t strings_address = 0;
  std::uint64_t strings_size = 0;
  for (const Elf64_Dyn& entry :
       file.table<Elf64_Dyn>(dynamic->p_offset, count, "its dynamic section")) {
    if (entry.d_tag == DT_NULL)
      break;
    if (entry.d_tag == DT_NEEDED)
      names.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB)
      strings_address = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ)
      strings_size = entry.d_un.d_val;
  }
  const std::optional<std::uint64_t> strings = file_offset(strings_address, segments);
  if (!strings)
    return;
  for (const std::uint64_t name : names) {
    if (name >= strings_size || !file.has(*strings + name, 1))
      continue;
    const std::size_t length = std::min<std::uint64_t>(
        {strings_size - name, std::uint64_t{kMaxNeeded}, file.size() - (*strings + name)});
    const std::string text = file.read(*strings + name, length, "its string table");
    found.needed.push_back(text.substr(0, text.find('\0')));
    if (found.needed.size() == kMaxNeeded)
      return;
  }
}

}  // namespace

LibraryNotes read_library_notes(const std::filesystem::path& path) {
  const File file(path);
  const Elf64_Ehdr header = read_header(file);
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0) {
    refuse("is not a shared library: it has no program headers");
  }
  const std::size_t count = std::min<std::size_t>(header.e_phnum, kMaxProgramHeaders);
  const std::vector<Elf64_Phdr> segments =
      file.table<Elf64_Phdr>(header.e_phoff, count, "its program header table");
  // An interrupted copy: dlopen() would map the missing pages and die of it at the first touch.
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD)
      file.expect(segment.p_offset, segment.p_filesz, "a segment");
  }
  if (header.e_shoff != 0) {
    file.expect(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize,
                "its section header table");
  }
  LibraryNotes found;
  take_segment_notes(file, segments, found);
  if (found.manifest.empty() || found.fingerprint.empty())
    take_section_notes(file, header, found);
  take_needed(file, segments, found);
  return found;
}

}  // namespace treadle
