#include <treadle/engine/available_memory.h>

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

namespace treadle::engine {
namespace {

namespace fs = std::filesystem;

/// A machine whose /proc and /sys a test writes.
class AvailableMemory : public ::testing::Test {
 protected:
  AvailableMemory() {
    std::string pattern = (fs::temp_directory_path() / "treadle-memory-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~AvailableMemory() override { fs::remove_all(root_); }

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void machine_has(const std::string& kilobytes) const {
    write("proc/meminfo", "MemTotal:       24684084 kB\nMemFree:  1 kB\nMemAvailable:   " +
                              kilobytes + " kB\nBuffers: 5 kB\n");
  }
  void group_has(const fs::path& group, const std::string& limit, const std::string& used,
                 const std::string& of_files = "0") const {
    const fs::path folder = "sys/fs/cgroup" / group;
    write(folder / "memory.max", limit + "\n");
    write(folder / "memory.current", used + "\n");
    write(folder / "memory.stat", "anon 7\nfile 9\ninactive_file " + of_files + "\n");
  }

  fs::path root_;
};

TEST_F(AvailableMemory, IsWhatTheMachineHasLeft) {
  machine_has("2000");

  EXPECT_EQ(available_memory_bytes(root_), 2000 * 1024);
}

TEST_F(AvailableMemory, IsCutByTheLimitOfTheGroup) {
  machine_has("2000");
  write("proc/self/cgroup", "1:name=systemd:/x\n0::/app.slice/job\n");
  group_has("app.slice/job", "100000", "60000", "5000");

  EXPECT_EQ(available_memory_bytes(root_), 45000);
}

TEST_F(AvailableMemory, IsCutByTheGroupsAroundIt) {
  machine_has("2000");
  write("proc/self/cgroup", "0::/app.slice/job\n");
  group_has("app.slice/job", "100000", "60000");
  group_has("app.slice", "70000", "65000");

  EXPECT_EQ(available_memory_bytes(root_), 5000);
}

// In a container its own group is what is mounted, whatever name it has outside.
TEST_F(AvailableMemory, IsCutByTheGroupThatIsMounted) {
  machine_has("2000");
  write("proc/self/cgroup", "0::/\n");
  group_has(".", "50000", "10000");

  EXPECT_EQ(available_memory_bytes(root_), 40000);
}

TEST_F(AvailableMemory, IsNotCutByAGroupWithoutALimit) {
  machine_has("2000");
  write("proc/self/cgroup", "0::/job\n");
  group_has("job", "max", "60000");

  EXPECT_EQ(available_memory_bytes(root_), 2000 * 1024);
}

TEST_F(AvailableMemory, IsNeverNegative) {
  machine_has("2000");
  write("proc/self/cgroup", "0::/job\n");
  group_has("job", "1000", "5000");

  EXPECT_EQ(available_memory_bytes(root_), 0);
}

TEST_F(AvailableMemory, IsUnknownWhereTheSystemDoesNotSay) {
  EXPECT_EQ(available_memory_bytes(root_), std::nullopt);
}

TEST(AvailableMemoryHere, IsThere) {
  const auto bytes = available_memory_bytes();

  ASSERT_TRUE(bytes.has_value());
  EXPECT_GT(*bytes, 1 << 20);
}

}  // namespace
}  // namespace treadle::engine
