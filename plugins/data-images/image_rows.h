#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/data_spec.h>
#include <treadle/core/data/row_reader.h>

#include "image_files.h"
#include "picture_form.h"

namespace treadle::images {

/// A target of the rows that count.
struct ImageTarget {
  /// Classes: int64 [N]; numbers: float32 or float64 [N, width]; masks: int16 [N, height, width],
  /// the index of each pixel's class, or kNoPixel where it does not count.
  at::Tensor values;
  bool is_mask = false;
  bool has_ignored = false;  ///< of masks: some pixels do not count
};

/// Images that are decoded when they are gathered. The first ones that fit into the cache are
/// decoded once: with rows in random order a cache cannot do better than to keep some and leave the
/// others alone, and so nobody waits for a lock.
///
/// Files must not change: size and time of each are compared whenever it is read.
class ImageRows final : public RowReader {
 public:
  struct Parts {
    DataSpec spec;
    PictureForm form;
    PictureSize size;  ///< of the images as they are gathered
    std::vector<std::filesystem::path> files;
    std::vector<FileStamp> stamps;
    std::vector<std::string> places;  ///< one per file, for messages; empty: the file's path
    std::vector<ImageTarget> targets;
    at::Tensor groups;  ///< int64 [N], or undefined
    std::size_t cache_bytes = 0;
  };

  explicit ImageRows(Parts parts);
  ~ImageRows() override;

  std::size_t cached_rows() const { return cached_; }

 private:
  /// The buffers of a thread that decodes.
  struct Workspace {
    std::vector<std::uint8_t> bytes;
    PictureMaker maker;
  };
  enum State : std::uint8_t { kEmpty, kFilling, kFilled };

  class Borrowed;
  friend class Borrowed;

  const DataSpec& do_spec() const override { return parts_.spec; }
  std::int64_t do_rows() const override { return static_cast<std::int64_t>(parts_.files.size()); }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override;
  at::Tensor do_targets(std::size_t target) const override;
  at::Tensor do_position_weights(std::size_t target) const override;
  at::Tensor do_groups() const override { return parts_.groups; }
  std::string do_describe_row(std::int64_t row) const override;

  void put_image(std::int64_t row, Workspace& workspace, std::uint8_t* to) const;
  void decode_image(std::int64_t row, Workspace& workspace, std::uint8_t* to) const;
  void gather_mask(const ImageTarget& target, std::span<const std::int64_t> rows, std::size_t index,
                   Batch& out) const;

  Parts parts_;
  std::size_t image_bytes_ = 0;
  std::size_t cached_ = 0;  // how many of the first rows have a place in the cache
  at::Tensor cache_;        // uint8 [cached_, channels, height, width]
  std::unique_ptr<std::atomic<std::uint8_t>[]> states_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace treadle::images
