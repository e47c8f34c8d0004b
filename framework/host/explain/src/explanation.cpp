#include <treadle/host/explain/explanation.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/where.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/host/explain/partial_dependence.h>
#include <treadle/host/explain/row_losses.h>
#include <treadle/host/explain/subgroups.h>

namespace treadle::explain {
namespace {

using Json = nlohmann::json;

/// Of more levels, a category is no way to group rows.
constexpr std::int64_t kMostLevels = 50;
constexpr std::size_t kMostSubgroups = 20;
constexpr std::int64_t kMostRowsOfBucket = 1000;

Json json_of(const Number& number) {
  Json json = number;
  return json;
}

/// NaN and infinities as null.
Json json_of(double number) {
  return std::isfinite(number) ? Json(number) : Json();
}

/// Of a tensor [n] or [n, m].
Json json_of(const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kDouble).contiguous();
  Json json = Json::array();
  for (std::int64_t i = 0; i < values.size(0); ++i)
    json.push_back(values.dim() > 1 ? json_of(values[i]) : json_of(values.data_ptr<double>()[i]));
  return json;
}

/// A value of a column as people write it.
Json value_of(const ExplainedColumn& column, double value) {
  if (!std::isfinite(value))
    return {};
  const auto number = static_cast<std::size_t>(value);
  if (column.is_category && number < column.names.size())
    return column.names[number];
  return value;
}

/// All rows, one part after the other.
class AllRows {
 public:
  AllRows(const ExplainedRows& rows, const RowTexts& texts) : rows_(rows), texts_(texts) {
    std::vector<at::Tensor> numbers;
    for (const ExplainedPart& part : rows.parts) {
      predictions_.push_back(part.predict(part.rows));
      numbers.push_back(part.rows.rows);
    }
    numbers_ = at::cat(numbers).contiguous();
    for (const ExplainedColumn& column : rows.columns)
      values_.push_back(column.has_values ? rows.values_of(column) : at::Tensor());
  }

  /// Whatever `of_part` gives for each part, one after the other; undefined where it gives none.
  template <typename OfPart>
  at::Tensor joined(OfPart&& of_part) const {
    std::vector<at::Tensor> parts;
    for (std::size_t i = 0; i < rows_.parts.size(); ++i) {
      at::Tensor part = of_part(predictions_[i], rows_.parts[i].rows);
      if (!part.defined())
        return {};
      parts.push_back(std::move(part));
    }
    return at::cat(parts);
  }

  const at::Tensor& values(std::size_t column) const { return values_[column]; }

  std::int64_t number(std::int64_t place) const { return numbers_.data_ptr<std::int64_t>()[place]; }

  /// Number and place of a row, and its columns; its picture where it is shown.
  Json row(std::int64_t place, bool is_shown) const {
    Json row{{"row", number(place)}, {"values", Json::object()}};
    if (texts_.place)
      row["place"] = texts_.place(number(place));
    std::int64_t end = 0;
    for (const ExplainedPart& part : rows_.parts) {
      const std::int64_t begin = end;
      end += part.rows.size();
      if (place >= end)
        continue;
      row["part"] = part.name;
      if (std::string picture = is_shown && texts_.picture
                                    ? texts_.picture(part.rows.slice(place - begin, 1))
                                    : std::string();
          !picture.empty())
        row["picture"] = std::move(picture);
      break;
    }
    for (std::size_t i = 0; i < rows_.columns.size(); ++i) {
      if (values_[i].defined())
        row["values"][rows_.columns[i].name] =
            value_of(rows_.columns[i], values_[i].data_ptr<double>()[place]);
    }
    return row;
  }

