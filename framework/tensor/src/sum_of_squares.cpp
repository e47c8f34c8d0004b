#include "sum_of_squares.h"

// Highway compiles this file once per instruction set: what stands between HWY_BEFORE_NAMESPACE and
// HWY_AFTER_NAMESPACE each time, the rest once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sum_of_squares.cpp"
#include <hwy/foreach_target.h>  // before highway.h

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace treadle::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

double squares(const float* values, std::int64_t count) {
  constexpr std::int64_t kSums = 16;
  HWY_ALIGN double sums[kSums] = {};
  const hn::CappedTag<double, kSums> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(wide));
  std::int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::int64_t k = 0; k < kSums; k += lanes) {
      const auto value = hn::PromoteTo(wide, hn::LoadU(narrow, values + i + k));
      hn::Store(hn::MulAdd(value, value, hn::Load(wide, sums + k)), wide, sums + k);
    }
  }
  double sum = 0;
  for (; i < count; ++i)
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  for (const double one : sums)
    sum += one;
  return sum;
}

}  // namespace
}  // namespace treadle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle {
namespace {

HWY_EXPORT(squares);

}  // namespace

double sum_of_squares(const float* values, std::int64_t count) {
  return HWY_DYNAMIC_DISPATCH(squares)(values, count);
}

}  // namespace treadle
#endif
