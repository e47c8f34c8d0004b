#include <treadle/host/catalog/elf_notes.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/random.h>

#include "test/fake_library.h"

namespace treadle {
namespace {

using testing::FakeLibrary;
using testing::TemporaryFolder;

/// The sentence with which a file of these bytes is refused; what was read when it is not.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  try {
    return "(read) " + read_library_notes(folder.write("a.so", bytes)).manifest;
  } catch (const PluginError& error) {
    return error.what();
  }
}

template <typename T>
std::string patched(std::string bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

constexpr std::size_t kNoteSegment = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);

TEST(ElfNotes, ReadsManifestFingerprintBuildIdAndNeededLibraries) {
  const TemporaryFolder folder;
  FakeLibrary library;
  library.manifest = R"({"id": "a"})";
  library.fingerprint = "libtorch=1\n";
  library.needed = {"libtorch.so.1", "libc.so.6"};

  const LibraryNotes notes = read_library_notes(folder.write("a.so", library.bytes()));

  EXPECT_EQ(notes.manifest, R"({"id": "a"})");
  EXPECT_EQ(notes.fingerprint, "libtorch=1\n");
  EXPECT_EQ(notes.build_id, "01ab");
  EXPECT_THAT(notes.needed, ::testing::ElementsAre("libtorch.so.1", "libc.so.6"));
}

TEST(ElfNotes, FindsNotesThatAToolMovedOutOfTheProgramHeaders) {
  FakeLibrary library;
  library.manifest = "{}";
  library.in_segment = false;
  library.in_section = true;

  EXPECT_EQ(refusal(library.bytes()), "(read) {}");
}

TEST(ElfNotes, ReadsALibraryThatIsNoPluginAsOneWithoutAManifest) {
  EXPECT_EQ(refusal(FakeLibrary().bytes()), "(read) ");
}

TEST(ElfNotes, SaysWhatIsWrongWithAFile) {
  FakeLibrary library;
  library.manifest = "{}";
  const std::string good = library.bytes();
  FakeLibrary huge;
  huge.manifest = std::string(kNoteLimit + 1, ' ');
  const std::string arm = patched(good, offsetof(Elf64_Ehdr, e_machine), Elf64_Half{EM_ARM});
  const std::string big_endian =
      patched(patched(good, offsetof(Elf64_Ehdr, e_machine), Elf64_Half{EM_S390 << 8}), EI_DATA,
              static_cast<unsigned char>(ELFDATA2MSB));
#if defined(__x86_64__)
  const std::string here = "64-bit x86-64";
#elif defined(__aarch64__)
  const std::string here = "64-bit ARM64";
#elif defined(__riscv)
  const std::string here = "64-bit RISC-V";
#else
  const std::string here = "64-bit PowerPC";
#endif
  const std::pair<std::string, std::string> cases[] = {
      {"", "is empty"},
      {"#!/bin/sh\n", "is not a shared library: it does not begin with an ELF header"},
      {"\x7f", "is not a shared library: it does not begin with an ELF header"},
      {good.substr(0, 18), "is truncated: its ELF header should end at byte 20, the file has 18"},
      {good.substr(0, 40), "is truncated: its ELF header should end at byte 64, the file has 40"},
      {good.substr(0, 100),
       "is truncated: its program header table should end at byte 232, the file has 100"},
      {good.substr(0, good.size() - 1), "is truncated: a segment should end at byte " +
                                            std::to_string(good.size()) + ", the file has " +
                                            std::to_string(good.size() - 1)},
      {patched(arm, EI_CLASS, static_cast<unsigned char>(ELFCLASS32)),
       "is for another architecture (32-bit ARM; this runner is " + here +
           "); build it for this machine"},
      {big_endian, "is for another architecture (64-bit big-endian S/390; this runner is " + here +
                       "); build it for this machine"},
      {patched(good, offsetof(Elf64_Ehdr, e_type), Elf64_Half{ET_EXEC}),
       "is not a shared library: it is an ELF file of type 2"},
      {patched(good, offsetof(Elf64_Ehdr, e_phnum), Elf64_Half{0}),
       "is not a shared library: it has no program headers"},
      {patched(good, kNoteSegment + offsetof(Elf64_Phdr, p_filesz), ~Elf64_Xword{0}),
       "has 18446744073709551615 bytes of notes; at most 589824 are read"},
      {patched(good, kNoteSegment + offsetof(Elf64_Phdr, p_offset), ~Elf64_Off{0}),
       "is truncated: a segment of notes should end at byte 2^64 or later, the file has " +
           std::to_string(good.size())},
      {huge.bytes(), "has a note of 262145 bytes; at most 262144 are read"}};

  for (const auto& [bytes, sentence] : cases)
    EXPECT_EQ(refusal(bytes), sentence);
}

