#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/Device.h>

#include <treadle/engine/session.h>

namespace treadle::engine {

/// The rows of a training by their names, and how far the parts that were set aside are read. One
/// training thread; the sources outlive it.
class LoopRows {
 public:
  LoopRows(const SessionSetup& setup, c10::Device device);

  /// The next batch of a part, on the device. Passes follow one another.
  Batch next(std::string_view part);
  /// One pass in the order of the data, as it comes from the source: for an evaluation.
  std::unique_ptr<BatchStream> to_evaluate(std::string_view rows) const;
  /// The same with all of the preparation done, on the device.
  std::unique_ptr<BatchStream> read(std::string_view rows) const;

  void save_in(StateDict& state) const;
  void load_from(const StateDict& state);

 private:
  struct Part {
    BatchSource* source = nullptr;
    std::int64_t taken = 0;  // batches, over all passes
    std::unique_ptr<BatchStream> stream = nullptr;
  };

  const SessionSetup& setup_;
  const c10::Device device_;
  std::map<std::string, Part, std::less<>> parts_;
};

}  // namespace treadle::engine
