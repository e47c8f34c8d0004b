#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/data/column_origins.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/row_list.h>
#include <treadle/host/run/compared_predictions.h>
#include <treadle/host/run/runtime.h>

#include "components/document_components.h"
#include "data/dataset.h"
#include "predict/whole_model.h"

// A finished run as rows, in parts that have a model each.
//
// A row never meets a model that was trained on it: the rows of a part are those that the plan of
// the run kept from its training. The plan is made again from data and document, as a resumed run
// does; a run whose data has changed is refused.
namespace treadle::internal {

/// The name of the one part of a file.
inline constexpr const char* kPartOfFile = "file";

/// Rows, and the model that may predict them.
struct HeldOutPart {
  std::string name;  ///< the path of its fit: "fold-1", "final"; or kPartOfFile
  RowList rows;
  bool have_validated = false;
  std::function<std::unique_ptr<WholeModel>()> model;
};

/// A run with rows that its models were not trained on.
struct OpenRun {
  std::string name;  ///< of its folder, for messages
  DataSpec spec;
  std::string data_hash;
  std::string source_hash;           // empty: not known
  nlohmann::json sequence;           ///< of its document, which makes its rows
  std::shared_ptr<const void> data;  ///< what `evaluated` borrows from
  EvaluatedRows evaluated;
  const ColumnOrigins* origins = nullptr;  ///< null: columns are what they are
  std::vector<HeldOutPart> parts;
};

/// The run's own data as its training saw it.
struct OwnData {
  OwnData(const Runtime& runtime, const ResolvedWorkflow& workflow,
          std::shared_ptr<const Dataset> opened)
      : dataset(std::move(opened)), components(runtime, workflow, *dataset) {}

  std::shared_ptr<const Dataset> dataset;
  DocumentComponents components;
};

/// The data of runs, in memory once for those that were trained on the same.
class OpenData {
 public:
  /// `instead`: the remedy in messages where a run's own rows cannot be had.
  OpenData(const Runtime& runtime, std::string instead)
      : runtime_(runtime), instead_(std::move(instead)) {}

  const std::string& instead() const { return instead_; }

  /// The data of the run `name`, with that hash. Throws a StorageError where it has changed.
  std::shared_ptr<const Dataset> of(const ResolvedWorkflow& workflow, const std::string& hash,
                                    const std::string& name);

 private:
  struct Opened {
    nlohmann::json asked;
    std::shared_ptr<const Dataset> dataset;
  };

  const Runtime& runtime_;
  std::string instead_;
  std::vector<Opened> opened_;
};

/// Of the run in `folder`, each fit that held rows out: of a cross-validation the folds, else the
/// run's model. With kTest the run's model and its test rows alone; without `from` that where there
/// is one fold that has test rows. Models are read when they are called for; so the run need not
/// have its result yet.
std::vector<HeldOutPart> held_out_parts(const Runtime& runtime, const std::filesystem::path& folder,
                                        const std::shared_ptr<OwnData>& data,
                                        std::optional<ComparedRows::From> from,
                                        const std::string& device);

/// The run's own data. Throws a DataError where the run holds no row out, a StorageError where it
/// is not finished or its data has changed.
OpenRun open_own(const Runtime& runtime, const std::filesystem::path& folder,
                 std::optional<ComparedRows::From> from, const std::string& device,
                 OpenData& opened);

/// Of a file: all its rows and the run's model, or what open_own() gives where it is the run's
/// data. `saved` may be a file that export_model() wrote, whose own data is not known.
OpenRun open_given(const Runtime& runtime, const std::filesystem::path& saved,
                   const std::filesystem::path& file, std::optional<ComparedRows::From> from,
                   const std::string& device, OpenData& opened);

}  // namespace treadle::internal