 private:
  const ExplainedRows& rows_;
  const RowTexts& texts_;
  std::vector<Predictions> predictions_;
  at::Tensor numbers_;
  std::vector<at::Tensor> values_;  // by column: float64 [N], contiguous
};

Json importance_json(const ExplainedRows& rows, const Measure& measure,
                     const std::vector<Importance>& importances) {
  Json list = Json::array();
  for (const Importance& one : importances) {
    Json names = Json::array();
    for (const std::size_t column : one.columns)
      names.push_back(rows.columns[column].name);
    Json repeats = Json::array();
    for (const Number& value : one.repeats)
      repeats.push_back(json_of(value));
    Json entry{{"columns", names},
               {"mean", json_of(one.mean)},
               {"deviation", json_of(one.deviation)},
               {"repeats", repeats}};
    if (one.mean.is_undefined())
      entry["undefined"] = one.mean.why();
    list.push_back(std::move(entry));
  }
  return {{"measure", measure.name},
          {"direction", measure.direction == Direction::kHigherIsBetter ? "maximize" : "minimize"},
          {"columns", std::move(list)}};
}

/// Undefined means come last.
void sort_by_mean(std::vector<Importance>& importances) {
  std::stable_sort(importances.begin(), importances.end(),
                   [](const Importance& a, const Importance& b) {
                     if (a.mean.is_known() != b.mean.is_known())
                       return a.mean.is_known();
                     return a.mean.is_known() && a.mean > b.mean;
                   });
}

/// The first `most` flat columns in the order of their importance.
std::vector<std::size_t> flat_columns(const ExplainedRows& rows,
                                      const std::vector<Importance>& importances,
                                      std::int64_t most) {
  std::vector<std::size_t> chosen;
  for (const Importance& one : importances) {
    for (const std::size_t column : one.columns) {
      if (rows.columns[column].is_flat && static_cast<std::int64_t>(chosen.size()) < most)
        chosen.push_back(column);
    }
  }
  return chosen;
}

Json dependence_json(const ExplainedRows& rows, const PartialDependence& dependence,
                     std::size_t target) {
  const ExplainedColumn& column = rows.columns[dependence.column];
  const at::Tensor grid = dependence.values.contiguous();
  Json values = Json::array();
  for (std::int64_t i = 0; i < grid.size(0); ++i)
    values.push_back(value_of(column, grid.data_ptr<double>()[i]));
  return {{"column", column.name},
          {"kind", column.is_category ? "category" : "number"},
          {"values", std::move(values)},
          {"predictions", json_of(dependence.outputs[target])}};
}

Json shap_json(const ExplainedRows& rows, const AllRows& all, const ShapValues& shap,
               std::size_t target) {
  const ShapValues::Target& of_target = shap.targets[target];
  Json mean = Json::array();
  for (std::size_t i = 0; i < rows.columns.size(); ++i)
    mean.push_back({{"column", rows.columns[i].name},
                    {"values", json_of(of_target.mean_abs[static_cast<std::int64_t>(i)])}});
  std::stable_sort(mean.begin(), mean.end(), [](const Json& a, const Json& b) {
    const auto sum = [](const Json& one) {
      double total = 0;
      for (const Json& value : one["values"])
        total += value.is_number() ? value.get<double>() : 0;
      return total;
    };
    return sum(a) > sum(b);
  });
  Json list = Json::array();
  const at::Tensor places = shap.places.contiguous();
  for (std::int64_t i = 0; i < places.size(0); ++i) {
    Json row = all.row(places.data_ptr<std::int64_t>()[i], /*is_shown=*/false);
    row["base"] = json_of(of_target.base[i]);
    row["prediction"] = json_of(of_target.predicted[i]);
    row["shap"] = Json::object();
    for (std::size_t k = 0; k < rows.columns.size(); ++k)
      row["shap"][rows.columns[k].name] =
          json_of(of_target.values[i][static_cast<std::int64_t>(k)]);
    list.push_back(std::move(row));
  }
  return {{"background_rows", shap.background_rows}, {"mean_abs", mean}, {"rows", list}};
}

/// A target's values as people read them: of several positions the mean, as explained_outputs() has
/// it; nothing of classes at several positions.
Json actual_json(const TargetSpec& spec, const at::Tensor& values, std::int64_t place) {
  if (spec.kind == TargetKind::kClasses) {
    if (spec.position_dimensions() > 0)
      return {};
    const auto number = values[place].item<std::int64_t>();
    const bool is_known = number >= 0 && number < spec.class_count();
    return is_known ? Json(spec.class_names[static_cast<std::size_t>(number)]) : Json();
  }
  const at::Tensor row = values[place].to(at::kDouble).reshape({-1, spec.width()}).mean(0);
  return row.size(0) == 1 ? json_of(row[0].item<double>()) : json_of(row);
}

class TargetReasons {
 public:
  TargetReasons(const ExplainedRows& rows, const AllRows& all, std::size_t target,
                const ExplainSettings& settings)
      : rows_(rows), all_(all), target_(target), spec_(rows.targets[target]), settings_(settings) {
    losses_ = all.joined([&](const Predictions& predictions, const Batch& batch) {
                   return row_losses(predictions[target_], batch, target_, spec_);
                 })
                  .contiguous();
    actual_ = all.joined([&](const Predictions&, const Batch& batch) {
      return TargetBatch::original(batch, target_, spec_).values();
    });
    outputs_ = all.joined([&](const Predictions& predictions, const Batch&) {
      return explained_outputs(predictions[target_], spec_);
    });
    predicted_ = all.joined([&](const Predictions& predictions, const Batch&) {
      return spec_.kind == TargetKind::kClasses && spec_.position_dimensions() == 0
                 ? decided(predictions[target_])
                 : at::Tensor();
    });
  }

