#pragma once

// Functions of libc that stand before those of the library, for the program that includes this and
// everything it has loaded. They do what WrongSystem asks for.

#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <ctime>

#include <treadle/testing/search/wrong_system.h>

extern "C" {

[[gnu::used]] inline int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
    time->tv_sec += treadle::testing::WrongSystem::wall_clock_offset;
  return result;
}

[[gnu::used]] inline int gettimeofday(timeval* __restrict time, void* __restrict) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return result;
}

[[gnu::used]] inline time_t time(time_t* result) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr)
    *result = now.tv_sec;
  return now.tv_sec;
}

[[gnu::used]] inline int statfs(const char* path, struct statfs* status) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_statfs, path, status));
  if (treadle::testing::WrongSystem::file_system != 0)
    status->f_type = treadle::testing::WrongSystem::file_system;
  return result;
}

}  // extern "C"
