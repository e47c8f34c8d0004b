#include <treadle/core/precision/precision.h>

#include <algorithm>
#include <array>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using c10::ScalarType;

constexpr std::array kPrecisions{
    NamedPrecision{"float32", {}},
    NamedPrecision{"float64", {.parameters = ScalarType::Double}},
    NamedPrecision{"bf16", {.parameters = ScalarType::BFloat16}},
    NamedPrecision{"bf16-mixed", {.autocast = ScalarType::BFloat16}},
    NamedPrecision{"fp16-mixed", {.autocast = ScalarType::Half, .scales_loss = true}},
    NamedPrecision{"fp8-tensorwise", {.float8 = Float8Scaling::kTensorwise}},
    NamedPrecision{"fp8-rowwise", {.float8 = Float8Scaling::kRowwise}},
    NamedPrecision{"fp8-delayed", {.float8 = Float8Scaling::kDelayed}},
};

}  // namespace

std::span<const NamedPrecision> precisions() {
  return kPrecisions;
}

Precision precision_named(std::string_view name) {
  const auto* const found =
      std::find_if(kPrecisions.begin(), kPrecisions.end(),
                   [&](const NamedPrecision& one) { return one.name == name; });
  TREADLE_EXPECTS(found != kPrecisions.end(), "there is no such precision");
  return found->precision;
}

}  // namespace treadle
