#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/core/data/data_provider.h>

#include "array_options.h"
#include "array_reader.h"

namespace treadle::arrays {

/// The data provider `npy`: arrays in NumPy's .npy files, one row per sample; random access through
/// RowReader, from memory, from mapped files or in chunks. Parameters: npy.schema.json; how files
/// are read: README.md.
///
/// Its state is what the training files taught: the inputs with their columns, the class names and
/// what stands for them, and the names of the files, so that other ones can take their place.
class NpyData final : public DataProvider {
 public:
  explicit NpyData(const Config& config);
  ~NpyData() override;

 private:
  /// The files of a training, as its document named them.
  struct TrainingFiles {
    nlohmann::json inputs;
    nlohmann::json target;
  };

  ArrayOptions later_options(OpenRequest::Purpose purpose) const;
  ArrayOptions options_in(const std::filesystem::path& folder, OpenRequest::Purpose purpose) const;

  void do_open(const OpenRequest& request) override;
  const DataSpec& do_spec() const override { return rows_->spec(); }
  std::string do_content_hash() const override { return content_hash_; }
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void* do_ask(std::string_view interface_id) override;

  ArrayOptions options_;
  TrainingFiles named_;                          // by this object's parameters
  std::optional<TrainingFiles> training_;        // after open() or load_state()
  std::optional<ArrayDescription> description_;  // likewise
  std::optional<ArrayRows> rows_;                // after open()
  std::string content_hash_;
};

}  // namespace treadle::arrays
