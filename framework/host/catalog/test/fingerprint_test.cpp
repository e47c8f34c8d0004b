#include <treadle/host/catalog/fingerprint.h>

#include <gtest/gtest.h>

#include <treadle/host/catalog/elf_notes.h>

namespace treadle {
namespace {

const HostBuild& host() {
  static const HostBuild build{
      "sdk_abi=1.2\nlibtorch=1.13.0\nlibtorch_flavour=CPU\nstandard_library=libstdc++\n"
      "string_abi=new\ndebug_containers=off\nc_library=glibc\nrtti=on\nexceptions=on\n"
      "sanitizers=none\ntbb=12080\nnlohmann_json=3.11.2\ntype_sizes=Tensor:8/8 string:32/8 \n"
      "info.compiler=gcc 12.2\n",
      {"libtorch_cpu.so.1.13", "libc10.so.1.13", "libstdc++.so.6", "libm.so.6"}};
  return build;
}

std::string replaced(const std::string& what, const std::string& with) {
  std::string text = host().fingerprint;
  return text.replace(text.find(what), what.size(), with);
}

std::string mismatch(const std::string& fingerprint, std::vector<std::string> needed = {}) {
  return explain_mismatch(fingerprint, needed, host());
}

TEST(Fingerprint, FitsAHostThatWasBuiltAlike) {
  EXPECT_EQ(mismatch(host().fingerprint, host().needed), "");
}

TEST(Fingerprint, FitsWhenTheHostIsNewerWhereNewerIsEnough) {
  EXPECT_EQ(mismatch(replaced("sdk_abi=1.2", "sdk_abi=1.0")), "");
  EXPECT_EQ(mismatch(replaced("tbb=12080", "tbb=12050")), "");
  EXPECT_EQ(mismatch(replaced("tbb=12080\n", "")), "");
}

// Nothing is frozen before 1.0.
TEST(Fingerprint, OfADraftFitsTheSameMinorVersionOnly) {
  const auto mismatch = [](const std::string& plugin, const std::string& runner) {
    return explain_mismatch(replaced("sdk_abi=1.2", "sdk_abi=" + plugin), host().needed,
                            {replaced("sdk_abi=1.2", "sdk_abi=" + runner), host().needed});
  };

  EXPECT_EQ(mismatch("0.2", "0.2"), "");
  for (const char* other : {"0.1", "0.3", "1.2", "0.", "0"}) {
    EXPECT_EQ(mismatch(other, "0.2"), "was built for SDK ABI " + std::string(other) +
                                          ", this runner has 0.2; rebuild it against this SDK");
  }
}

TEST(Fingerprint, IgnoresWhatIsForPeople) {
  EXPECT_EQ(mismatch(replaced("info.compiler=gcc 12.2", "info.compiler=clang 14.0")), "");
}

TEST(Fingerprint, NamesEachDifferenceInWords) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"sdk_abi=1.2", "sdk_abi=2.0", "was built for SDK ABI 2.0, this runner has 1.2"},
      {"sdk_abi=1.2", "sdk_abi=1.3", "was built for SDK ABI 1.3, this runner has 1.2"},
      {"libtorch=1.13.0", "libtorch=2.6.0",
       "was built for libtorch 2.6.0, this runner uses 1.13.0"},
      {"flavour=CPU", "flavour=CUDA 12.4",
       "was built for the flavour CUDA 12.4 of libtorch, this runner uses CPU"},
      {"=libstdc++", "=libc++ ABI 1",
       "was built for the standard library libc++ ABI 1, this runner uses libstdc++"},
      {"string_abi=new", "string_abi=old",
       "was built with the string ABI \"old\", this runner uses new"},
      {"containers=off", "containers=on",
       "was built with debug containers on, this runner has them off"},
      {"c_library=glibc", "c_library=other",
       "was built for the C library other, this runner uses glibc"},
      {"rtti=on", "rtti=off", "was built with RTTI off, this runner has it on"},
      {"exceptions=on", "exceptions=off", "was built with exceptions off, this runner has them on"},
      {"sanitizers=none", "sanitizers=address",
       "was built with sanitizers: address, this runner has none"},
      {"tbb=12080", "tbb=12150", "was built for TBB interface 12150, this runner has 12080"},
      {"json=3.11.2", "json=3.12.0", "was built for nlohmann-json 3.12.0, this runner uses 3.11.2"},
      {"libtorch=1.13.0\n", "", "was built for libtorch unknown, this runner uses 1.13.0"},
      {"Tensor:8/8", "Tensor:16/8",
       "its Tensor is 16/8 bytes (size/alignment), this runner's 8/8"}};

  for (const auto& [from, to, sentence] : cases) {
    EXPECT_EQ(mismatch(replaced(from, to)),
              std::string(sentence) + "; rebuild it against this SDK");
  }
}

