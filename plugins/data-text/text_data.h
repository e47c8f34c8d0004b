#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/tokenizer.h>

#include "text_files.h"

namespace treadle::text {

/// The data provider `text`: texts in files, as tokens, in memory. Parameters: text.schema.json.
///
/// Offers its Tokenizer beside its rows. Its state is what the training taught: the vocabulary, the
/// classes or tags, and whether there were several documents.
class TextData final : public DataProvider {
 public:
  TextData(const Config& config, const ComponentContext& context);
  ~TextData() override;

 private:
  /// The target of a document.
  enum class Labels { kNone, kClasses, kNumbers, kTags };

  /// What the data for training taught.
  struct Description {
    Labels labels = Labels::kNone;
    std::vector<std::string> names;   ///< of classes or tags
    bool has_documents = false;       ///< rows are tokens, and have groups
    std::vector<std::string> tokens;  ///< their names
  };

  void do_open(const OpenRequest& request) override;
  const DataSpec& do_spec() const override { return rows_->spec(); }
  std::string do_content_hash() const override { return hash_; }
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void* do_ask(std::string_view interface_id) override;

  void describe(const Documents& documents, const OpenRequest& request);
  std::unique_ptr<RowReader> token_rows(Documents documents, const OpenRequest& request) const;
  std::unique_ptr<RowReader> document_rows(Documents documents, const OpenRequest& request) const;
  /// The tokens of one piece of a document; errors name its place.
  std::vector<std::int64_t> encoded(const Documents& documents, const Document& document,
                                    std::string_view piece) const;
  PortSpec token_port(std::vector<std::int64_t> shape) const;

  const TextOptions options_;
  const std::unique_ptr<Tokenizer> tokenizer_;
  Description description_;
  bool is_described_ = false;
  std::unique_ptr<RowReader> rows_;  // after open()
  std::string hash_;
};

}  // namespace treadle::text
