#include <treadle/core/training/training_session.h>

namespace treadle {

std::optional<Batch> read_all(BatchStream& stream) {
  std::vector<Batch> batches;
  for (Batch batch; stream.next(batch); batch = Batch())
    batches.push_back(batch);
  if (batches.empty())
    return std::nullopt;
  return batches.size() == 1 ? batches.front() : Batch::join(batches);
}

}  // namespace treadle
