#include "resources/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace treadle::internal {

#if defined(__x86_64__)
namespace {

struct Features {
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool amx_bf16 = false;
  bool amx_fp16 = false;
};

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID, leaf 7.
Features features() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  Features found;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    found.amx_bf16 = (d >> 22 & 1) != 0;
    found.avx512_fp16 = (d >> 23 & 1) != 0;
  }
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) {
    found.avx512_bf16 = (a >> 5 & 1) != 0;
    found.amx_fp16 = (a >> 21 & 1) != 0;
  }
  return found;
}

}  // namespace

bool multiplies_bfloat16() {
  const Features found = features();
  return found.avx512_bf16 || found.amx_bf16;
}
bool multiplies_float16() {
  const Features found = features();
  return found.avx512_fp16 || found.amx_fp16;
}
#elif defined(__aarch64__)
// Linux, arch/arm64/include/uapi/asm/hwcap.h.
bool multiplies_bfloat16() {
  return (getauxval(AT_HWCAP2) >> 14 & 1) != 0;  // HWCAP2_BF16
}
bool multiplies_float16() {
  return (getauxval(AT_HWCAP) >> 10 & 1) != 0;  // HWCAP_ASIMDHP
}
#else
bool multiplies_bfloat16() {
  return false;
}
bool multiplies_float16() {
  return false;
}
#endif

}  // namespace treadle::internal