  void add_rows(Json& to) const {
    to["loss"] = {{"name", loss_name(spec_)}};
    to["worst_rows"] = listed(losses_, "loss");
    const at::Tensor confidence = all_.joined([&](const Predictions& predictions, const Batch& b) {
      return wrong_confidence(predictions[target_],
                              TargetBatch::original(b, target_, spec_).values(), spec_);
    });
    if (confidence.defined())
      to["confident_wrong"] = listed(confidence, "confidence");
    const at::Tensor doubt = all_.joined([&](const Predictions& predictions, const Batch&) {
      return doubts(predictions[target_], spec_);
    });
    if (doubt.defined())
      to["doubtful_rows"] = listed(doubt, "doubt");
    Json buckets = Json::array();
    for (const LossBucket& bucket : loss_buckets(losses_)) {
      Json numbers = Json::array();
      for (const std::int64_t place : bucket.places) {
        if (static_cast<std::int64_t>(numbers.size()) < kMostRowsOfBucket)
          numbers.push_back(all_.number(place));
      }
      buckets.push_back({{"from", bucket.from},
                         {"to", bucket.to},
                         {"count", bucket.places.size()},
                         {"rows", std::move(numbers)}});
    }
    to["loss_buckets"] = std::move(buckets);
  }

  void add_subgroups(Json& to) const {
    std::vector<Levels> columns;
    for (std::size_t i = 0; i < rows_.columns.size(); ++i) {
      const ExplainedColumn& column = rows_.columns[i];
      if (!column.has_values)
        continue;
      const at::Tensor& values = all_.values(i);
      if (!column.is_category) {
        columns.push_back(quantile_levels(column.name, values));
        continue;
      }
      const at::Tensor codes =
          at::where(at::isnan(values), at::full_like(values, -1), values).to(at::kLong);
      Levels levels = category_levels(column.name, codes, column.names);
      if (static_cast<std::int64_t>(levels.names.size()) <= kMostLevels)
        columns.push_back(std::move(levels));
    }
    const SubgroupSettings settings;
    const FoundSubgroups found = find_subgroups(columns, losses_, settings);
    Json list = Json::array();
    for (const Subgroup& group : found.found) {
      if (list.size() == kMostSubgroups)
        break;
      Json where = Json::array();
      for (const Subgroup::Condition& one : group.where)
        where.push_back({{"column", one.column}, {"level", one.level}});
      list.push_back({{"where", where},
                      {"rows", group.rows},
                      {"mean_loss", json_of(group.mean_loss)},
                      {"mean_loss_outside", json_of(group.mean_loss_outside)},
                      {"p_value", group.p_value}});
    }
    to["subgroups"] = {{"tried", found.tried},
                       {"least_rows", settings.least_rows},
                       {"significance", settings.significance},
                       {"found", std::move(list)}};
  }

