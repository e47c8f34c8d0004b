#include <treadle/tensor/float8.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>
#include <treadle/tensor/torch_versions.h>

namespace treadle {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Format {
  std::string name;
  NarrowFloat format;
  int bias;
  bool has_infinity;

  /// Numbers without a sign, as the paper's table 1 defines them: code by code, ascending.
  std::vector<double> finite() const {
    std::vector<double> values;
    const int mantissas = 1 << format.mantissa_bits;
    for (int code = 0; code < (has_infinity ? 0x7c : 0x7f); ++code) {
      const int exponent = code / mantissas;
      const double mantissa = static_cast<double>(code % mantissas) / mantissas;
      values.push_back(exponent == 0 ? mantissa * std::exp2(1 - bias)
                                     : (1 + mantissa) * std::exp2(exponent - bias));
    }
    return values;
  }

  /// Decides by distances, which are exact in float64.
  int code_of(float value, Overflow overflow) const {
    const int sign = std::signbit(value) ? 0x80 : 0;
    if (std::isnan(value))
      return sign | 0x7f;
    const std::vector<double> values = finite();
    const double magnitude = std::abs(double{value});
    const int last = static_cast<int>(values.size()) - 1;
    const double one_more = 2 * values[last] - values[last - 1];
    const auto distance = [&](int code) {
      return std::abs(magnitude - (code > last ? one_more : values[code]));
    };
    int nearest = 0;
    for (int code = 1; code <= last + 1; ++code) {
      if (distance(code) < distance(nearest) ||
          (distance(code) == distance(nearest) && code % 2 == 0))
        nearest = code;
    }
    if (magnitude > one_more)
      nearest = last + 1;  // infinity has no distance
    if (nearest > last && overflow == Overflow::kSaturates)
      nearest = last;
    return sign | nearest;  // behind the last is infinity in E5M2, NaN in E4M3
  }
};

const Format& e4m3() {
  static const Format format{"E4M3", kE4M3, 7, false};
  return format;
}
const Format& e5m2() {
  static const Format format{"E5M2", kE5M2, 15, true};
  return format;
}

/// All numbers of the format, all ties between two, their neighbours in float32, what overflows,
/// what is far too small, and the same with a sign.
std::vector<float> hard_numbers(const Format& format) {
  std::vector<float> numbers{0,     1e-30F,    1e-45F, 1e30F, std::numeric_limits<float>::max(),
                             465.F, 70'000.F,  512.F,  896.F, 1'000.F,
                             1e6F,  kInfinity, kNan};
  std::vector<double> values = format.finite();
  values.push_back(2 * values.back() - values[values.size() - 2]);
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    for (const double near : {values[i], (values[i] + values[i + 1]) / 2, values[i + 1]}) {
      const auto number = static_cast<float>(near);
      numbers.insert(numbers.end(),
                     {number, std::nextafter(number, 0.F), std::nextafter(number, kInfinity)});
    }
  }
  const std::size_t count = numbers.size();
  for (std::size_t i = 0; i < count; ++i)
    numbers.push_back(-numbers[i]);
  return numbers;
}

