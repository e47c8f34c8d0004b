#include "row_supply.h"

#include <utility>

namespace treadle::engine {
namespace {

class Rows final : public RowSupply {
 public:
  Rows(const RowReader& reader, RowList rows, Batching batching, RandomStreams random)
      : reader_(reader), rows_(std::move(rows)), batching_(batching), random_(random) {}

 private:
  std::optional<std::int64_t> batches_per_pass() const override {
    return batching_.batches(batching_.samples(static_cast<std::int64_t>(rows_.size())));
  }
  bool reads() const override { return false; }

  std::shared_ptr<const Section> section(const Place& place) override {
    if (newest_ == nullptr || (pass_ != place.pass && batching_.varies())) {
      const SampleRequest request{
          &reader_, rows_, batching_.batch_size, place.pass,
          random_.seed("shuffle", {static_cast<std::uint64_t>(place.pass)})};
      newest_ = std::make_shared<Section>(Section{&reader_, nullptr, batching_.order(request), 0});
      pass_ = place.pass;
    }
    return newest_;
  }

  void restart(const Place&) override {}
  StateDict mark(const Place&) const override { return {}; }
  void load_mark(const Place&, const StateDict&) override {}
  void forget_before(const Place&) override {}

  const RowReader& reader_;
  const RowList rows_;
  const Batching batching_;
  const RandomStreams random_;
  std::shared_ptr<const Section> newest_;
  std::int64_t pass_ = 0;
};

}  // namespace

std::unique_ptr<const SampleOrder> Batching::order(const SampleRequest& request) const {
  if (sampler != nullptr)
    return sampler->order(request);
  return shuffle ? rows_shuffled(request.rows, request.seed) : rows_in_order(request.rows);
}

std::unique_ptr<RowSupply> supply_of_rows(const RowReader& reader, RowList rows, Batching batching,
                                          RandomStreams random) {
  return std::make_unique<Rows>(reader, std::move(rows), batching, random);
}

}  // namespace treadle::engine
