#include "session/evaluation_rounds.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/core/components/state_bytes.h>
#include <treadle/core/components/state_dict.h>
#include <treadle/core/validation/prediction_state.h>

#include "step/process_failure.h"

namespace treadle::engine {
namespace {

std::string name_of(const char* list, std::size_t place) {
  return list + ("-" + std::to_string(place));
}

/// Undefined tensors are left out.
void put(StateDict& state, const std::string& name, const at::Tensor& tensor) {
  if (tensor.defined())
    state.put(name, tensor);
}

at::Tensor get(const StateDict& state, const std::string& name) {
  return state.has_tensor(name) ? state.tensor(name) : at::Tensor();
}

void put(StateDict& state, const char* list, const std::vector<at::Tensor>& tensors) {
  state.put(list, nlohmann::json(tensors.size()));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    put(state, name_of(list, i), tensors[i]);
}

std::vector<at::Tensor> get_list(const StateDict& state, const char* list) {
  std::vector<at::Tensor> tensors(state.value(list).get<std::size_t>());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    tensors[i] = get(state, name_of(list, i));
  return tensors;
}

StateDict state_of(const Batch& batch) {
  StateDict state;
  put(state, "targets", batch.targets);
  std::vector<at::Tensor> others = batch.original_targets;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (others[i].is_same(batch.targets[i]))
      others[i] = at::Tensor();
  }
  put(state, "original_targets", others);
  put(state, "position_weights", batch.position_weights);
  put(state, std::string("weights"), batch.weights);
  put(state, std::string("rows"), batch.rows);
  put(state, std::string("groups"), batch.groups);
  return state;
}

Batch batch_of(const StateDict& state) {
  Batch batch;
  batch.targets = get_list(state, "targets");
  batch.original_targets = get_list(state, "original_targets");
  for (std::size_t i = 0; i < batch.original_targets.size(); ++i) {
    if (!batch.original_targets[i].defined())
      batch.original_targets[i] = batch.targets[i];
  }
  batch.position_weights = get_list(state, "position_weights");
  batch.weights = get(state, "weights");
  batch.rows = get(state, "rows");
  batch.groups = get(state, "groups");
  return batch;
}

StateDict state_of(const EvaluatedBatch& evaluated) {
  StateDict state;
  state.put("batch", state_of(evaluated.batch));
  put(state, "outputs", evaluated.outputs);
  state.put("predictions", nlohmann::json(evaluated.predictions.size()));
  for (std::size_t i = 0; i < evaluated.predictions.size(); ++i)
    state.put(name_of("prediction", i), treadle::state_of(evaluated.predictions[i]));
  state.put("terms", nlohmann::json(evaluated.loss.terms.size()));
  for (std::size_t i = 0; i < evaluated.loss.terms.size(); ++i) {
    const BatchLoss::Term& term = evaluated.loss.terms[i];
    put(state, name_of("sum", i), term.sum);
    put(state, name_of("weight", i), term.weight);
    state.put_number(name_of("count", i), term.count);
  }
  return state;
}

EvaluatedBatch evaluated_of(const StateDict& state) {
  EvaluatedBatch evaluated;
  evaluated.batch = batch_of(state.part("batch"));
  evaluated.outputs = get_list(state, "outputs");
  for (std::size_t i = 0; i < state.value("predictions").get<std::size_t>(); ++i)
    evaluated.predictions.push_back(prediction_from(state.part(name_of("prediction", i))));
  for (std::size_t i = 0; i < state.value("terms").get<std::size_t>(); ++i) {
    evaluated.loss.terms.push_back({get(state, name_of("sum", i)), get(state, name_of("weight", i)),
                                    state.number(name_of("count", i))});
  }
  return evaluated;
}

}  // namespace

std::vector<EvaluatedBatch> EvaluationRounds::exchange(std::span<EvaluatedBatch> own,
                                                       std::size_t asked, std::size_t at_once) {
  StateDict mine;
  std::exception_ptr error;
  std::size_t count = 0;
  for (; count < own.size() && !error; ++count) {
    error = own[count].error;
    if (error) {
      const ProcessFailure failure = failure_of(error);
      mine.put("failure", nlohmann::json{static_cast<int>(failure.kind), failure.message});
    } else {
      mine.put(name_of("batch", count), state_of(own[count]));
    }
  }
  mine.put("batches", nlohmann::json(count));
  mine.put("at_once", nlohmann::json(own.empty() ? 0 : at_once));

  std::vector<StateDict> all;
  for (const std::vector<std::byte>& bytes : group_.gather(bytes_of(mine)))
    all.push_back(state_of_bytes(bytes));
  const auto batches_of = [](const StateDict& state) {
    return state.value("batches").get<std::size_t>();
  };
  at_once_ = std::numeric_limits<std::size_t>::max();
  for (const StateDict& of_rank : all) {
    has_more_ = has_more_ && batches_of(of_rank) == asked;
    if (const auto its = of_rank.value("at_once").get<std::size_t>(); its > 0)
      at_once_ = std::min(at_once_, its);
  }
  std::vector<EvaluatedBatch> round;
  for (std::size_t i = 0; i < asked; ++i) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const StateDict& of_rank = all[rank];
      if (i >= batches_of(of_rank))
        continue;
      if (of_rank.has_part(name_of("batch", i))) {
        round.push_back(evaluated_of(of_rank.part(name_of("batch", i))));
        continue;
      }
      if (static_cast<std::int64_t>(rank) == group_.rank())
        std::rethrow_exception(error);
      const nlohmann::json& failure = of_rank.value("failure");
      throw_again(
          {static_cast<ErrorKind>(failure.at(0).get<int>()), failure.at(1).get<std::string>()},
          static_cast<std::int64_t>(rank));
    }
  }
  return round;
}

}  // namespace treadle::engine
