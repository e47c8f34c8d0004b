#include "flow/assembly/callee_checks.h"

#include <cstdint>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/model/abilities/takes_indices.h>

#include "flow/selector.h"

namespace treadle::graph {
namespace {

std::optional<std::string> misfit_of_router(const Callee& router, std::int64_t branches,
                                            bool by_row) {
  const auto* selector = router.ability<Selector>();
  if (selector == nullptr)
    return std::nullopt;
  const std::int64_t last = selector->last();
  if (last >= branches || (selector->first() != last && last + 1 < branches)) {
    const std::string chosen = selector->first() == last ? "branch " + std::to_string(last)
                                                         : "branches 0 to " + std::to_string(last);
    return "the router " + quote_text(router.type()) + " chooses " + chosen +
           ", but the switch has branches 0 to " + std::to_string(branches - 1);
  }
  if (selector->chooses_by_row() == by_row)
    return std::nullopt;
  return std::string("the switch goes by ") + (by_row ? "row" : "batch") + ", but its router " +
         quote_text(router.type()) + " chooses " +
         (by_row ? "once for the whole batch" : "for each row") + "; set both to the same";
}

/// The number of the first branch that has a state. Row i of a state belongs to row i of the batch,
/// so a branch that gets other rows in every forward can have none.
std::optional<std::string> branch_with_state(const std::vector<Callee>& callees) {
  for (std::size_t i = 1; i < callees.size(); ++i) {
    if (callees[i].keeps_state())
      return std::to_string(i - 1);
  }
  return std::nullopt;
}

std::optional<std::string> misfit(const WantedNode& node, const std::vector<Callee>& callees) {
  if (node.kind == NodeKind::kMixture) {
    if (const auto expert = branch_with_state(callees))
      return "expert " + *expert +
             " has a state, but a sparse mixture gives it other rows in every forward; leave "
             "\"sparse\" out";
  }
  if (node.kind != NodeKind::kSwitch)
    return std::nullopt;
  const bool by_row = node.step->switch_by == SwitchBy::kRow;
  const auto branches = static_cast<std::int64_t>(callees.size()) - 1;
  if (auto of_router = misfit_of_router(callees.front(), branches, by_row))
    return of_router;
  const auto branch = by_row ? branch_with_state(callees) : std::nullopt;
  if (!branch)
    return std::nullopt;
  return "branch " + *branch +
         " has a state, but a switch by row gives it other rows in every forward; switch by batch, "
         "or let the state stand in front of the switch or behind it";
}

}  // namespace

std::optional<std::string> misfit_of_branches(const WantedNode& node,
                                              const std::vector<Callee>& callees) {
  auto message = misfit(node, callees);
  if (message)
    message->insert(0, quote_text(node.id) + ": ");
  return message;
}

void expect_numbers(const Callee& callee, std::span<const TensorSpec> inputs) {
  if (callee.is_adapted())
    return;
  const auto* takes = callee.ability<TakesIndices>();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_absent() || !c10::isIntegralType(inputs[i].dtype, /*includeBool=*/true) ||
        (takes != nullptr && takes->takes_indices(i)))
      continue;
    if (inputs[i].dtype == c10::ScalarType::Long) {
      throw DataError(
          "it computes with numbers, but " + inputs[i].text() +
          " are indices of tokens or categories; put {\"use\": \"embedding\"} in front, "
          "or add {\"use\": \"one_hot\"} to transforms");
    }
    throw DataError("it computes with floating-point numbers, but is given " + inputs[i].text());
  }
}

}  // namespace treadle::graph
