#include <optional>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/components/plugin_registry.h>

#include <treadle/table/table_data.h>

#include "stored_description.h"
#include "table_abilities.h"
#include "table_reader.h"
#include "table_stream.h"
#include "texts/text_columns.h"

namespace treadle::table {

/// What open() and load_state() leave.
class TableData::Contents {
 public:
  Contents(TableOptions options, std::vector<std::unique_ptr<Tokenizer>> tokenizers,
           std::function<TableProfile()> profile)
      : options_(std::move(options)),
        text_columns_(options_.texts, std::move(tokenizers)),
        counts_(std::move(profile)) {}

  const TableOptions& options() const { return options_; }
  const std::optional<TableDescription>& description() const { return description_; }
  const std::optional<StreamedTable>& stream() const { return stream_; }
  const DataSpec& spec() const { return stream_ ? stream_->spec() : rows_->spec(); }
  std::string content_hash() const {
    return stream_ ? stream_->content_hash() : rows_->content_hash();
  }

  /// `source` was made by `make`, which makes further ones.
  void open(std::unique_ptr<TableSource> source, MakeSource make, const OpenRequest& request);
  StateDict state() const;
  void load(const StateDict& state);
  void* ask(std::string_view interface_id);

 private:
  TableOptions options_;
  TextColumns text_columns_;
  TableCounts counts_;
  std::optional<TableDescription> description_;  // after open() or load_state()
  // After open():
  std::shared_ptr<const TableSource> source_;  // for the places of rows
  std::optional<MatrixRows> rows_;             // where it is in memory
  std::optional<StreamedTable> stream_;        // where it is not
  std::optional<TableTexts> texts_;
  std::optional<TableHash> hash_;
  std::optional<TableClocks> clocks_;
  std::optional<TableOrigins> origins_;
  std::optional<TableGroups> groups_;  // where rows have groups
};

void TableData::Contents::open(std::unique_ptr<TableSource> source, MakeSource make,
                               const OpenRequest& request) {
  if (!options_.in_memory) {
    stream_.emplace(std::move(source), make, options_, request,
                    description_ ? &*description_ : nullptr);
    description_ = stream_->description();
    hash_.emplace(make, stream_->positions());
    texts_.emplace(std::move(make), stream_->positions());
    origins_.emplace(description_->layout);
    return;
  }
  Table table = read_table(*source, options_, request, description_ ? &*description_ : nullptr);
  if (!text_columns_.empty())
    text_columns_.add_inputs(*make(), table);
  source_ = std::move(source);
  table.matrices.describe_row = [places = source_, kept = table.positions](std::int64_t row) {
    return places->place_of(kept->position_of(row));
  };
  description_ = std::move(table.description);
  hash_.emplace(make, table.positions);
  texts_.emplace(std::move(make), table.positions);
  origins_.emplace(description_->layout);
  clocks_.emplace(std::move(table.utc_offsets));
  if (table.matrices.groups.defined())
    groups_.emplace(std::move(table.group_names));
  rows_.emplace(std::move(table.matrices));
}

StateDict TableData::Contents::state() const {
  StateDict state;
  if (description_) {
    store(*description_, state);
    text_columns_.store(state);
  }
  return state;
}

void TableData::Contents::load(const StateDict& state) {
  description_ = stored_description(state);
  if (description_->layout.texts.size() != options_.texts.size())
    throw StorageError("stored description of the data is of other \"texts\"");
  text_columns_.load(state);
}

void* TableData::Contents::ask(std::string_view interface_id) {
  if (interface_id == RowReader::kInterface && rows_)
    return static_cast<RowReader*>(&*rows_);
  if (interface_id == SourceHash::kInterface && hash_)
    return static_cast<SourceHash*>(&*hash_);
  if (interface_id == SourceColumns::kInterface && texts_)
    return static_cast<SourceColumns*>(&*texts_);
  if (interface_id == LocalTimes::kInterface && clocks_)
    return static_cast<LocalTimes*>(&*clocks_);
  if (interface_id == ColumnOrigins::kInterface && origins_)
    return static_cast<ColumnOrigins*>(&*origins_);
  if (interface_id == TableProfiler::kInterface)
    return static_cast<TableProfiler*>(&counts_);
  if (interface_id == GroupNames::kInterface && groups_)
    return static_cast<GroupNames*>(&*groups_);
  return nullptr;
}

TableData::TableData(const Config& config, const ComponentContext& context) {
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  if (config.has("texts")) {
    for (const Config& text : config.children("texts"))
      tokenizers.push_back(make_nested<Tokenizer>(context, text, "tokenizer"));
  }
  contents_ = std::make_unique<Contents>(TableOptions(config), std::move(tokenizers),
                                         [this] { return do_profile(); });
}

TableData::~TableData() = default;

const TableOptions& TableData::table_options() const {
  return contents_->options();
}

TableProfile TableData::do_profile() const {
  return profile_table(*do_source(SourceUse::kProfile), table_options().missing_values,
                       table_options().date_format);
}

void TableData::do_open(const OpenRequest& request) {
  if (const std::string& key = table_options().unused_date_key; !key.empty()) {
    throw UsageError(quote_text(key) +
                     " has no effect without \"dates\" or \"time\", the columns with dates");
  }
  const bool is_trained = contents_->description().has_value();
  if (request.purpose != OpenRequest::Purpose::kTrain && !is_trained)
    throw ContractViolation("a table to evaluate or predict needs the state of a training");
  const SourceUse use = is_trained ? SourceUse::kTrained : SourceUse::kTraining;
  contents_->open(
      do_source(use), [this, use] { return do_source(use); }, request);
}

const DataSpec& TableData::do_spec() const {
  return contents_->spec();
}

std::string TableData::do_content_hash() const {
  return contents_->content_hash();
}

std::unique_ptr<BatchStream> TableData::do_stream(std::int64_t batch_size) const {
  const std::optional<StreamedTable>& stream = contents_->stream();
  return stream ? stream->stream(batch_size) : DataProvider::do_stream(batch_size);
}

std::optional<std::int64_t> TableData::do_stream_rows() const {
  const std::optional<StreamedTable>& stream = contents_->stream();
  return stream ? std::optional(stream->rows()) : std::nullopt;
}

StateDict TableData::do_state() const {
  return contents_->state();
}

void TableData::do_load_state(const StateDict& state) {
  contents_->load(state);
}

void* TableData::do_ask(std::string_view interface_id) {
  return contents_->ask(interface_id);
}

}  // namespace treadle::table
