// Functions of libc that stand before those of the library, for this program and everything it has
// loaded.
#include "wrong_system.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <chrono>
#include <ctime>

#include <gtest/gtest.h>

namespace {

using treadle::storages::WrongSystem;

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
    time->tv_sec += WrongSystem::wall_clock_offset;
  return result;
}

int gettimeofday(timeval* __restrict time, void* __restrict) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return result;
}

time_t time(time_t* result) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr)
    *result = now.tv_sec;
  return now.tv_sec;
}

int statfs(const char* path, struct statfs* status) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_statfs, path, status));
  if (WrongSystem::file_system != 0)
    status->f_type = WrongSystem::file_system;
  return result;
}

}  // extern "C"

namespace treadle::storages {
namespace {

TEST(WrongSystem, LibrariesReadTheWrongWallClock) {
  using std::chrono::system_clock;
  const auto before = system_clock::now();

  WrongSystem::wall_clock_offset = 3600;
  const auto after = system_clock::now();
  WrongSystem::wall_clock_offset = 0;

  EXPECT_GT(after - before, std::chrono::minutes(59));
}

}  // namespace
}  // namespace treadle::storages
