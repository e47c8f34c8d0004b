#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/abilities/data_notes.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/abilities/source_hash.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/group_names.h>

#include "image_options.h"
#include "image_reader.h"
#include "image_rows.h"

namespace treadle::images {

/// The data provider `images`: JPEG, PNG and WebP files in folders or lists, one a row, decoded
/// when they are gathered. Parameters: images.schema.json; formats and resizing: README.md.
///
/// Its state is what the training files taught: the images' size, and the class names.
class ImageData final : public DataProvider {
 public:
  explicit ImageData(const Config& config);
  ~ImageData() override;

 private:
  /// The columns of the list, or the path and the class.
  class Texts final : public SourceColumns {
   public:
    Texts(ImageTable table, std::vector<std::size_t> kept)
        : table_(std::move(table)), kept_(std::move(kept)) {}

   private:
    std::vector<std::vector<std::string>> do_texts(
        const std::vector<std::string>& names) const override;

    ImageTable table_;
    std::vector<std::size_t> kept_;
  };

  class Source final : public SourceHash {
   public:
    explicit Source(std::string hash) : hash_(std::move(hash)) {}

   private:
    std::string do_source_hash() const override { return hash_; }

    std::string hash_;
  };

  class Groups final : public GroupNames {
   public:
    explicit Groups(std::vector<std::string> names) : names_(std::move(names)) {}

   private:
    std::string do_name_of(std::int64_t group) const override {
      return names_.at(static_cast<std::size_t>(group));
    }

    std::vector<std::string> names_;
  };

  /// How many images were left out.
  class Notes final : public DataNotes {
   public:
    Notes(std::vector<std::string> skipped, std::size_t images)
        : skipped_(std::move(skipped)), images_(images) {}

   private:
    std::vector<std::string> do_notes() const override;

    std::vector<std::string> skipped_;
    std::size_t images_;
  };

  void do_open(const OpenRequest& request) override;
  const DataSpec& do_spec() const override { return rows_->spec(); }
  std::string do_content_hash() const override { return content_hash_; }
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void* do_ask(std::string_view interface_id) override;

  ImageOptions options_;
  std::optional<ImageDescription> description_;  // after open() or load_state()
  std::optional<ImageRows> rows_;                // after open()
  std::optional<Texts> texts_;
  std::optional<Source> source_;
  std::optional<Notes> notes_;
  std::optional<Groups> groups_;  // where rows have groups
  std::string content_hash_;
};

}  // namespace treadle::images
