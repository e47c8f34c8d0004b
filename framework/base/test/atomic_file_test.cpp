#include <treadle/base/atomic_file.h>

#include <fcntl.h>
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

TEST_F(AtomicFile, IsReplacedByTheCommitOfItsWriter) {
  const fs::path path = folder_ / "table.parquet";
  write_file_atomically(path, "old");
  {
    AtomicFileWriter given_up(path);
    given_up.write("half");
  }
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files(), 1U);

  AtomicFileWriter writer(path);
  writer.write("first, ");
  writer.write("second");
  EXPECT_EQ(content(path), "old");
  writer.commit();

  EXPECT_EQ(content(path), "first, second");
  EXPECT_EQ(files(), 1U);
}

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
    EXPECT_EQ(std::string(error.what()),
              path.string() +
                  ": cannot be written: File too large; raise the limit on the size of files: "
                  "ulimit -f unlimited");
  }

  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFile, FollowsSymbolicLinks) {
  fs::create_directory(folder_ / "elsewhere");
  write_file_atomically(folder_ / "elsewhere" / "target", "old");
  fs::create_symlink("elsewhere/target", folder_ / "link");
  fs::create_symlink("link", folder_ / "link-to-link");
  fs::create_symlink(folder_ / "elsewhere" / "new", folder_ / "dangling");

  write_file_atomically(folder_ / "link-to-link", "new");
  write_file_atomically(folder_ / "dangling", "made");

  EXPECT_TRUE(fs::is_symlink(folder_ / "link-to-link"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(content(folder_ / "elsewhere" / "target"), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "dangling"));
  EXPECT_EQ(content(folder_ / "elsewhere" / "new"), "made");
}

TEST_F(AtomicFile, RefusesLinksInACircle) {
  fs::create_symlink("b", folder_ / "a");
  fs::create_symlink("a", folder_ / "b");
  EXPECT_THROW(write_file_atomically(folder_ / "a", "x"), StorageError);
  EXPECT_TRUE(fs::is_symlink(folder_ / "a"));
}

TEST_F(AtomicFile, WritesIntoAFifoAndLeavesItOne) {
  const fs::path fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);

  write_file_atomically(fifo, "row\n");

  char text[16] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 4);
  EXPECT_STREQ(text, "row\n");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_EQ(files(), 1U);
}

TEST_F(AtomicFile, WritesIntoADeviceAndSaysThatItIsFull) {
  fs::create_symlink("/dev/full", folder_ / "full");
  fs::create_symlink("/dev/null", folder_ / "null");

  write_file_atomically(folder_ / "null", "x");
  EXPECT_THROW(write_file_atomically(folder_ / "full", "x"), StorageError);

  EXPECT_TRUE(fs::is_symlink(folder_ / "null"));
  EXPECT_TRUE(fs::is_character_file(folder_ / "full"));
}

// What stands in the file before, and what follows, is left alone.
TEST_F(AtomicFile, GoesOnWhereAnOpenDescriptorStands) {
  const fs::path path = folder_ / "redirected";
  const int number = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(number, 0);
  ASSERT_EQ(::write(number, "before\n", 7), 7);

  write_file_atomically("/proc/self/fd/" + std::to_string(number), "between\n");

  ASSERT_EQ(::write(number, "after\n", 6), 6);
  ::close(number);
  EXPECT_EQ(content(path), "before\nbetween\nafter\n");
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
