#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <treadle/core/data/data_provider.h>

#include "image_options.h"
#include "image_rows.h"
#include "image_table.h"
#include "image_targets.h"

namespace treadle::images {

/// The properties of the training images that later images must match.
struct ImageDescription {
  PictureSize size;
  int channels = 3;
  std::vector<std::string> groups = {};  ///< names, by number
  std::vector<TargetDescription> targets;
};

struct OpenedImages {
  ImageDescription description;
  ImageRows::Parts rows;
  ImageTable table;
  std::vector<std::size_t> kept;         ///< the rows of the table that are rows of the data
  std::vector<std::string> group_names;  ///< by number; those of the description come first
  std::vector<std::string> skipped;      ///< in words: images that cannot be decoded
  std::string content_hash;              ///< of all bytes, names and targets
  std::string source_hash;               ///< of the images' bytes and names
};

/// Finds the images and reads each file once, on all cores: its hash, and its header, which says
/// whether it is too large and, without "size", whether all have one size. With "broken": "skip"
/// each image is decoded as well. Masks are decoded and stay in memory. Throws DataError: the first
/// few broken images in words, the rest as a number.
OpenedImages open_images(const ImageOptions& options, const OpenRequest& request,
                         const std::optional<ImageDescription>& known);

}  // namespace treadle::images
