#include <treadle/base/atomic_file.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public testing::Test {
 protected:
  AtomicFile()
      : folder_(fs::path(testing::TempDir()) / ("atomic_file_test." + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~AtomicFile() override { fs::remove_all(folder_); }

  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  static std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
};

// Makes writes beyond `bytes` fail with "File too large", as a full disk makes them fail.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int);
};

TEST_F(AtomicFile, ReplacesTheContentAndLeavesNothingElse) {
  const fs::path path = folder_ / "result.json";
  write_file_atomically(path, "old");
  write_file_atomically(path, "new\n");

  EXPECT_EQ(content(path), "new\n");
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFile, IsInvisibleUntilItIsWhole) {
  const fs::path path = folder_ / "weights";
  write_file_atomically(path, "old");
  std::string expected;

  write_file_atomically(path, [&](FileWriter& writer) {
    for (int i = 0; i < 1000; ++i) {
      const std::string piece(static_cast<std::size_t>(i) * 7 % 300,
                              static_cast<char>('a' + i % 26));
      writer.write(piece);
      expected += piece;
    }
    const std::string large(200000, 'z');
    writer.write(large);
    expected += large;
    EXPECT_EQ(content(path), "old");
  });

  EXPECT_EQ(content(path), expected);
}

TEST_F(AtomicFile, KeepsTheOldFileWhenTheWriterFails) {
  const fs::path path = folder_ / "state.json";
  write_file_atomically(path, "old");

  EXPECT_THROW(write_file_atomically(path,
                                     [](FileWriter& writer) {
                                       writer.write("half");
                                       throw std::runtime_error("no more");
                                     }),
               std::runtime_error);

  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFile, KeepsTheOldFileWhenTheDiskIsFull) {
  const fs::path path = folder_ / "state.json";
  write_file_atomically(path, "old");
  try {
    const FileSizeLimit limit(1000);
    write_file_atomically(path, std::string(100000, 'x'));
    FAIL() << "expected a StorageError";
  } catch (const StorageError& error) {
    EXPECT_EQ(std::string(error.what()), path.string() + ": cannot be written: File too large");
  }

  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFile, NamesPathAndReason) {
  const fs::path path = folder_ / "missing" / "a.json";
  try {
    write_file_atomically(path, "x");
    FAIL() << "expected a StorageError";
  } catch (const StorageError& error) {
    EXPECT_EQ(std::string(error.what()),
              path.string() + ": cannot be written: No such file or directory");
  }

  fs::create_directory(folder_ / "b.json");
  try {
    write_file_atomically(folder_ / "b.json", "x");
    FAIL() << "expected a StorageError";
  } catch (const StorageError& error) {
    EXPECT_EQ(std::string(error.what()),
              (folder_ / "b.json").string() + ": cannot be replaced: Is a directory");
  }
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFile, SpeaksOfAFullDiskInTheSystemsWords) {
  if (!fs::exists("/dev/full"))
    GTEST_SKIP() << "needs /dev/full";
  try {
    AppendFile("/dev/full").append_line("x");
    FAIL() << "expected a StorageError";
  } catch (const StorageError& error) {
    EXPECT_STREQ(error.what(), "/dev/full: cannot be written: No space left on device");
  }
}

TEST_F(AtomicFile, StepsAroundALeftover) {
  const fs::path path = folder_ / "a.json";
  const fs::path leftover = path.string() + ".part-" + std::to_string(::getpid()) + "-0";
  std::ofstream(leftover) << "of a process that was killed";

  write_file_atomically(path, "new");

  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(content(leftover), "of a process that was killed");
}

TEST_F(AtomicFile, WorksInTheCurrentFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  write_file_atomically("plain.txt", "x");
  fs::current_path(before);

  EXPECT_EQ(content(folder_ / "plain.txt"), "x");
}

class AppendFileTest : public AtomicFile {};

TEST_F(AppendFileTest, AppendsLinesThatOthersSeeAtOnce) {
  const fs::path path = folder_ / "events.jsonl";
  {
    AppendFile file(path);
    file.append_line("{\"step\": 1}");
    EXPECT_EQ(content(path), "{\"step\": 1}\n");
    EXPECT_EQ(file.size(), 12U);
    file.sync();
  }
  AppendFile again(path);
  EXPECT_EQ(again.size(), 12U);
  again.append_line("");
  EXPECT_EQ(content(path), "{\"step\": 1}\n\n");
}

TEST_F(AppendFileTest, IsCutBackAndGoesOnFromThere) {
  const fs::path path = folder_ / "history.csv";
  AppendFile file(path);
  file.append_line("epoch,loss");
  const std::uint64_t checkpoint = file.size();
  file.append_line("1,0.5");

  file.truncate_to(checkpoint);
  file.append_line("1,0.25");

  EXPECT_EQ(content(path), "epoch,loss\n1,0.25\n");
  EXPECT_EQ(file.size(), 18U);
  EXPECT_THROW(file.truncate_to(1000), ContractViolation);
}

TEST_F(AppendFileTest, TakesBackALineThatDidNotFit) {
  const fs::path path = folder_ / "history.csv";
  AppendFile file(path);
  file.append_line("epoch,loss");
  {
    const FileSizeLimit limit(20);
    EXPECT_THROW(file.append_line("a line that is longer than what is left"), StorageError);
  }
  EXPECT_EQ(content(path), "epoch,loss\n");

  file.append_line("1,0.5");
  EXPECT_EQ(content(path), "epoch,loss\n1,0.5\n");
}

TEST_F(AppendFileTest, RefusesLineFeeds) {
  AppendFile file(folder_ / "a.csv");
  EXPECT_THROW(file.append_line("a\nb"), ContractViolation);
}

}  // namespace
}  // namespace treadle
