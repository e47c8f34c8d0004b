#include "darts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/model/model.h>

namespace treadle::cells {
namespace {

/// The model with some operations of a choice only, for as long as one of these lives.
class Restricted {
 public:
  Restricted(WeighsOperations& layer, std::size_t choice, const std::vector<bool>& allowed)
      : layer_(layer), choice_(choice), before_(layer.allowed(choice)) {
    layer_.allow(choice_, allowed);
  }
  ~Restricted() { layer_.allow(choice_, before_); }
  Restricted(const Restricted&) = delete;
  Restricted& operator=(const Restricted&) = delete;

 private:
  WeighsOperations& layer_;
  const std::size_t choice_;
  const std::vector<bool> before_;
};

/// Of the operations other than "zero", the one for which `value` is the largest; the first of
/// those that are equal. Nothing where there is none.
template <typename Value>
std::optional<std::size_t> largest(const OperationChoice& choice, const Value& value) {
  std::optional<std::size_t> best;
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < choice.operations.size(); ++i) {
    if (choice.operations[i] == kZeroOperation)
      continue;
    const double its = value(i);
    if (!best || its > most) {
      best = i;
      most = its;
    }
  }
  return best;
}

std::vector<bool> only(std::size_t operation, std::size_t count) {
  std::vector<bool> allowed(count, false);
  allowed[operation] = true;
  return allowed;
}

}  // namespace

DartsTraining::Searched::Searched(TrainingSession& its) : session(its) {
  std::set<std::string> names;
  std::set<std::string> structures;
  for (const auto& module : session.model().named_modules("", /*include_self=*/false)) {
    auto* const layer = dynamic_cast<WeighsOperations*>(module.value().get());
    if (layer == nullptr)
      continue;
    layers.push_back(layer);
    names.insert(module.key() + "." + std::string(WeighsOperations::kParameter));
    if (!structures.insert(layer->structure()).second) {
      throw DataError("two structures of the model are called " + quote_text(layer->structure()) +
                      "; give each a name of its own");
    }
  }
  if (layers.empty()) {
    throw DataError(
        "nothing in the model can be chosen; a search of its structure needs a network with "
        "operations that are mixed, such as the graph builder \"cell_network\" without \"edges\"");
  }
  const auto is_alpha = [&](std::string_view name) { return names.count(std::string(name)) > 0; };
  alphas = session.parameters(is_alpha);
  rest = session.parameters([&](std::string_view name) { return !is_alpha(name); });
}

double DartsTraining::Searched::loss() {
  return session.evaluate(kStructureRows).loss;
}

DartsTraining::DartsTraining(const Config& config)
    : config_(config),
      perturbs_(config.get<std::string>("selection") == "perturbation"),
      edges_per_node_(config.find<std::int64_t>("edges_per_node")),
      warmup_epochs_(config.get<std::int64_t>("warmup_epochs")),
      structure_fraction_(config.get<double>("structure_fraction")),
      tune_epochs_(config.get<std::int64_t>("tune_epochs")),
      max_parameters_(config.find<std::int64_t>("max_parameters")) {}

void DartsTraining::do_train(TrainingSession& session) {
  Searched searched(session);
  std::vector<Place> places;
  for (std::size_t i = 0; perturbs_ && i < searched.layers.size(); ++i) {
    for (std::size_t j = 0; j < searched.layers[i]->choices().size(); ++j)
      places.push_back({i, j});
  }
  if (perturbs_) {
    std::vector<Place> shuffled;
    for (const std::int64_t at : random_permutation(static_cast<std::int64_t>(places.size()),
                                                    session.random().bits("decisions")))
      shuffled.push_back(places[static_cast<std::size_t>(at)]);
    places = std::move(shuffled);
  }
  const std::int64_t tuning = tune_epochs_ * static_cast<std::int64_t>(places.size());
  if (perturbs_ && (!session.epochs() || *session.epochs() <= tuning)) {
    config_.fail("selection", "perturbation decides " + std::to_string(places.size()) +
                                  " choices in the last epochs, " + std::to_string(tune_epochs_) +
                                  " for each; set training.epochs above " + std::to_string(tuning) +
                                  ", or lower tune_epochs");
  }
  const std::int64_t first = session.epochs().value_or(0) - tuning;
  // A training that was stopped while it tried out a choice was saved in the midst of it.
  for (std::size_t i = 0; i < places.size(); ++i) {
    WeighsOperations& layer = *searched.layers[places[i].structure];
    const std::size_t count = layer.choices()[places[i].choice].operations.size();
    layer.allow(places[i].choice, i < decided_.size() ? only(decided_[i].operation, count)
                                                      : std::vector<bool>(count, true));
  }
  // Decisions come before next_epoch(), so that the checkpoint between two epochs has them.
  const auto decide = [&](std::int64_t epochs_done) {
    if (perturbs_)
      decide_due(epochs_done, first, places, searched);
  };
  for (decide(session.epochs_done()); session.next_epoch(); decide(session.epochs_done()))
    train_epoch(searched);
  // What stopped the training early leaves decisions open.
  decide(std::numeric_limits<std::int64_t>::max());
  record(searched);
}

