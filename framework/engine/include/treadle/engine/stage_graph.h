#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace treadle::engine {

/// A workflow as stages that depend on each other: load → split → train → report. Checked as a
/// graph, drawn as a graph, run as a oneTBB flow graph with independent stages at once.
class StageGraph {
 public:
  using Work = std::function<void(std::stop_token)>;

  StageGraph();
  ~StageGraph();
  StageGraph(StageGraph&&) noexcept;

  /// Adds a stage that runs when every stage in `after` has finished. `label` is what pictures show
  /// ("train fold 1"); empty means the name. Stages may be added in any order.
  void add(std::string name, std::vector<std::string> after, Work work, std::string label = "");

  /// Throws ContractViolation listing every mistake: a name used twice, a stage that does not
  /// exist, a cycle (as a path of names).
  void check() const;

  /// Names in an order that respects all dependencies; among independent stages, the order they
  /// were added in.
  std::vector<std::string> order() const;

  /// Checks, then runs. A stage whose predecessor failed is skipped; a requested stop skips what
  /// has not started. Afterwards rethrows the failure of the first failed stage in order(). Must be
  /// called inside ThreadBudget::run().
  void run(std::stop_token stop = {}) const;

  /// Graphviz source.
  std::string dot(const std::string& title) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace treadle::engine
