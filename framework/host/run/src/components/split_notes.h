#pragma once

#include <string>
#include <vector>

namespace treadle {
class Runtime;
}

namespace treadle::internal {

class DocumentComponents;

/// The DataNotes of the data.
std::vector<std::string> notes_on_data(const DocumentComponents& components);

/// What a user may not expect of the plan: a handful of rows validates; or the data names groups or
/// times, and a split at random, which nobody chose, trains on rows of groups, or of later times,
/// than it judges by. Expects a plan.
std::vector<std::string> notes_on_split(const Runtime& runtime,
                                        const DocumentComponents& components);

/// That samples go on over rows that are missing, as times say; empty where none do.
std::vector<std::string> notes_on_samples(const DocumentComponents& components);

}  // namespace treadle::internal
