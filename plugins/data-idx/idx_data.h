#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/abilities/source_hash.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/matrix_rows.h>

namespace treadle::idx {

/// The data provider `idx`: an array in an IDX file and the labels in another, both whole in
/// memory. Parameters: idx.schema.json; types and shapes: README.md.
///
/// Its state is what the training files taught: the shape of a row, the classes, and the files'
/// names, so that other ones can take their place.
class IdxData final : public DataProvider {
 public:
  explicit IdxData(const Config& config);
  ~IdxData() override;

 private:
  struct Files {
    std::filesystem::path inputs;
    std::optional<std::filesystem::path> labels;
  };
  struct Description {
    PortSpec input;
    TargetSpec target;
    std::vector<std::int64_t> labels;  ///< of classes: the value of each in the file
  };
  class Source final : public SourceHash {
   public:
    explicit Source(std::string hash) : hash_(std::move(hash)) {}

   private:
    std::string do_source_hash() const override { return hash_; }

    std::string hash_;
  };

  std::filesystem::path labels_file() const;
  void read_inputs(MatrixRows::Matrices& matrices);
  void read_labels(const OpenRequest& request, MatrixRows::Matrices& matrices);
  void number_classes(at::Tensor& labels, const std::string& shown);

  void do_open(const OpenRequest& request) override;
  const DataSpec& do_spec() const override { return rows_->spec(); }
  std::string do_content_hash() const override { return rows_->content_hash(); }
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void* do_ask(std::string_view interface_id) override;

  Files named_;  // by this object's parameters
  std::optional<std::vector<std::string>> classes_;
  std::int64_t max_bytes_ = 0;
  std::optional<Files> training_;           // after load_state()
  std::optional<Description> description_;  // after open() or load_state()
  std::optional<MatrixRows> rows_;          // after open()
  std::optional<Source> source_;
};

}  // namespace treadle::idx
