#include <treadle/testing/data/sampler_contract.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/sampler.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/batches.h>

#include "claim.h"

namespace treadle::testing {

MatrixRows::Matrices sampler_data(std::int64_t rows) {
  constexpr std::int64_t kLongest = 6;
  const at::Tensor number = at::arange(rows, at::kLong);
  const at::Tensor lengths = number.mul(5).remainder(kLongest).add(1);
  const at::Tensor real = at::arange(kLongest, at::kLong).unsqueeze(0).lt(lengths.unsqueeze(1));
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"text", {kVaries}, {}, Role::kTokens, at::kLong, 9},
                          {"text.lengths", {}, {}, Role::kLengths, at::kLong, 0, "text"},
                          {"features", {2}, {{"a"}, {"b"}}}};
  matrices.spec.targets = {treadle::class_target("kind", {"common", "usual", "rare"}),
                           treadle::number_target("price")};
  matrices.spec.has_weights = true;
  const at::Tensor a = number.mul(7).remainder(11).to(at::kFloat);
  matrices.inputs = {real.to(at::kLong), lengths, at::stack({a, a.neg()}, 1)};
  matrices.targets = {number.mul(7).remainder(10).sub(7).clamp(0, 2), a.view({rows, 1})};
  matrices.weights = number.remainder(4).add(1).to(at::kFloat);
  matrices.groups = number.floor_divide(10);
  matrices.timestamps = number.to(at::kDouble);
  return matrices;
}

MatrixRows::Matrices plain_data(std::int64_t rows) {
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {1}, {{"x"}}}};
  matrices.spec.targets = {treadle::number_target("price")};
  matrices.inputs = {at::arange(rows, at::kFloat).view({rows, 1})};
  matrices.targets = {at::ones({rows, 1})};
  return matrices;
}

namespace {

/// What the claims share.
class SamplerClaims : public ::testing::WithParamInterface<SamplerCase> {
 protected:
  using Rows = std::vector<std::int64_t>;
  static constexpr std::int64_t kRows = 83;
  static constexpr std::uint64_t kSeed = 3;

  SampleRequest request(std::uint64_t seed = kSeed) const { return {&reader_, rows_, 8, 0, seed}; }

  static Rows walked(const SampleOrder& order) {
    Rows rows(static_cast<std::size_t>(order.size()), -1);
    order.fill(0, rows);
    return rows;
  }
  static Rows walked(const Sampler& sampler, const SampleRequest& request) {
    return walked(*sampler.order(request));
  }

  /// What `order` has that is none of `allowed`.
  static Rows strangers(const Rows& order, Rows allowed) {
    std::sort(allowed.begin(), allowed.end());
    Rows strange;
    std::copy_if(order.begin(), order.end(), std::back_inserter(strange), [&](std::int64_t row) {
      return !std::binary_search(allowed.begin(), allowed.end(), row);
    });
    return strange;
  }

  const MatrixRows reader_{sampler_data(kRows)};
  const Rows rows_ = row_numbers(0, kRows);
  const std::unique_ptr<Sampler> sampler_ = GetParam().make();
};

}  // namespace

LINKS_CLAIMS_OF(Sampler)

CLAIM(Sampler, TheOrderIsAFunctionOfTheRequest) {
  const Rows first = walked(*sampler_, request());
  SampleRequest other = request(99);
  other.pass = 2;
  walked(*sampler_, other);

  EXPECT_EQ(walked(*sampler_, request()), first);
  EXPECT_EQ(walked(*GetParam().make(), request()), first);
}

CLAIM(Sampler, PositionsMayBeAskedForInAnyOrder) {
  const Rows whole = walked(*sampler_, request());
  const auto order = sampler_->order(request());
  const std::int64_t size = order->size();

  for (const std::int64_t length : {1, 7, 40}) {
    for (std::int64_t begin = size - length; begin >= 0;
         begin -= std::max<std::int64_t>(1, length / 2)) {
      Rows some(static_cast<std::size_t>(length));
      order->fill(begin, some);
      const Rows expected(whole.begin() + begin, whole.begin() + begin + length);
      EXPECT_EQ(some, expected) << "positions from " << begin << " on";
    }
  }
  order->fill(size, {});
}

