#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/document.h>

namespace treadle {

/// A workflow document that a program writes: parsed from text, or built part by part. Checked by
/// Runtime::resolve(), which names everything that is wrong at once. A copy is independent.
///
///     Workflow workflow("iris");
///     workflow.use("data", "csv", {{"path", "iris.csv"}, {"target", "species"}})
///         .add("transforms", "standardize")
///         .use("model", "mlp", {{"hidden", {16, 16}}});
class Workflow {
 public:
  using Parameters = std::initializer_list<std::pair<std::string_view, nlohmann::json>>;

  /// Without anything but a name and the format's version.
  explicit Workflow(std::string name);
  /// From the text of a document, with comments or without. `place` is what messages call it, and
  /// relative paths are meant relative to its folder. Throws DocumentError with every error of
  /// syntax.
  static Workflow parse(std::string_view text, std::string place = "workflow");

  /// Puts a component in a slot ("data", "model", "training.callbacks.0"), replacing the one
  /// in it.
  Workflow& use(std::string_view slot, std::string component, Parameters parameters = {});
  /// Appends a component to a list ("transforms", "metrics", "training.callbacks"); a single value
  /// in its place becomes its first element.
  Workflow& add(std::string_view list, std::string component, Parameters parameters = {});
  /// Sets one value by its path, as `--set` does: "training.epochs". Throws UsageError where
  /// nothing can be set there; the document is then as it was.
  Workflow& set(std::string_view path, const nlohmann::json& value);

  const nlohmann::json& json() const { return document_->value(); }
  /// Later changes do not affect it.
  std::shared_ptr<const Document> document() const { return document_; }

 private:
  explicit Workflow(std::shared_ptr<const Document> document) : document_(std::move(document)) {}

  std::shared_ptr<const Document> document_;  ///< replaced by each change
  std::string text_;                          ///< empty of one that was built
  std::string place_;
  std::vector<std::pair<std::string, std::string>> changes_;  ///< to the text, in their order
};

}  // namespace treadle
