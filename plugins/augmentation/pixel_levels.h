#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/row_list.h>
#include <treadle/core/data/row_reader.h>

#include "color.h"
#include "image_choice.h"

namespace treadle::augmentation {

/// The number for white in images: 255 for bytes; for others "max_value", or, without it, 1
/// where the training rows lie in [0, 1] and 255 where they lie in [0, 255].
class PixelLevels {
 public:
  /// `component` is the transform's name, for messages.
  PixelLevels(const Config& config, std::string component);

  /// Reads some of the rows. Throws a DataError where they lie in neither range and "max_value" is
  /// not given.
  void learn(const RowReader& reader, const RowList& rows,
             const std::vector<std::optional<ImageShape>>& images);
  void store(StateDict& state) const;
  void restore(const StateDict& state);

  using Change = std::function<at::Tensor(const color::Levels& levels)>;

  /// Changes the rows `rows` of images [N, channels, height, width], in place. Levels of bytes are
  /// cut off, not rounded, as torchvision does.
  void change(const at::Tensor& images, const std::vector<std::int64_t>& rows,
              const Change& change) const;

 private:
  std::string component_;
  double white_ = 0;  // of images that are not bytes; 0: not known yet
};

/// The elements of `of_rows` at `rows`, [n, 1, 1, 1], with the dtype of levels and on their device.
at::Tensor factors_of(const std::vector<double>& of_rows, const std::vector<std::int64_t>& rows,
                      const color::Levels& levels);

}  // namespace treadle::augmentation