/// Of all exponents.
at::Tensor random_numbers() {
  const TaskRandom random(5);
  return at::randint(std::numeric_limits<std::int32_t>::min(),
                     std::numeric_limits<std::int32_t>::max(), {20'000},
                     at::TensorOptions(at::kInt))
      .view(at::kFloat);
}

class Float8 : public ::testing::TestWithParam<Format> {
 protected:
  static void expect_codes(const at::Tensor& numbers, Overflow overflow) {
    const at::Tensor codes = float8_codes(GetParam().format, numbers, overflow);
    ASSERT_EQ(codes.scalar_type(), at::kByte);
    for (std::int64_t i = 0; i < numbers.numel(); ++i) {
      const auto number = numbers[i].item<float>();
      ASSERT_EQ(codes[i].item<int>(), GetParam().code_of(number, overflow))
          << number << ", bits " << std::bit_cast<std::uint32_t>(number);
    }
  }
};

TEST_P(Float8, HasTheNumbersOfThePaper) {
  const at::Tensor values =
      float8_values(GetParam().format, at::arange(256, at::TensorOptions(at::kByte)));
  const std::vector<double> finite = GetParam().finite();
  for (int code = 0; code < 256; ++code) {
    const int magnitude = code & 0x7f;
    const auto got = values[code].item<float>();
    if (magnitude < static_cast<int>(finite.size())) {
      EXPECT_EQ(got, (code < 0x80 ? 1 : -1) * finite[magnitude]) << code;
      EXPECT_EQ(std::signbit(got), code >= 0x80) << code;
    } else if (GetParam().has_infinity && magnitude == 0x7c) {
      EXPECT_EQ(got, code < 0x80 ? kInfinity : -kInfinity);
    } else {
      EXPECT_TRUE(std::isnan(got)) << code;
    }
  }
  EXPECT_EQ(finite.back(), GetParam().format.largest);
}

TEST_P(Float8, RoundsToTheNearestAndTiesToEven) {
  expect_codes(at::tensor(hard_numbers(GetParam())), Overflow::kSaturates);
  expect_codes(random_numbers(), Overflow::kSaturates);
}

TEST_P(Float8, OverflowsAsLibtorchDoesWhereItIsNotToSaturate) {
  expect_codes(at::tensor(hard_numbers(GetParam())), Overflow::kIsNotFinite);
  expect_codes(random_numbers(), Overflow::kIsNotFinite);
}

// The training threads do so.
TEST_P(Float8, IsTheSameWhereDenormalsOfFloat32AreFlushed) {
  if (!at::globalContext().setFlushDenormal(true))
    GTEST_SKIP() << "this processor cannot flush denormal numbers";
  const at::Tensor numbers = at::tensor(hard_numbers(GetParam()));
  const at::Tensor codes = float8_codes(GetParam().format, numbers);
  const at::Tensor values = float8_values(GetParam().format, codes);
  at::globalContext().setFlushDenormal(false);
  EXPECT_TRUE(at::equal(codes, float8_codes(GetParam().format, numbers)));
  EXPECT_TRUE(values.isnan()
                  .logical_or(values.eq(float8_values(GetParam().format, codes)))
                  .all()
                  .item<bool>());
}

TEST_P(Float8, RoundedNumbersAreThoseOfTheCodes) {
  for (const at::Tensor& numbers : {at::tensor(hard_numbers(GetParam())), random_numbers()}) {
    const at::Tensor rounded = rounded_to(GetParam().format, numbers);
    const at::Tensor decoded =
        float8_values(GetParam().format, float8_codes(GetParam().format, numbers));
    EXPECT_TRUE(at::equal(rounded.isnan(), decoded.isnan()));
    EXPECT_TRUE(at::equal(rounded.nan_to_num(), decoded.nan_to_num()));
    const at::Tensor is_number = decoded.isnan().logical_not();
    EXPECT_TRUE(at::equal(rounded.signbit().logical_and(is_number),
                          decoded.signbit().logical_and(is_number)))
        << "zeros keep their sign";
  }
}

TEST_P(Float8, TakesAnyShapeAndLayout) {
  const at::Tensor numbers = random_numbers().view({100, 200}).nan_to_num();
  const at::Tensor turned = numbers.t();
  EXPECT_TRUE(
      at::equal(rounded_to(GetParam().format, turned), rounded_to(GetParam().format, numbers).t()));
  EXPECT_TRUE(at::equal(float8_codes(GetParam().format, turned),
                        float8_codes(GetParam().format, numbers).t()));
  EXPECT_EQ(float8_codes(GetParam().format, at::ones({0, 3})).sizes(), (c10::IntArrayRef{0, 3}));
}

// Clamped first: an E4M3 overflow is NaN in libtorch 2.6, as in the paper, and 448 in 2.14.
TEST_P(Float8, ConvertsAsLibtorchDoes) {
  const double largest = GetParam().finite().back();
  for (const at::Tensor& any : {at::tensor(hard_numbers(GetParam())), random_numbers()}) {
    const at::Tensor numbers = any.clamp(-largest, largest);
    const auto its = torch_versions::float8_codes_by_libtorch(numbers, GetParam().has_infinity);
    if (!its)
      GTEST_SKIP() << "libtorch " << TORCH_VERSION << " has no float8";
    const at::Tensor ours = float8_codes(GetParam().format, numbers, Overflow::kIsNotFinite);
    const at::Tensor differing = numbers.masked_select(ours.ne(*its));
    EXPECT_EQ(differing.numel(), 0) << differing[0].item<float>();
  }
}

TEST_P(Float8, RefusesOtherDtypes) {
  EXPECT_THROW(rounded_to(GetParam().format, at::ones({2}, at::kDouble)), ContractViolation);
  EXPECT_THROW(float8_codes(GetParam().format, at::ones({2}, at::kHalf)), ContractViolation);
  EXPECT_THROW(float8_values(GetParam().format, at::ones({2}, at::kInt)), ContractViolation);
  EXPECT_THROW(float8_codes(kE2M1, at::ones({2})), ContractViolation) << "it has four bits";
}

INSTANTIATE_TEST_SUITE_P(Of, Float8, ::testing::Values(e4m3(), e5m2()),
                         [](const auto& one) { return one.param.name; });

// As the standard lists them, with every tie: 2.5 to 2, 5 to 4.
TEST(Float4, RoundsToItsEightNumbers) {
  const at::Tensor given = at::tensor({0.0F, 0.2F, 0.25F, 0.3F, 0.75F, 0.8F, 1.25F, 1.3F, 1.75F,
                                       2.4F, 2.5F, 2.6F, 3.5F, 4.9F, 5.0F, 5.1F, 6.0F, 7.0F, 1e9F});
  const at::Tensor rounded = at::tensor({0.0F, 0.0F, 0.0F, 0.5F, 1.0F, 1.0F, 1.0F, 1.5F, 2.0F, 2.0F,
                                         2.0F, 3.0F, 4.0F, 4.0F, 4.0F, 6.0F, 6.0F, 6.0F, 6.0F});
  EXPECT_TRUE(at::equal(rounded_to(kE2M1, given), rounded));
  EXPECT_TRUE(at::equal(rounded_to(kE2M1, -given), -rounded));
}

}  // namespace
}  // namespace treadle
