#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include <ATen/core/Tensor.h>

#include <treadle/core/components/state_dict.h>

namespace treadle::fuzz {

/// A folder for the time of the process.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "treadle-fuzz-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

/// The same dtype, sizes and bits.
bool same_tensor(const at::Tensor& a, const at::Tensor& b);
/// The same values, tensors and parts.
bool same_state(const StateDict& a, const StateDict& b);

}  // namespace treadle::fuzz
