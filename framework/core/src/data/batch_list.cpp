#include <treadle/core/data/batch_list.h>

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle {

BatchList::BatchList(std::vector<Batch> batches) : batches_(std::move(batches)) {}
BatchList::~BatchList() = default;

bool BatchList::do_next(Batch& batch) {
  if (next_ == batches_.size())
    return false;
  batch = batches_[next_++];
  return true;
}

StateDict BatchList::do_state() const {
  StateDict state;
  state.put("next", nlohmann::json(next_));
  return state;
}

void BatchList::do_load_state(const StateDict& state) {
  const auto next = state.value("next").get<std::size_t>();
  if (next > batches_.size()) {
    throw StorageError("the state is that of a list of at least " + std::to_string(next) +
                       " batches; this one has " + std::to_string(batches_.size()));
  }
  next_ = next;
}

}  // namespace treadle
