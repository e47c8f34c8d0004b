#include <treadle/base/hash.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include <treadle/base/error.h>

// Reference values from `xxhsum -H2`; the long one from
//   python3 -c "import sys; sys.stdout.buffer.write(bytes(i*i%251 for i in range(3000000)))"
namespace treadle {
namespace {

std::string long_content() {
  std::string content(3000000, '\0');
  for (std::uint64_t i = 0; i < content.size(); ++i)
    content[i] = static_cast<char>(i * i % 251);
  return content;
}

TEST(ContentHash, AgreesWithXxhsum) {
  EXPECT_EQ(hash_text(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_text("treadle"), "ad77b3e78e1e2a250ac492b959f7e8fd");
  EXPECT_EQ(hash_text(long_content()), "12f08ecbc6e4a677be5f79bb130d0949");
}

TEST(ContentHash, DoesNotDependOnThePieces) {
  const std::string content = long_content();
  for (const std::size_t piece : {1000U, 65536U, 2999999U}) {
    ContentHash hash;
    for (std::size_t at = 0; at < content.size(); at += piece) {
      hash.update(std::string_view(content).substr(at, piece));
    }
    hash.update("");
    EXPECT_EQ(hash.digest(), "12f08ecbc6e4a677be5f79bb130d0949");
  }
}

TEST(ContentHash, MayGoOnAfterADigest) {
  ContentHash hash;
  hash.update("tre");
  EXPECT_NE(hash.digest(), hash_text("treadle"));
  hash.update("adle");
  EXPECT_EQ(hash.digest(), hash_text("treadle"));
}

// printf '' | sha256sum; printf treadle | sha256sum
TEST(Sha256File, AgreesWithSha256sum) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "sha256_test.bin";
  std::ofstream(path) << "";
  const std::string empty = sha256_file(path);
  std::ofstream(path) << "treadle";

  EXPECT_EQ(empty, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_file(path), "fa2dcc179e78832e772bfd87677350b9e6d3fb990f5676c26b63f981a8bfe824");
}

TEST(HashFile, HashesTheContent) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "hash_file_test.bin";
  std::ofstream(path, std::ios::binary) << long_content();

  EXPECT_EQ(hash_file(path), "12f08ecbc6e4a677be5f79bb130d0949");
  std::filesystem::remove(path);
}

TEST(HashFile, NamesTheFileThatCannotBeRead) {
  try {
    hash_file("/no/such/file");
    FAIL() << "expected a StorageError";
  } catch (const StorageError& error) {
    EXPECT_STREQ(error.what(), "/no/such/file: cannot be read: No such file or directory");
  }
}

}  // namespace
}  // namespace treadle
