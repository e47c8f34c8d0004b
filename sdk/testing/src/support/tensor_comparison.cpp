#include <treadle/testing/support/tensor_comparison.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iomanip>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace treadle::testing {

bool same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
}

std::string index_text(std::int64_t flat, at::IntArrayRef sizes) {
  std::string text;
  for (std::size_t i = sizes.size(); i-- > 0; flat /= sizes[i])
    text = std::to_string(flat % sizes[i]) + (text.empty() ? "" : ", " + text);
  return "[" + text + "]";
}

namespace {

/// Places of floating-point numbers in their order: neighbours differ by 1.
template <typename Float>
std::int64_t place_of(Float number) {
  using Int = std::conditional_t<sizeof(Float) == 4, std::int32_t, std::int64_t>;
  Int bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits >= 0 ? bits : std::numeric_limits<Int>::min() - bits;
}

double ulps_between(double a, double b, at::ScalarType dtype) {
  if (dtype == at::kFloat) {
    return std::abs(static_cast<double>(place_of(static_cast<float>(a))) -
                    static_cast<double>(place_of(static_cast<float>(b))));
  }
  const auto from = static_cast<std::uint64_t>(place_of(std::min(a, b)));
  const auto to = static_cast<std::uint64_t>(place_of(std::max(a, b)));
  return static_cast<double>(to - from);
}

}  // namespace

::testing::AssertionResult values_match(const at::Tensor& got, const at::Tensor& expected,
                                        const Closeness& allowed) {
  const auto failure = [] { return ::testing::AssertionFailure(); };
  if (!got.defined() || !expected.defined()) {
    if (got.defined() == expected.defined())
      return ::testing::AssertionSuccess();
    return failure() << (got.defined() ? "expected no tensor, got one"
                                       : "expected a tensor, got none");
  }
  if (got.sizes() != expected.sizes() || got.scalar_type() != expected.scalar_type()) {
    return failure() << "expected " << c10::toString(expected.scalar_type()) << " "
                     << expected.sizes() << ", got " << c10::toString(got.scalar_type()) << " "
                     << got.sizes();
  }
  const at::Tensor ours = got.detach().to(at::kDouble).contiguous();
  const at::Tensor theirs = expected.detach().to(at::kDouble).contiguous();
  const double* a = ours.data_ptr<double>();
  const double* b = theirs.data_ptr<double>();
  std::int64_t differ = 0;
  std::int64_t worst = 0;
  double worst_excess = -1;
  for (std::int64_t i = 0; i < ours.numel(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
      continue;
    const double apart = std::abs(a[i] - b[i]);
    const double bound = std::max(allowed.absolute, allowed.relative * std::abs(b[i]));
    if (apart <= bound ||
        (allowed.ulps > 0 && ulps_between(a[i], b[i], got.scalar_type()) <= allowed.ulps)) {
      continue;
    }
    ++differ;
    const double excess = std::isnan(apart) ? std::numeric_limits<double>::infinity()
                          : bound > 0       ? apart / bound
                                            : apart;
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (differ == 0)
    return ::testing::AssertionSuccess();
  const double apart = std::abs(a[worst] - b[worst]);
  std::ostringstream text;
  text << differ << " of " << ours.numel() << " elements differ, the worst at "
       << index_text(worst, got.sizes()) << ": got " << std::setprecision(17) << a[worst]
       << ", expected " << b[worst] << std::setprecision(3) << " (off by " << apart << ", "
       << apart / std::abs(b[worst]) << " of it, "
       << ulps_between(a[worst], b[worst], got.scalar_type())
       << " ulps; allowed: " << allowed.absolute << ", " << allowed.relative << " of it, "
       << allowed.ulps << " ulps)";
  return failure() << text.str();
}

}  // namespace treadle::testing
