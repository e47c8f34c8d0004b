// Preloaded into the app (LD_PRELOAD), a machine on which something is wrong:
//
//   TREADLE_TEST_CLOCK_OFFSET=3600  every wall clock is ahead by so many seconds
//   TREADLE_TEST_FULL_DISK=PREFIX   while the file PREFIX.full exists, nothing can be written to
//                                   files whose paths begin with PREFIX
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string>

namespace {

long clock_offset() {
  static const char* const seconds = std::getenv("TREADLE_TEST_CLOCK_OFFSET");
  static const long offset = seconds != nullptr ? std::atol(seconds) : 0;
  return offset;
}

bool is_full(int file) {
  static const char* const prefix = std::getenv("TREADLE_TEST_FULL_DISK");
  if (prefix == nullptr || access((std::string(prefix) + ".full").c_str(), F_OK) != 0)
    return false;
  char path[4096];
  const ssize_t length =
      readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
  return length > 0 && std::string(path, static_cast<std::size_t>(length)).starts_with(prefix);
}

ssize_t no_space() {
  errno = ENOSPC;
  return -1;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
    time->tv_sec += clock_offset();
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

ssize_t write(int file, const void* bytes, size_t count) {
  return is_full(file) ? no_space() : syscall(SYS_write, file, bytes, count);
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t at) {
  return is_full(file) ? no_space() : syscall(SYS_pwrite64, file, bytes, count, at);
}

ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t at) {
  return is_full(file) ? no_space() : syscall(SYS_pwrite64, file, bytes, count, at);
}

}  // extern "C"