CLAIM(Sampler, HowManySamplesIsAFunctionOfTheRowsAlone) {
  for (const std::int64_t rows : {1, 2, 7, 1000, 1000000}) {
    const std::int64_t samples = sampler_->samples(rows);
    EXPECT_GE(samples, 1);
    EXPECT_EQ(sampler_->samples(rows), samples) << rows << " rows";
    EXPECT_EQ(GetParam().make()->samples(rows), samples) << rows << " rows";
  }
}

// A fold trains on some of the rows, in any order.
CLAIM(Sampler, TakesTheRowsOfTheRequestAndNoOthers) {
  Rows some;
  for (std::int64_t row = kRows - 1; row >= 0; row -= 2)
    some.push_back(row);
  std::swap(some[3], some[20]);
  SampleRequest half = request();
  half.rows = some;

  EXPECT_EQ(strangers(walked(*sampler_, half), some), Rows());
}

CLAIM(Sampler, EachRowComesOnceIfItSaysSo) {
  Rows order = walked(*sampler_, request());
  std::sort(order.begin(), order.end());

  EXPECT_EQ(order == rows_, GetParam().each_row_once);
}

CLAIM(Sampler, TheSeedDecidesWhatIsRandom) {
  EXPECT_EQ(walked(*sampler_, request(1)) != walked(*sampler_, request(2)), GetParam().is_random);
}

CLAIM(Sampler, LaterPassesWorkLikeTheFirst) {
  for (const std::int64_t pass : {1, 2, 10, 1000000}) {
    SampleRequest later = request(static_cast<std::uint64_t>(pass));
    later.pass = pass;
    try {
      EXPECT_EQ(strangers(walked(*sampler_, later), rows_), Rows()) << "pass " << pass;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "pass " << pass << ": " << error.what();
    }
  }
}

CLAIM(Sampler, WorksForOneRow) {
  const Rows one = {17};
  SampleRequest alone = request();
  alone.rows = one;
  try {
    EXPECT_EQ(strangers(walked(*sampler_, alone), one), Rows());
  } catch (const DataError& error) {
    EXPECT_STRNE(error.what(), "");
  }
}

CLAIM(Sampler, WorksForBatchesOfAnySize) {
  for (const std::int64_t batch_size :
       {std::int64_t{1}, kRows - 1, kRows, 10 * kRows, std::int64_t{1} << 40}) {
    SampleRequest other = request();
    other.batch_size = batch_size;
    const Rows order = walked(*sampler_, other);

    EXPECT_EQ(strangers(order, rows_), Rows()) << "batches of " << batch_size;
    if (GetParam().each_row_once) {
      EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), rows_.begin(), rows_.end()))
          << "batches of " << batch_size;
    }
  }
}

CLAIM(Sampler, SeveralThreadsMayFillAtOnce) {
  const auto order = sampler_->order(request());
  const Rows expected = walked(*order);
  constexpr std::size_t kThreads = 4;
  std::vector<Rows> got(kThreads, Rows(expected.size()));

  const auto errors = at_once(kThreads, [&](std::size_t thread) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      for (std::size_t at = 0; at < expected.size(); ++at)
        order->fill(static_cast<std::int64_t>(at), std::span(got[thread]).subspan(at, 1));
    }
  });

  EXPECT_EQ(errors, kNoErrors);
  for (const Rows& rows : got)
    EXPECT_EQ(rows, expected);
}

CLAIM(Sampler, DoesNotWriteToTheData) {
  const MatrixRows::Matrices& matrices = reader_.matrices();
  const auto tensors = [&] {
    std::vector<at::Tensor> all = matrices.inputs;
    all.insert(all.end(), matrices.targets.begin(), matrices.targets.end());
    all.insert(all.end(), {matrices.weights, matrices.groups, matrices.timestamps});
    return all;
  };
  std::vector<at::Tensor> before;
  for (const at::Tensor& tensor : tensors())
    before.push_back(tensor.clone());

  walked(*sampler_, request());

  expect_same(tensors(), before, "tensor");
}

CLAIM(Sampler, OrdersPlainRowsOrSaysWhatItNeeds) {
  const MatrixRows plain(plain_data(kRows));
  SampleRequest bare = request();
  bare.reader = &plain;
  try {
    EXPECT_EQ(strangers(walked(*sampler_, bare), rows_), Rows());
  } catch (const DataError& error) {
    EXPECT_STRNE(error.what(), "");
  }
}

}  // namespace treadle::testing
