#pragma once

#include <span>
#include <string>
#include <vector>

#include <treadle/core/model/model.h>
#include <treadle/core/training/parameter_arena.h>
#include <treadle/core/training/structure_search.h>

namespace treadle::engine {

/// What of a model a search of its structure trains, and the rest.
class StructureParts {
 public:
  /// Throws a DataError where nothing of the model can be chosen.
  StructureParts(Model& model, const ParameterArena& arena);

  std::span<WeighsOperations* const> layers() const { return layers_; }
  /// By segment of the arena: the alphas of the layers, and everything else.
  const std::vector<bool>& alphas() const { return alphas_; }
  const std::vector<bool>& rest() const { return rest_; }

 private:
  std::vector<WeighsOperations*> layers_;
  std::vector<bool> alphas_;
  std::vector<bool> rest_;
};

}  // namespace treadle::engine
