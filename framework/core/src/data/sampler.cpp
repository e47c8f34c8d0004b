#include <treadle/core/data/sampler.h>

#include <algorithm>
#include <string>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {
namespace {

class InOrder final : public SampleOrder {
 public:
  explicit InOrder(RowList rows) : rows_(std::move(rows)) {}

 private:
  std::int64_t do_size() const override { return static_cast<std::int64_t>(rows_.size()); }
  void do_fill(std::int64_t begin, std::span<std::int64_t> rows) const override {
    rows_.copy(static_cast<std::size_t>(begin), rows);
  }

  RowList rows_;
};

class Shuffled final : public SampleOrder {
 public:
  Shuffled(RowList rows, std::uint64_t seed)
      : rows_(std::move(rows)), permutation_(static_cast<std::int64_t>(rows_.size()), seed) {}

 private:
  std::int64_t do_size() const override { return permutation_.size(); }
  void do_fill(std::int64_t begin, std::span<std::int64_t> rows) const override {
    // In two passes: reads of rows_ that wait for nothing but the memory overlap.
    for (std::int64_t& row : rows)
      row = permutation_[begin++];
    for (std::int64_t& row : rows)
      row = rows_[static_cast<std::size_t>(row)];
  }

  RowList rows_;
  Permutation permutation_;
};

class Listed final : public SampleOrder {
 public:
  explicit Listed(std::vector<std::int64_t> rows) : rows_(std::move(rows)) {}

 private:
  std::int64_t do_size() const override { return static_cast<std::int64_t>(rows_.size()); }
  void do_fill(std::int64_t begin, std::span<std::int64_t> rows) const override {
    std::copy_n(rows_.begin() + begin, rows.size(), rows.begin());
  }

  std::vector<std::int64_t> rows_;
};

}  // namespace

SampleOrder::~SampleOrder() = default;

void SampleOrder::fill(std::int64_t begin, std::span<std::int64_t> rows) const {
  TREADLE_EXPECTS(begin >= 0 && begin + static_cast<std::int64_t>(rows.size()) <= size(),
                  "positions lie within the pass");
  do_fill(begin, rows);
}

Sampler::~Sampler() = default;

std::int64_t Sampler::samples(std::int64_t rows) const {
  TREADLE_EXPECTS(rows >= 1, "a sampler needs rows");
  const std::int64_t samples = call_plugin(*this, "samples", [&] { return do_samples(rows); });
  if (samples < 1)
    refuse_result(*this, "samples",
                  "returned " + std::to_string(samples) + " for " + std::to_string(rows) + " rows");
  return samples;
}

std::unique_ptr<const SampleOrder> Sampler::order(const SampleRequest& request) const {
  TREADLE_EXPECTS(request.reader != nullptr && !request.rows.empty() && request.batch_size >= 1,
                  "a sampler needs rows");
  std::unique_ptr<const SampleOrder> order =
      call_plugin(*this, "order", [&] { return do_order(request); });
  if (order == nullptr)
    refuse_result(*this, "order", "returned no order");
  const std::int64_t expected = samples(static_cast<std::int64_t>(request.rows.size()));
  if (order->size() != expected) {
    refuse_result(*this, "order",
                  "returned an order of " + std::to_string(order->size()) +
                      " positions, and samples() is " + std::to_string(expected));
  }
  return order;
}

std::unique_ptr<const SampleOrder> rows_in_order(RowList rows) {
  return std::make_unique<InOrder>(std::move(rows));
}

std::unique_ptr<const SampleOrder> rows_shuffled(RowList rows, std::uint64_t seed) {
  return std::make_unique<Shuffled>(std::move(rows), seed);
}

std::unique_ptr<const SampleOrder> rows_listed(std::vector<std::int64_t> rows) {
  return std::make_unique<Listed>(std::move(rows));
}

}  // namespace treadle
