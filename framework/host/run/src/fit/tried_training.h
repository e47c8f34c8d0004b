#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <treadle/core/validation/cross_validator.h>

#include "components/document_components.h"
#include "fit/fit.h"

/// Trainings of a few steps, which are only tried: to learn what memory and time a document takes.
namespace treadle::internal {

/// When a training that is only tried ends.
struct TriedSteps {
  std::int64_t fewest = 1;
  std::int64_t most = 1;
  std::chrono::seconds patience{0};  ///< between the two
};

/// The first `count` rows, or all.
RowList first_of(const RowList& rows, std::int64_t count);

/// Rows of a fold for a training that makes at most so many steps, and is evaluated by so many
/// workers: as many as take the memory of a whole training. Expects a plan and a batch size.
FitRows rows_to_try(const DocumentComponents& components, const Fold& fold, const TriedSteps& steps,
                    int workers);

/// Rows for trainings of two steps that end with each of the shortest batches of a plan's
/// trainings, which may have too few rows for a layer: of the trainings that follow the first one,
/// what that one does not try. The refit and inner folds among them.
std::vector<RowList> short_batches_to_try(const DocumentComponents& components, const Fold& tried);

/// Prepares a fit, trains it for a few steps and validates it, where it has rows for that. Keeps
/// nothing. Returns the seconds of a step behind the first, which warms caches up; nothing where
/// there was only one. Throws as a training does, also c10::OutOfMemoryError.
std::optional<double> try_training(Fit& fit, const TriedSteps& steps);

/// What a whole training of a fold has beside one that is tried: the order of the rows in this and
/// the next epoch, and the rows themselves.
std::int64_t bytes_of_row_lists(const Fold& fold);

}  // namespace treadle::internal