TEST(Fingerprint, DoesNotTakeHalfANumberForOne) {
  for (const char* version :
       {"1", "1.", ".", "", "1.x", "1.-1", "1.2.3", "1.99999999999999999999", " 1.2"}) {
    EXPECT_EQ(mismatch(replaced("sdk_abi=1.2", "sdk_abi=" + std::string(version))),
              "was built for SDK ABI " + std::string(version) +
                  ", this runner has 1.2; rebuild it against this SDK");
  }
  EXPECT_EQ(mismatch(replaced("tbb=12080", "tbb=99999999999999999999")),
            "was built for TBB interface 99999999999999999999, this runner has 12080; rebuild it "
            "against this SDK");
}

TEST(Fingerprint, ShowsAStrangersValuesWithoutObeyingThem) {
  EXPECT_EQ(mismatch(replaced("libtorch=1.13.0", "libtorch=\x1b[2J\xff")),
            "was built for libtorch \\u001b[2J\xEF\xBF\xBD, this runner uses 1.13.0; rebuild it "
            "against this SDK");
  EXPECT_EQ(mismatch(replaced("libtorch=1.13.0", "libtorch=" + std::string(9999, '9'))),
            "was built for libtorch " + std::string(80, '9') +
                "…, this runner uses 1.13.0; rebuild it against this SDK");
  EXPECT_EQ(mismatch(host().fingerprint, {"libc10.so.\x1b[2J"}),
            "is linked to libc10.so.\\u001b[2J, this runner to libc10.so.1.13; rebuild it against "
            "this SDK");
}

TEST(Fingerprint, NamesAllDifferencesAtOnce) {
  const std::string text = replaced("libtorch=1.13.0\nlibtorch_flavour=CPU\n",
                                    "libtorch=2.6.0\nlibtorch_flavour=ROCm\n");

  EXPECT_EQ(
      mismatch(text),
      "was built for libtorch 2.6.0, this runner uses 1.13.0; was built for the flavour ROCm of "
      "libtorch, this runner uses CPU; rebuild it against this SDK");
}

TEST(Fingerprint, RefusesAnotherBuildOfTheSameLibtorch) {
  EXPECT_EQ(
      mismatch(host().fingerprint, {"libtorch_cpu.so", "libm.so.5"}),
      "is linked to libtorch_cpu.so, this runner to libtorch_cpu.so.1.13; rebuild it against this "
      "SDK");
}

TEST(Fingerprint, OfTheHostIsReadFromItsOwnLibrary) {
  const LibraryNotes notes = read_library_notes(host_library());

  EXPECT_EQ(notes.manifest, "");
  EXPECT_NE(notes.fingerprint.find("\nlibtorch="), std::string::npos);
  EXPECT_NE(notes.fingerprint.find("\ntbb="), std::string::npos);
  EXPECT_EQ(explain_mismatch(notes.fingerprint, notes.needed, {notes.fingerprint, notes.needed}),
            "");
}

}  // namespace
}  // namespace treadle
