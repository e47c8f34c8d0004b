#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <treadle/core/batch.h>
#include <treadle/core/data_spec.h>
#include <treadle/core/transform.h>

namespace treadle::engine {

struct PreparationOptions {
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< the run's
  /// Batches are sent to a device, or are treated as if they were (DeviceInfo::tensors_only).
  bool for_device = false;
  /// The group of each row by Batch::rows, in the numbers of the training: int64 [N]. Undefined:
  /// as batches have them.
  at::Tensor groups = {};
};

/// The steps between data and model: the document's transforms in their order, and one step that
/// converts images of bytes to numbers, as late as the transforms allow.
///
/// A batch is sent to its device in front of the last run of steps that all work there. An image of
/// bytes is so sent in a quarter of the memory of its numbers, and cropped and scaled on the
/// device. Where all inputs are tables or single numbers, all steps stay on the host, which
/// prepares such batches ahead of their use at no cost to the device.
///
/// A handle to the transforms, which outlive it. Const functions are called from any thread.
class BatchPreparation {
 public:
  /// Nothing is done.
  BatchPreparation() = default;
  /// For batches of `data`. Expects fitted transforms. Throws a DataError when one of them cannot
  /// work on such data.
  BatchPreparation(const DataSpec& data, std::vector<const Transform*> transforms,
                   PreparationOptions options = {});

  /// The specification of the model's inputs.
  const DataSpec& spec() const { return spec_; }

  /// Tensors of a batch that is prepared again and again, kept for the next time.
  struct Memory {
    std::vector<at::Tensor> bytes;    // one per input that was bytes
    std::vector<at::Tensor> numbers;  // one per input that will be
  };
  /// Puts the bytes of last time back into `batch`, for the next gather to write to.
  void put_back(Batch& batch, Memory& memory) const;

  /// The part that is done on the host.
  void before_transfer(Batch& batch, const ApplyContext& context, Memory& memory) const;
  /// The part that is done on the device, on this thread's stream. Changes inputs alone.
  void after_transfer(Batch& batch, const ApplyContext& context) const;
  bool has_host_part() const { return device_from_ > 0; }
  bool has_device_part() const { return device_from_ < steps_.size(); }

  /// How many bytes the inputs of a batch have more behind after_transfer() than in front of it.
  std::int64_t growth_on_device(const Batch& batch) const;

  /// Predictions of a target of numbers, in the model's units, become the data's. On the CPU.
  /// `groups`: of the rows, as Batch::groups.
  at::Tensor inverted(at::Tensor predictions, std::string_view target,
                      const at::Tensor& groups) const;

 private:
  void to_numbers(Batch& batch, Memory* memory) const;
  void apply(std::size_t step, Batch& batch, const ApplyContext& context, Memory* memory) const;

  c10::ScalarType dtype_ = c10::ScalarType::Float;
  at::Tensor groups_;                    // of all rows; undefined: batches have theirs
  std::vector<const Transform*> steps_;  // null: bytes become numbers
  std::size_t device_from_ = 0;          // the first step that is done on the device
  DataSpec spec_;
};

}  // namespace treadle::engine
