#pragma once

#include <cstdint>
#include <string>

#include <treadle/base/config.h>
#include <treadle/base/random.h>
#include <treadle/core/data/transform.h>

namespace treadle::augmentation {

/// The base of this plugin's transforms. Nearly all of them learn from the rows only the
/// specification of inputs and targets; of targets they change masks alone. Their draws are a
/// function of the batch's seed and of their own stream, whoever prepares the batch. They work on a
/// device unless they move masks: where they choose something for each row, the host draws it, the
/// same on every device.
///
/// The stream's name is the component's name and its place in the document, "noise/transforms/1":
/// two of them in one chain draw different numbers, and the same document the same ones. A
/// component made without a document has no place; give such ones different pointers (Config).
class Augmentation : public Transform {
 public:
  ~Augmentation() override;

 protected:
  Augmentation(const Config& config, std::string component);

  const std::string& component() const { return component_; }

  /// What fit() saw: inputs and targets.
  const DataSpec& before() const { return before_; }

  /// The random bits for one batch; `part` tells apart those of several inputs.
  RandomBits draws(const ApplyContext& context, std::uint64_t part = 0) const {
    return RandomStreams(context.seed).bits(stream_, {part});
  }
  /// The seed of what a device draws for itself.
  std::uint64_t device_seed(const ApplyContext& context, std::uint64_t part) const {
    return RandomStreams(context.seed).seed(stream_, {part});
  }

 private:
  /// Works out what to do with data like this. Throws DataError.
  virtual void prepare(const DataSpec& before) = 0;
  /// Learns from rows, behind prepare(), and stores what it has learned.
  virtual void learn(const RowReader& /*reader*/, const RowList& /*training_rows*/) {}
  virtual void store(StateDict& /*state*/) const {}
  virtual void restore(const StateDict& /*state*/) {}
  /// As do_apply(), for a batch that has as many inputs as prepare() has seen.
  virtual void change(Batch& batch, const ApplyContext& context) const = 0;

  void do_fit(const RowReader& reader, const RowList& training_rows) final;
  void do_apply(Batch& batch, const ApplyContext& context) const final;
  bool do_works_on_device() const override { return true; }
  StateDict do_state() const final;
  void do_load_state(const StateDict& state) final;

  std::string component_;
  std::string stream_;
  DataSpec before_;
};

}  // namespace treadle::augmentation
