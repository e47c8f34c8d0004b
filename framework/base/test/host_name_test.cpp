#include <treadle/base/system/host_name.h>

#include <fstream>

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(HostName, IsThatOfTheKernel) {
  std::string name;
  std::ifstream("/proc/sys/kernel/hostname") >> name;

  EXPECT_EQ(host_name(), name);
}

}  // namespace
}  // namespace treadle
