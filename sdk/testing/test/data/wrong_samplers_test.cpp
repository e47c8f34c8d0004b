#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/random.h>
#include <treadle/testing/data/sampler_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_samplers {
namespace {

using Rows = std::vector<std::int64_t>;
using Request = const SampleRequest&;

Rows shuffled(Request request, std::uint64_t seed) {
  Rows rows(request.rows.size());
  rows_shuffled(request.rows, seed)->fill(0, rows);
  return rows;
}

/// Shuffles. `change` makes it wrong.
class Listing final : public Sampler {
 public:
  using Change = std::function<void(Rows& rows, Request request)>;
  using Count = std::function<std::int64_t(std::int64_t rows)>;
  Listing(Change change, Count count) : change_(std::move(change)), count_(std::move(count)) {}

 private:
  std::int64_t do_samples(std::int64_t rows) const override { return count_ ? count_(rows) : rows; }
  std::unique_ptr<const SampleOrder> do_order(Request request) const override {
    Rows rows = shuffled(request, request.seed);
    if (change_)
      change_(rows, request);
    return rows_listed(std::move(rows));
  }

  Change change_;
  Count count_;
};

/// Row after row, whatever position it is asked for.
class Cursor final : public SampleOrder {
 public:
  explicit Cursor(Rows rows) : rows_(std::move(rows)) {}

 private:
  std::int64_t do_size() const override { return static_cast<std::int64_t>(rows_.size()); }
  void do_fill(std::int64_t begin, std::span<std::int64_t> rows) const override {
    // Other threads get what they ask for, or another claim would fail as well.
    std::size_t at = static_cast<std::size_t>(begin);
    if (mine_.is_mine())
      at = begin == 0 ? 0 : next_;
    for (std::int64_t& row : rows)
      row = rows_[at++ % rows_.size()];
    if (mine_.is_mine())
      next_ = at;
  }

  Rows rows_;
  OneThread mine_;
  mutable std::size_t next_ = 0;
};

/// Gives rows only to the thread it was made on.
class ForOneThread final : public SampleOrder {
 public:
  explicit ForOneThread(Rows rows) : rows_(std::move(rows)) {}

 private:
  std::int64_t do_size() const override { return static_cast<std::int64_t>(rows_.size()); }
  void do_fill(std::int64_t begin, std::span<std::int64_t> rows) const override {
    if (!mine_.is_mine())
      throw std::logic_error("two threads at once");
    std::copy_n(rows_.begin() + begin, rows.size(), rows.begin());
  }

  Rows rows_;
  OneThread mine_;
};

template <typename Order>
class Making final : public Sampler {
  std::unique_ptr<const SampleOrder> do_order(Request request) const override {
    return std::make_unique<Order>(shuffled(request, request.seed));
  }
};

SamplerCase listing(std::string name, const Listing::Change& change = {},
                    const Listing::Count& count = {}) {
  return {std::move(name), [change, count] { return std::make_unique<Listing>(change, count); }};
}

std::vector<Wrong<SamplerCase>> all() {
  const auto often = [](SamplerCase one) {
    one.each_row_once = false;
    return one;
  };
  return {
      {listing("HasAMemory",
               [count = std::make_shared<int>(0)](Rows& rows, Request) {
                 std::rotate(rows.begin(),
                             rows.begin() + ++*count % 5 % static_cast<int>(rows.size()),
                             rows.end());
               }),
       {"TheOrderIsAFunctionOfTheRequest", "PositionsMayBeAskedForInAnyOrder"}},
      {{"GoesOnWhereItWas", [] { return std::make_unique<Making<Cursor>>(); }},
       {"PositionsMayBeAskedForInAnyOrder"}},
      {listing("CountsDifferently", {},
               [count = std::make_shared<std::int64_t>(0)](std::int64_t rows) {
                 return rows < 1000000 ? rows : rows + ++*count;
               }),
       {"HowManySamplesIsAFunctionOfTheRowsAlone"}},
      {listing("NumbersTheRowsAnew",
               [](Rows& rows, Request request) {
                 // Right, where the rows are all there are, or one.
                 if (rows.size() % 2 == 0) {
                   for (std::size_t i = 0; i < rows.size(); ++i)
                     rows[i] = static_cast<std::int64_t>((i + request.seed) % rows.size());
                 }
               }),
       {"TakesTheRowsOfTheRequestAndNoOthers"}},
      {listing("TakesARowTwice",
               [](Rows& rows, Request request) {
                 if (request.batch_size == 8)
                   rows.back() = rows.front();
               }),
       {"EachRowComesOnceIfItSaysSo"}},
      {often(listing("TakesEachOnceAndDoesNotSaySo")), {"EachRowComesOnceIfItSaysSo"}},
      {listing("IgnoresTheSeed", [](Rows& rows, Request request) { rows = shuffled(request, 1); }),
       {"TheSeedDecidesWhatIsRandom"}},
      {listing("EndsWithTheThirdPass",
               [](Rows&, Request request) {
                 if (request.pass > 2)
                   throw std::out_of_range("pass");
               }),
       {"LaterPassesWorkLikeTheFirst"}},
      {listing("NeedsTwoRows",
               [](Rows& rows, Request) {
                 if (rows.size() < 2)
                   throw std::out_of_range("rows");
               }),
       {"WorksForOneRow"}},
      {listing("LosesAShortBatch",
               [](Rows& rows, Request request) {
                 if (request.batch_size > static_cast<std::int64_t>(rows.size()))
                   std::fill(rows.begin(), rows.end(), rows.front());
               }),
       // One row alone cannot lose any.
       {"WorksForBatchesOfAnySize"}},
      {{"ForOneThread", [] { return std::make_unique<Making<ForOneThread>>(); }},
       {"SeveralThreadsMayFillAtOnce"}},
      {listing("TurnsTheTimesAround",
               [](Rows&, Request request) {
                 const at::Tensor times = request.reader->timestamps();
                 if (times.defined())
                   times.neg_();
               }),
       {"DoesNotWriteToTheData"}},
      {listing("NeedsLengthsAndDoesNotSaySo",
               [](Rows&, Request request) { request.reader->lengths(0).max(); }),
       {"OrdersPlainRowsOrSaysWhatItNeeds"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, SamplerContract, ::testing::Values(listing("Listing")), CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, SamplerContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_samplers

std::vector<Defect> sampler_defects() {
  return defects_of("SamplerContract", wrong_samplers::all());
}

}  // namespace treadle::testing