// Otherwise 64 KiB of headers could ask for gigabytes.
TEST(ElfNotes, ReadsFewNotesHoweverManyHeadersPointToThem) {
  FakeLibrary library;
  library.build_id = std::string(64 * 1024, 'x');
  library.in_segment = false;
  library.in_section = true;
  std::string bytes = library.bytes();
  const std::string section = bytes.substr(bytes.size() - sizeof(Elf64_Shdr));
  for (int i = 1; i < 4000; ++i)
    bytes += section;

  EXPECT_EQ(refusal(patched(bytes, offsetof(Elf64_Ehdr, e_shnum), Elf64_Half{4000})),
            "has 589968 bytes of notes; at most 589824 are read");
}

TEST(ElfNotes, SaysWhyAFileCannotBeRead) {
  const TemporaryFolder folder;
  ::mkfifo((folder.path() / "pipe.so").c_str(), 0600);
  const auto refusal_of = [&](const char* name) {
    try {
      read_library_notes(folder.path() / name);
      return std::string("(read)");
    } catch (const PluginError& error) {
      return std::string(error.what());
    }
  };

  EXPECT_EQ(refusal_of("absent.so"), "cannot be read: No such file or directory");
  EXPECT_EQ(refusal_of("pipe.so"), "is not a file");
  EXPECT_EQ(refusal_of("."), "is not a file");
}

TEST(ElfNotes, StopsAtANoteThatCannotBeOne) {
  FakeLibrary library;
  library.manifest = "{}";
  const std::string bytes = library.bytes();
  const std::size_t notes_at = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);

  const std::string read = refusal(patched(bytes, notes_at, ~Elf64_Word{0}));

  EXPECT_EQ(read, "(read) ");
}

// Under the address sanitizer this is the proof that no length in the file is believed.
TEST(ElfNotes, SurvivesEveryDamage) {
  const int memory = ::memfd_create("damaged", 0);  // thousands of files on disk take their time
  ASSERT_GE(memory, 0);
  const std::filesystem::path file = "/proc/self/fd/" + std::to_string(memory);
  FakeLibrary library;
  library.manifest = R"({"id": "org.example"})";
  library.fingerprint = "libtorch=1\n";
  library.needed = {"libtorch.so.1"};
  library.in_section = true;
  const std::string good = library.bytes();
  RandomBits random(20240601);

  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (std::uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
      const std::size_t at = random.below(bytes.size());
      const std::string_view extremes("\x00\xff\x7f\x80", 4);
      bytes[at] = random.below(2) == 0 ? static_cast<char>(random.below(256))
                                       : extremes[random.below(extremes.size())];
    }
    if (random.below(4) == 0)
      bytes.resize(random.below(bytes.size() + 1));
    ASSERT_EQ(::ftruncate(memory, 0), 0);
    ASSERT_EQ(::pwrite(memory, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    try {
      const LibraryNotes notes = read_library_notes(file);
      EXPECT_LE(notes.manifest.size(), kNoteLimit);
    } catch (const PluginError& error) {
      EXPECT_STRNE(error.what(), "");
    }
  }
  ::close(memory);
}

}  // namespace
}  // namespace treadle
