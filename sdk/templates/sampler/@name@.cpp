#include <treadle/sdk.h>

#include <memory>
#include <utility>

namespace {

/// Repeated augmentation (E. Hoffer et al., "Augment Your Batch", 2020): `times` neighbouring
/// positions of a pass hold the same row. Transforms that augment change each of them differently.
class RepeatedOrder final : public treadle::SampleOrder {
 public:
  RepeatedOrder(std::unique_ptr<const treadle::SampleOrder> once, std::int64_t times)
      : once_(std::move(once)), times_(times) {}

 private:
  std::int64_t do_size() const override { return once_->size() * times_; }

  void do_fill(std::int64_t begin, std::span<std::int64_t> rows) const override {
    for (std::int64_t& row : rows)
      once_->fill(begin++ / times_, {&row, 1});
  }

  std::unique_ptr<const treadle::SampleOrder> once_;
  std::int64_t times_;
};

/// A pass over n rows has n * times positions; position i holds the row at position i / times of
/// the order below. Stateless: the order is a function of the request.
class @Name@ final : public treadle::Sampler {
 public:
  explicit @Name@(const treadle::Config& config)
      : times_(config.get<std::int64_t>("times")), shuffle_(config.get<bool>("shuffle")) {}

 private:
  std::int64_t do_samples(std::int64_t rows) const override { return rows * times_; }

  std::unique_ptr<const treadle::SampleOrder> do_order(
      const treadle::SampleRequest& request) const override {
    auto once = shuffle_ ? treadle::rows_shuffled(request.rows, request.seed)
                         : treadle::rows_in_order(request.rows);
    return std::make_unique<RepeatedOrder>(std::move(once), times_);
  }

  std::int64_t times_;
  bool shuffle_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