LoopNeeds DartsTraining::do_needs() const {
  LoopNeeds needs;
  needs.parts = {{kStructureRows, structure_fraction_}};
  return needs;
}

void DartsTraining::train_epoch(Searched& searched) const {
  TrainingSession& session = searched.session;
  const bool warms_up = session.epochs_done() < warmup_epochs_;
  while (const std::optional<Batch> batch = session.next_batch()) {
    const double rate = session.scheduled_rate();
    if (!warms_up) {
      session.update(
          session.next_batch(kStructureRows),
          {.learning_rate = rate, .name = kStructureRows, .parameters = &searched.alphas});
    }
    session.update(*batch, {.learning_rate = rate, .parameters = &searched.rest});
  }
  session.finish_epoch();
}

void DartsTraining::decide_due(std::int64_t epochs_done, std::int64_t first,
                               const std::vector<Place>& places, Searched& searched) {
  while (decided_.size() < places.size() &&
         epochs_done >= first + tune_epochs_ * static_cast<std::int64_t>(decided_.size())) {
    const Place place = places[decided_.size()];
    WeighsOperations& layer = *searched.layers[place.structure];
    const OperationChoice& choice = layer.choices()[place.choice];
    const std::optional<std::size_t> best = largest(choice, [&](std::size_t operation) {
      std::vector<bool> without(choice.operations.size(), true);
      without[operation] = false;
      const Restricted restricted(layer, place.choice, without);
      return searched.loss();
    });
    const std::size_t operation = best.value_or(0);
    layer.allow(place.choice, only(operation, choice.operations.size()));
    decided_.push_back({place, operation});
  }
}

void DartsTraining::record(Searched& searched) {
  records_.clear();
  for (WeighsOperations* const one : searched.layers) {
    WeighsOperations& layer = *one;
    const at::Tensor weights = layer.weights().to(at::kCPU, at::kDouble);
    StructureRecord record{layer.structure(), {}};
    std::vector<double> strengths;
    std::map<std::string, std::vector<std::size_t>> into;  // choices by node
    for (std::size_t c = 0; c < layer.choices().size(); ++c) {
      const OperationChoice& choice = layer.choices()[c];
      const auto* const row =
          weights.data_ptr<double>() + static_cast<std::ptrdiff_t>(c) * weights.size(1);
      StructureRecord::Choice one{choice, {row, row + choice.operations.size()}, {}};
      one.chosen = largest(choice, [&](std::size_t i) { return one.weights[i]; });
      double strength = one.chosen ? one.weights[*one.chosen] : 0;
      if (perturbs_ && edges_per_node_) {
        const Restricted restricted(layer, c, std::vector<bool>(choice.operations.size(), false));
        strength = searched.loss();
      }
      strengths.push_back(strength);
      into[choice.node].push_back(c);
      record.choices.push_back(std::move(one));
    }
    for (auto& [node, choices] : into) {
      if (!edges_per_node_ || static_cast<std::int64_t>(choices.size()) <= *edges_per_node_)
        continue;
      std::stable_sort(choices.begin(), choices.end(),
                       [&](std::size_t a, std::size_t b) { return strengths[a] > strengths[b]; });
      for (auto i = static_cast<std::size_t>(*edges_per_node_); i < choices.size(); ++i)
        record.choices[choices[i]].chosen.reset();
    }
    records_.push_back(std::move(record));
  }
}

StateDict DartsTraining::do_state() const {
  StateDict state;
  if (decided_.empty())
    return state;
  nlohmann::json decided = nlohmann::json::array();
  for (const Decision& one : decided_)
    decided.push_back({one.place.structure, one.place.choice, one.operation});
  state.put("decided", decided);
  return state;
}

void DartsTraining::do_load_state(const StateDict& state) {
  decided_.clear();
  if (!state.has_value("decided"))
    return;
  for (const nlohmann::json& one : state.value("decided"))
    decided_.push_back({{one.at(0), one.at(1)}, one.at(2)});
}

void* DartsTraining::do_ask(std::string_view interface_id) {
  return interface_id == RecordsStructures::kInterface ? static_cast<RecordsStructures*>(this)
                                                       : nullptr;
}

}  // namespace treadle::cells
