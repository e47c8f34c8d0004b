#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>

#include "picture_form.h"

namespace treadle::images {

/// The policy for images that cannot be decoded.
enum class Broken : std::uint8_t { kError, kSkip };

/// The parameters of `images`, as images.schema.json describes them.
struct ImageOptions {
  explicit ImageOptions(const Config& config);

  std::filesystem::path path;  ///< a folder, a list, or an image to predict
  std::string image_column;    ///< of a list; empty: "path", or else the first
  std::vector<std::string> targets;
  std::string mask_column;   ///< empty: no masks
  std::string group_column;  ///< empty: no groups
  std::optional<std::vector<std::string>> classes;
  std::optional<std::int64_t> ignore_index;  ///< the value of a mask that has no weight
  PictureForm form;
  Broken broken = Broken::kError;
  std::size_t cache = 0;  ///< bytes
};

}  // namespace treadle::images