 private:
  /// The rows with the largest values.
  Json listed(const at::Tensor& values, const char* name) const {
    const at::Tensor places = largest(values, settings_.listed_rows).contiguous();
    Json list = Json::array();
    for (std::int64_t i = 0; i < places.size(0); ++i) {
      const std::int64_t place = places.data_ptr<std::int64_t>()[i];
      Json row = all_.row(place, /*is_shown=*/true);
      row[name] = json_of(values[place].item<double>());
      row["actual"] = actual_json(spec_, actual_, place);
      row["predicted"] = predicted_.defined()    ? actual_json(spec_, predicted_, place)
                         : outputs_.size(1) == 1 ? json_of(outputs_[place][0].item<double>())
                                                 : json_of(outputs_[place]);
      list.push_back(std::move(row));
    }
    return list;
  }

  const ExplainedRows& rows_;
  const AllRows& all_;
  const std::size_t target_;
  const TargetSpec& spec_;
  const ExplainSettings& settings_;
  at::Tensor losses_;     // float64 [N]
  at::Tensor actual_;     // as the data has it
  at::Tensor outputs_;    // float64 [N, K]
  at::Tensor predicted_;  // of classes: int64 [N]
};

}  // namespace

Json explain(const ExplainedRows& rows, const std::vector<Measure>& measures, const RowTexts& texts,
             const ExplainSettings& settings) {
  if (rows.rows() < 2) {
    throw DataError("reasons are found by exchanging values between rows, and there " +
                    std::string(rows.rows() == 1 ? "is one row" : "are none") +
                    "; explain on more rows");
  }
  const RandomStreams random(RandomStreams(settings.seed).seed("explain"));
  const AllRows all(rows, texts);
  Json result{{"rows", rows.rows()},
              {"seed", settings.seed},
              {"parts", Json::array()},
              {"targets", Json::array()}};
  for (const ExplainedPart& part : rows.parts)
    result["parts"].push_back({{"name", part.name}, {"rows", part.rows.size()}});
  std::vector<std::vector<Importance>> importances = permutation_importance(
      rows, correlated_groups(rows), measures, settings.repeats, random.part("importance", 0));
  std::vector<std::vector<std::size_t>> dependent;
  std::set<std::size_t> any_dependent;
  for (std::vector<Importance>& of_target : importances) {
    sort_by_mean(of_target);
    dependent.push_back(flat_columns(rows, of_target, settings.columns));
    any_dependent.insert(dependent.back().begin(), dependent.back().end());
  }
  std::vector<PartialDependence> dependences;
  for (const std::size_t column : any_dependent) {
    const at::Tensor grid = grid_of(rows, rows.columns[column], settings.grid_points);
    if (grid.size(0) > 0)
      dependences.push_back(partial_dependence(rows, column, grid));
  }
  const ShapValues shap = shap_values(rows, settings.shap, random.part("shap", 0));
  for (std::size_t t = 0; t < rows.targets.size(); ++t) {
    Json target{{"target", rows.targets[t].name},
                {"kind", name_of(rows.targets[t].kind)},
                {"outputs", output_names(rows.targets[t])},
                {"importance", importance_json(rows, measures[t], importances[t])},
                {"partial_dependence", Json::array()},
                {"shap", shap_json(rows, all, shap, t)}};
    for (const std::size_t column : dependent[t]) {
      for (const PartialDependence& one : dependences) {
        if (one.column == column)
          target["partial_dependence"].push_back(dependence_json(rows, one, t));
      }
    }
    const TargetReasons reasons(rows, all, t, settings);
    reasons.add_rows(target);
    reasons.add_subgroups(target);
    result["targets"].push_back(std::move(target));
  }
  return result;
}

}  // namespace treadle::explain
