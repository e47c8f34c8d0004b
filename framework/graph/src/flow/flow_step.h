#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/part.h>

#include "nodes/nodes.h"

namespace treadle::graph {

enum class Verb {
  kStart,
  kThrough,
  kResidual,
  kSplit,
  kMerge,
  kTagGroup,
  kInput,
  kAt,
  kMixtureOfExperts,
  kSwitch,
  kLoop,
  kMap
};

enum class MapKind { kUnfinished, kEach, kOver, kSlices };

/// One verb with all that was said about it.
struct FlowStep {
  Verb verb = Verb::kThrough;
  /// What it works with: [part], the branches, [router, experts …], [router, branches …], [body],
  /// [body, condition] or [body, halt]. kStart, the graph's first input, works with nothing.
  std::vector<Part> parts = {};
  /// kInput: the inputs' names. kAt: the tags. kTagGroup: the group's name.
  std::vector<std::string> words = {};

  LoopKind loop = LoopKind::kUnfinished;
  std::int64_t rounds = 0;
  HaltBy halt_by = HaltBy::kOneElement;
  Pondering pondering = {};

  MapKind map = MapKind::kUnfinished;
  std::string over = {};
  std::int64_t slices = 0;
  bool batched = false;

  SwitchBy switch_by = SwitchBy::kBatch;
  bool broadcast = false;  ///< kResidual
  Mixture mixture = {};

  std::string name = {};
  std::vector<std::string> tags = {};
  /// Of its part's outputs after the first: (output, tag).
  std::vector<std::pair<std::string, std::string>> output_tags = {};
  std::vector<std::string> references = {};
  bool frozen = false;
  bool enabled = true;
  Config place = Config();
};

/// "split()", as people read it.
std::string_view spoken(Verb verb);

}  // namespace treadle::graph
