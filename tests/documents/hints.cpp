#include "hints.h"

#include <algorithm>
#include <map>

#include "document_data.h"
#include "document_images.h"

namespace treadle::testing {
namespace {

using nlohmann::json;
using Value = std::optional<json>;

template <std::int64_t kLeast, std::int64_t kMost>
Value small(Drawing& drawing, const json&, const Spot&) {
  return drawing.dice.whole(kLeast, kMost);
}

/// Of a stream without end the document gets what else it needs; see document().
Value few_or_endless(Drawing& drawing, const json& schema, const Spot& spot) {
  return drawing.dice.chance(12) ? Value("endless") : small<16, 48>(drawing, schema, spot);
}

/// A trend and what is true of it, or a time alone.
Value condition(Drawing& drawing, const json& schema, const Spot& spot) {
  Dice& dice = drawing.dice;
  json condition = json::object();
  const json& properties = schema.at("properties");
  const auto add = [&](const char* key) {
    Spot within = spot;
    within.key = key;
    condition[key] = draw_value(drawing, properties.at(key), within);
  };
  if (dice.chance(25)) {
    add("after");
    return condition;
  }
  add("monitor");
  switch (dice.below(5)) {
    case 0:
      condition["stalled"] = json::array({dice.whole(2, 3), dice.chance(50) ? 100 : 0.01});
      break;
    case 1:
      condition["converged"] = json::array({dice.whole(2, 3), dice.chance(50) ? 100 : 0.001});
      break;
    case 2:
      condition["improving"] = 2;
      break;
    case 3:
      condition[dice.chance(50) ? "above" : "below"] = dice.short_number(dice.between(0.1, 2));
      break;
    default:
      condition["not_improving"] = 2;
  }
  for (const char* const key : {"of", "mode", "after"}) {
    if (dice.chance(20))
      add(key);
  }
  return condition;
}

/// A weight for each class, in order or by name, where the classes are known.
Value per_class(Drawing& drawing, const json&, const Spot&) {
  const auto& targets = drawing.data.targets;
  if (targets.empty() || targets[0].class_count() == 0 || targets[0].kind == TargetKind::kLabels)
    return std::nullopt;
  Dice& dice = drawing.dice;
  if (dice.chance(30))
    return json("balanced");
  const bool is_list = dice.chance(50);
  json weights = is_list ? json::array() : json::object();
  for (const std::string& name : targets[0].class_names) {
    const json weight = dice.short_number(dice.between(0.1, 3));
    if (is_list) {
      weights.push_back(weight);
    } else {
      weights[name] = weight;
    }
  }
  return weights;
}

Value quantiles(Drawing& drawing, const json&, const Spot&) {
  const std::vector<std::vector<double>> all{
      {0.5}, {0.1, 0.5, 0.9}, {0.25, 0.5}, {0.05, 0.5, 0.75, 0.95}};
  return json(drawing.dice.one_of(all));
}

Value range(Drawing& drawing, const json&, const Spot&) {
  return json::array({-drawing.dice.whole(0, 2), drawing.dice.whole(1, 3)});
}

/// Two ends of a range of shares, areas or ratios.
Value two_shares(Drawing& drawing, const json&, const Spot&) {
  Dice& dice = drawing.dice;
  return json::array(
      {dice.short_number(dice.between(0.1, 0.5)), dice.short_number(dice.between(0.6, 1))});
}

/// Levels of the images that are drawn, which need not be colors.
Value white(Drawing& drawing, const json&, const Spot&) {
  return json(drawing.dice.whole(1, 9));
}

Value percentages(Drawing& drawing, const json&, const Spot&) {
  return json::array({drawing.dice.whole(0, 40), drawing.dice.whole(60, 100)});
}

/// A file that is written when everything else of the document is known.
Value weights(Drawing& drawing, const json&, const Spot&) {
  json weights = {{"path", (drawing.folder / kWeightsFile).string()}};
  if (drawing.dice.chance(30))
    weights["strict"] = drawing.dice.chance(50);
  return weights;
}

/// Of a file that there is not.
Value weights_path(Drawing& drawing, const json&, const Spot&) {
  return json((drawing.folder / kWeightsFile).string());
}

/// One of several targets; of one, nothing need be said.
Value target(Drawing& drawing, const json& schema, const Spot& spot) {
  if (drawing.targets.size() < 2 && schema.value("type", json()) == "string")
    return std::nullopt;
  return draw_value(drawing, schema, spot);
}

/// A tag for each target.
Value outputs(Drawing& drawing, const json&, const Spot&) {
  if (drawing.tags.empty())
    return std::nullopt;
  json outputs = json::object();
  for (const std::string& name : drawing.targets)
    outputs[name] = drawing.dice.one_of(drawing.tags);
  return outputs;
}

/// In trainings of few epochs the default would never act.
Value one_epoch(Drawing& drawing, const json&, const Spot&) {
  return json(drawing.dice.chance(70) ? "1ep" : "2ep");
}

/// Wide enough that a network does not die at once.
Value widths(Drawing& drawing, const json&, const Spot&) {
  json widths = json::array();
  for (std::size_t layers = drawing.dice.below(3); layers-- > 0;)
    widths.push_back(drawing.dice.whole(4, 9));
  return widths;
}

/// "component:key", or ":key" for every component. The first line that fits counts.
const std::map<std::string, Hint>& table() {
  static const std::map<std::string, Hint> hints{
      // Small trainings: most defaults are for real data.
      {"data/moons:rows", {100, few_or_endless}},
      {"data/sea:concept_rows", {100, small<6, 16>}},
      {"data/spirals:rows", {100, few_or_endless}},
      {"data/friedman1:rows", {100, few_or_endless}},
      {":rows", {100, small<16, 48>}},
      {"validation/hold_out:rows", {25, small<3, 12>}},
      {":length", {100, small<24, 60>}},
      {"schedule/*:length", {30}},
      {":epochs", {100, small<1, 5>}},
      {":steps_per_epoch", {20, small<1, 6>}},
      {":max_steps", {15, small<2, 20>}},
      {"data/text:max_length", {30, small<1, 12>}},
      {"data/images:max_pixels", {0}},
      {"data/idx:max_bytes", {0}},
      {":sampler", {20}},
      {":shuffle_buffer", {2, small<4, 30>}},
      {":batch_size", {100, small<3, 20>}},
      {":folds", {100, small<2, 4>}},
      {":repeats", {100, small<2, 3>}},
      {":splits", {100, small<2, 3>}},
      {"validation/*:validation_size", {40, small<2, 6>}},
      {"validation/*:train_size", {30, small<6, 12>}},
      {"validation/*:test_size", {40, small<2, 5>}},
      {"validation/*:start", {40, small<8, 14>}},
      {"validation/*:max_train_size", {30, small<4, 10>}},
      {"validation/*:gap", {30, small<1, 2>}},
      {"validation/*:embargo", {40, small<1, 2>}},
      {"validation/*:retrain_every", {30, small<2, 3>}},
      {"validation/*:warm_start", {60}},
      {"validation/*:outer", {80}},
      {"validation/*:inner", {80}},
      {"validation/*:splitter", {80}},
      {":features", {50, small<5, 8>}},
      {":intra_op_threads", {5, small<1, 2>}},
      {":workers", {0}},  // set for each run
      {":divide", {0}},   // the same
      {":device", {0}},   // the same
      {":resources.execution", {20}},
      {":checkpoint", {70}},
      {":window", {30, small<1, 6>}},
      {":virtual_batch_size", {60, small<2, 6>}},
      {":references", {60, small<1, 6>}},
      {":n_quantiles", {60, small<2, 8>}},
      // What belongs together.
      {":when", {100, condition}},
      {"callback/freeze:until", {60, condition}},
      {"callback/reduce_on_plateau:patience", {100, one_epoch}},
      {"callback/early_stopping:patience", {60, one_epoch}},

      {":class_weights", {25, per_class}},
      {"metric/top_k_accuracy:k", {60, small<1, 2>}},
      {":quantiles", {60, quantiles}},
      {"transform/min_max:range", {30, range}},
      {"transform/robust:quantile_range", {30, percentages}},
      {"transform/*:max_value", {80, white}},
      {"transform/random_affine:degrees", {50, small<1, 90>}},
      {"transform/random_affine:scale", {50, two_shares}},
      {"transform/random_affine:shear", {50, small<1, 40>}},
      {"transform/random_erasing:ratio", {30, two_shares}},
      {"transform/random_erasing:scale", {50, two_shares}},
      {"transform/random_erasing:value", {50, small<0, 9>}},
      {"transform/random_resized_crop:ratio", {30, two_shares}},
      {"transform/random_resized_crop:scale", {50, two_shares}},
      {"transform/rand_augment:magnitude", {50, small<1, 8>}},
      {"transform/rand_augment:num_magnitude_bins", {50, small<9, 20>}},
      {"transform/normalize:mean", {50, small<0, 3>}},
      {"transform/normalize:std", {50, small<1, 3>}},
      {"transform/normalize:statistics", {0}},  // few data have three channels
      {"transform/*:by", {8}},                  // few data have groups
      {"transform/*:handle_unknown", {0}},
      {"model/*:weights", {10, weights}},
      {"model/*:path", {100, weights_path}},
      {":target", {40, target}},
      {"model/mlp:hidden", {60, widths}},
      // Rarely of use, or only with other data.
      {":tied_to", {0}},
      {":columns", {10}},
      {":inputs", {10}},
      {":category", {5}},
      {":task", {10}},
      {":fill", {20}},
      {":initial", {3}},
      {"model/flow:outputs", {3, outputs}},
  };
  return hints;
}

/// A milestone fewer than schedules, each later than the one before it.
json chain_parameters(Drawing& drawing) {
  const json slot = {{"x-treadle-component", "schedule"}};
  Spot spot;
  spot.key = "schedules";
  json schedules = json::array({draw_component(drawing, slot, spot)});
  json milestones = json::array();
  for (std::int64_t step = 0; schedules.size() < 2 || drawing.dice.chance(25);) {
    schedules.push_back(draw_component(drawing, slot, spot));
    step += drawing.dice.whole(1, 8);
    milestones.push_back(std::to_string(step) + "st");
  }
  return {{"schedules", schedules}, {"milestones", milestones}};
}

json milestones(Drawing& drawing) {
  json milestones = json::array();
  for (std::int64_t percent = drawing.dice.whole(5, 40); percent < 100;
       percent += drawing.dice.whole(20, 60))
    milestones.push_back(std::to_string(percent) + "%");
  return {{"milestones", milestones}};
}

json router_parameters(Drawing& drawing) {
  const std::int64_t experts = drawing.dice.whole(2, 4);
  return {{"num_experts", experts}, {"top_k", drawing.dice.whole(1, experts)}};
}

json adaptive_parameters(Drawing& drawing) {
  return {{"num_classes", drawing.dice.whole(4, 6)}, {"cutoffs", {drawing.dice.whole(1, 3)}}};
}

/// One class against the rest, or an average: not both.
json class_choice(Drawing& drawing) {
  const auto& targets = drawing.data.targets;
  json chosen = {{"class", nullptr}, {"average", nullptr}};
  if (drawing.dice.chance(30) && !targets.empty() && targets[0].class_count() > 0) {
    chosen["class"] = drawing.dice.one_of(targets[0].class_names);
  } else if (drawing.dice.chance(50)) {
    chosen["average"] = drawing.dice.one_of(std::vector<std::string>{"macro", "micro", "weighted"});
  }
  return chosen;
}

using Together = json (*)(Drawing&);

const std::map<std::string, Together>& together() {
  static const std::map<std::string, Together> all{
      {"data/csv", csv_parameters},
      {"data/jsonl", jsonl_parameters},
      {"data/parquet", parquet_parameters},
      {"data/idx", idx_parameters},
      {"data/images", image_parameters},
      {"data/npy", npy_parameters},
      {"data/sqlite", sqlite_parameters},
      {"data/text", text_parameters},
      {"layer/top_k_router", router_parameters},
      {"metric/average_precision", class_choice},
      {"metric/f1", class_choice},
      {"metric/f_beta", class_choice},
      {"metric/precision", class_choice},
      {"metric/recall", class_choice},
      {"metric/specificity", class_choice},
      {"layer/adaptive_log_softmax", adaptive_parameters},
      {"schedule/multi_step", milestones},
      {"schedule/sequential", chain_parameters}};
  return all;
}

std::vector<std::string> joined(std::vector<std::string> some,
                                const std::vector<std::string>& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

using KnownNames = std::vector<std::string> (*)(const Drawing&);

const std::map<std::string, KnownNames>& names() {
  constexpr KnownNames kParameters = [](const Drawing& d) {
    return joined({"*", "*bias", "*weight", "*0*", "*1*"}, d.tags);
  };
  constexpr KnownNames kTags = [](const Drawing& d) { return d.tags; };
  constexpr KnownNames kTargets = [](const Drawing& d) { return d.targets; };
  constexpr KnownNames kColumns = [](const Drawing& d) { return joined(d.columns, d.inputs); };
  static const std::map<std::string, KnownNames> all{
      {"monitor",
       [](const Drawing& d) {
         return joined(joined({"train_loss", "val_loss"}, d.metrics), d.tags);
       }},
      {"parameters", kParameters},
      {"target", kTargets},
      {"stratify_by", kTargets},
      {"columns", [](const Drawing& d) { return d.columns; }},
      {"inputs", [](const Drawing& d) { return d.inputs; }},
      {"std", kColumns},
      {"log", kTags},
      {"tag", kTags},
      {"using", kTags},
      {"tags", kTags},
      {"communicator",
       [](const Drawing& d) {
         std::vector<std::string> all{"auto"};
         for (const CatalogComponent& each : d.runtime.catalog().components("communicator"))
           all.push_back(each.component->name);
         return all;
       }},
  };
  return all;
}

using Need = bool (*)(const DataSpec&);

template <typename Condition>
bool any_column(const DataSpec& data, const Condition& condition) {
  return std::any_of(data.inputs.begin(), data.inputs.end(), [&](const PortSpec& input) {
    return std::any_of(input.columns.begin(), input.columns.end(), condition);
  });
}

/// Transforms that only some data can have.
const std::map<std::string, Need>& needs() {
  constexpr Need kImage = [](const DataSpec& data) {
    return std::any_of(data.inputs.begin(), data.inputs.end(),
                       [](const PortSpec& input) { return input.role == Role::kImage; });
  };
  constexpr Need kCategories = [](const DataSpec& data) {
    return any_column(data, [](const Column& column) { return !column.categories.empty(); });
  };
  constexpr Need kNumbers = [](const DataSpec& data) {
    return std::all_of(data.inputs.begin(), data.inputs.end(), [](const PortSpec& input) {
      return (input.role == Role::kFeatures || input.role == Role::kImage) &&
             std::find(input.shape.begin(), input.shape.end(), kVaries) == input.shape.end();
    });
  };
  static const std::map<std::string, Need> all{
      {"color_jitter", kImage},
      {"cutmix", kImage},
      {"mixup", kNumbers},
      {"normalize", kImage},
      {"rand_augment", kImage},
      {"random_affine", kImage},
      {"random_crop", kImage},
      {"random_erasing", kImage},
      {"random_flip", kImage},
      {"random_resized_crop", kImage},
      {"trivial_augment", kImage},
      {"impute",
       [](const DataSpec& data) {
         return any_column(data, [](const Column& column) { return column.may_be_missing; });
       }},
      {"rare_categories", kCategories},
      {"one_hot", kCategories}};
  return all;
}

}  // namespace

std::vector<std::string> needed_transforms(const DataSpec& data) {
  std::vector<std::string> needed;
  for (const char* const name : {"impute", "one_hot"}) {
    if (needs().at(name)(data))
      needed.emplace_back(name);
  }
  return needed;
}

const Hint* find_hint(const std::string& component, const std::string& key) {
  const std::string word = component.substr(0, component.find('/'));
  for (const std::string& place : {component + ":" + key, word + "/*:" + key, ":" + key}) {
    const auto found = table().find(place);
    if (found != table().end())
      return &found->second;
  }
  return nullptr;
}

json settled_keys(Drawing& drawing, const std::string& component) {
  const auto found = together().find(component);
  return found == together().end() ? json::object() : found->second(drawing);
}

std::vector<std::string> known_names(const Drawing& drawing, const std::string& key) {
  const auto found = names().find(key);
  return found == names().end() ? std::vector<std::string>{} : found->second(drawing);
}

std::vector<std::string> preferred(Drawing& drawing, const std::string& interface_word,
                                   std::vector<std::string> names) {
  const auto keep = [&](const auto& fits) {
    std::vector<std::string> kept;
    std::copy_if(names.begin(), names.end(), std::back_inserter(kept), fits);
    if (!kept.empty())
      names = std::move(kept);
  };
  // Needs a server; without one it waits for it.
  keep([](const std::string& name) { return name != "postgresql"; });
  if (interface_word == "data" && drawing.dice.chance(60))
    keep([](const std::string& name) { return together().contains("data/" + name); });
  if (interface_word == "transform") {
    keep([&](const std::string& name) {
      const auto need = needs().find(name);
      return need == needs().end() || need->second(drawing.data);
    });
  }
  if (interface_word == "model") {
    const bool is_plain_table = drawing.data.inputs.size() == 1 &&
                                drawing.data.inputs[0].shape.size() == 1 &&
                                drawing.data.inputs[0].role == Role::kFeatures;
    if (!is_plain_table || drawing.dice.chance(40))
      keep([](const std::string& name) { return name == "flow"; });
  }
  if (interface_word == "callback")  // where it ends a training depends on the machine
    keep([](const std::string& name) { return name != "time_limit"; });
  if ((interface_word == "loss" || interface_word == "metric") && !drawing.data.targets.empty()) {
    keep([&](const std::string& name) {
      const FoundComponent found = drawing.runtime.schemas().find(interface_word, name);
      return works_on(*found.schema, drawing.data.targets[0].kind);
    });
  }
  return names;
}

}  // namespace treadle::testing
