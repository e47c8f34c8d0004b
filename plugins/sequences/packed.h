#pragma once

#include <cstdint>
#include <memory>

#include <treadle/base/config.h>
#include <treadle/core/data/sequence_provider.h>

namespace treadle::sequences {

/// `packed`: consecutive rows as a sample, each with its own target; documents one after the other,
/// as many as fit.
///
/// An input of shape {…} becomes {length, …}, a target's positions gain the dimension of the steps,
/// weights of rows become weights of positions. Rows with groups (documents) get a further input,
/// "segments": which document of the sample each position belongs to, from 0. Layers that take
/// segments keep documents apart.
///
/// samples() reads all rows once and keeps a copy of them; samples are copied from that.
class Packed final : public SequenceProvider {
 public:
  explicit Packed(const Config& config);
  ~Packed() override;

 private:
  std::unique_ptr<SampleReader> do_samples(const RowReader& rows) const override;

  std::int64_t length_;
  std::int64_t stride_;
  std::int64_t evaluation_stride_;
};

}  // namespace treadle::sequences
