#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <treadle/base/error.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/transform.h>

namespace treadle::engine {

struct PreparationOptions {
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< the run's
  /// Numbers stay as the last transform leaves them: for what is fitted behind it.
  bool keeps_float64 = false;
  /// Batches are sent to a device, or are treated as if they were (DeviceInfo::tensors_only).
  bool for_device = false;
  /// The group of each row by Batch::rows, in the numbers of the training: int64 [N]. Undefined:
  /// as batches have them.
  at::Tensor groups = {};
};

/// A number that the run's dtype cannot hold. `row`: as Batch::rows has it; the message is about
/// its column, for a reader to put the row's place in front.
class NumberTooLarge : public DataError {
 public:
  NumberTooLarge(std::int64_t row, const std::string& message);
  ~NumberTooLarge() override;

  std::int64_t row() const { return row_; }

 private:
  std::int64_t row_;
};

/// The steps between data and model: the document's transforms in their order, one step that
/// converts images of bytes to numbers, as late as the transforms allow, and last one that rounds
/// to the run's dtype. Up to there numbers are as exact as the data has them, and what transforms
/// are given of tables and targets is float64: a second of the year 2023 or a price of 1e9 is told
/// from its neighbour when its mean has been taken away, not before.
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
    /// What one tensor of a batch was and became.
    struct Converted {
      at::Tensor gathered;  // as it was read, while the batch has another one in its place
      at::Tensor float64;   // memory for what transforms are given
      at::Tensor rounded;   // memory for what the model is given
    };
    std::vector<Converted> inputs;
    std::vector<Converted> targets;
    std::vector<Converted> position_weights;
    Converted weights;
  };
  /// Puts what was gathered last time back into `batch`, for the next gather to write to.
  void put_back(Batch& batch, Memory& memory) const;

  /// The part that is done on the host.
  void before_transfer(Batch& batch, const ApplyContext& context, Memory& memory) const;
  /// The part that is done on the device, on this thread's stream. Changes inputs alone, and looks
  /// up the partners of mixed rows, as the host part does where it is the last.
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
  enum class Kind { kTransform, kBytesToNumbers, kToFloat64, kRound };
  struct Step {
    Kind kind = Kind::kTransform;
    const Transform* transform = nullptr;  // of kTransform
  };

  void add(Kind kind);
  void find_device_part();
  void to_numbers(Batch& batch, Memory* memory) const;
  void to_float64(Batch& batch, Memory* memory) const;
  void round(Batch& batch, Memory* memory) const;
  void apply(std::size_t step, Batch& batch, const ApplyContext& context, Memory* memory) const;

  c10::ScalarType dtype_ = c10::ScalarType::Float;
  at::Tensor groups_;           // of all rows; undefined: batches have theirs
  std::vector<char> is_table_;  // one per input of the data: it becomes float64 for transforms
  std::vector<Step> steps_;
  std::size_t device_from_ = 0;  // the first step that is done on the device
  DataSpec spec_;
};

}  // namespace treadle::engine
