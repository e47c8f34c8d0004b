// GCC calls a function for each basic block; libFuzzer reads counters. The linker leads the calls
// of __sanitizer_cov_trace_pc() here.
#include <cstddef>
#include <cstdint>

namespace {

constexpr int kCounterBits = 16;

alignas(4096) std::uint8_t counters[std::size_t{1} << kCounterBits];

}  // namespace

extern "C" {

/// libFuzzer's; not in the program that only reads the corpus.
[[gnu::weak]] void __sanitizer_cov_8bit_counters_init(std::uint8_t* begin, std::uint8_t* end);

void __wrap___sanitizer_cov_trace_pc() {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // spreads addresses over the counters
  const auto block = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  std::uint8_t& count = counters[(block * kGolden) >> (64 - kCounterBits)];
  count = count == 255 ? 255 : count + 1;
}

// GCC's alone: no runtime defines them, and no mutation would know what to do with them.
void __sanitizer_cov_trace_cmpf(float, float) {}
void __sanitizer_cov_trace_cmpd(double, double) {}

}  // extern "C"

namespace {

[[maybe_unused]] const bool kRegistered = [] {
  if (__sanitizer_cov_8bit_counters_init != nullptr)
    __sanitizer_cov_8bit_counters_init(counters, counters + sizeof counters);
  return true;
}();

}  // namespace
