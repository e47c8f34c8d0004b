// What libFuzzer calls; compiled once per target. A broken promise leaves here as an exception that
// nobody catches, which ends the process and keeps the input.
#include <cstddef>
#include <cstdint>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  treadle::fuzz::TREADLE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
