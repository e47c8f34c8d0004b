#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace treadle::automl {

/// One kind of model of a portfolio, with its own part of the search space.
struct Family {
  std::string name;
  /// The value of the document's `model` that stands for it. Dimensions of `space` set values in
  /// it.
  nlohmann::json model;
  /// Other values of the document that go with it, by path. "$loss" stands for the loss of the
  /// task; null leaves the value out. Dimensions of all families within such a value are not its.
  nlohmann::json with = nlohmann::json::object();
  nlohmann::json space = nlohmann::json::object();
  /// Values of its first trial, by path; what it leaves out is drawn. Null: it has none, as those
  /// that take long.
  nlohmann::json start = nullptr;
  std::int64_t max_inputs = std::numeric_limits<std::int64_t>::max();  ///< columns of the model
  /// Estimated seconds of one core for a row in each epoch, and for each of its columns. Rather too
  /// many than too few: a family that takes too long is left out.
  double row_seconds = 0;
  double column_seconds = 0;

  bool operator==(const Family&) const = default;
};

/// Which models `auto` tries, and what all their documents have in common.
///
/// A family is one entry of portfolio.json, and nothing else: to add one, add an entry whose
/// `model` is a component that `workflow-runner plugins list` has. Families may share a path of
/// their spaces where its values are the same; two families with other values for one path
/// contradict each other. The same is true of `with`.
class Portfolio {
 public:
  /// Reads a portfolio. Throws DocumentError where it is none.
  static Portfolio parse(std::string_view text, std::string file);
  /// The one in portfolio.json.
  static Portfolio built_in();

  const std::vector<Family>& families() const { return families_; }
  /// Of "classification" and "regression": its loss, objective and metrics.
  const nlohmann::json& task(std::string_view name) const;
  /// Keys of `search` beside those that depend on the table.
  const nlohmann::json& search() const { return search_; }

  struct LeftOut {
    std::string family;
    std::string component;  ///< that no plugin offers
  };
  /// Takes out families with a component that no plugin offers.
  std::vector<LeftOut> leave_out_unless(
      const std::function<bool(const std::string& component)>& has_component);

  /// Those with these names; all for none. Throws UsageError for a name that no family has.
  std::vector<Family> families_named(const std::vector<std::string>& names) const;

  /// The document that a search over some families starts from, for a task: the values of all
  /// families, with the model of one.
  nlohmann::json document_of(const std::vector<Family>& families, std::string_view task) const;
  /// The space of such a search: a choice of `model`, and each dimension with the families that
  /// have it. `common`: dimensions of all families, beside those of the portfolio. Throws
  /// DocumentError where families contradict each other.
  nlohmann::json space_of(const std::vector<Family>& families, std::string_view task,
                          const nlohmann::json& common = nlohmann::json::object()) const;
  /// The points that such a search begins with: one for each family that has a start, in order.
  static nlohmann::json starts_of(const std::vector<Family>& families);

 private:
  std::string file_;
  std::vector<Family> families_;
  nlohmann::json tasks_;
  nlohmann::json search_;
  nlohmann::json document_;
  nlohmann::json space_;  // of all families
};

}  // namespace treadle::automl
