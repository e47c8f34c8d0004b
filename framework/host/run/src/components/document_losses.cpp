#include "components/document_losses.h"

#include <algorithm>
#include <utility>

#include <treadle/base/json_words.h>

#include "components/target_defaults.h"
#include "components/training_components.h"
#include "document/document_slots.h"
#include "document/training_plan.h"

namespace treadle::internal {
namespace {

void expect_each_target_has_a_loss(const ResolvedWorkflow& workflow,
                                   const std::vector<TargetSpec>& targets,
                                   const std::vector<Objective::Term>& terms) {
  for (std::size_t target = 0; target < targets.size(); ++target) {
    const bool has_loss = std::any_of(terms.begin(), terms.end(), [&](const Objective::Term& term) {
      return term.target == target;
    });
    if (!has_loss) {
      slots_of(workflow, "loss")
          .back()
          .fail("", "the target \"" + targets[target].name +
                        "\" has no loss; add one to the list, or leave the "
                        "target out of the data");
    }
  }
}

}  // namespace

bool DocumentLosses::are_additive() const {
  return std::all_of(losses.begin(), losses.end(),
                     [](const std::unique_ptr<Loss>& loss) { return loss->is_additive(); });
}

DocumentLosses make_losses(const Runtime& runtime, const ResolvedWorkflow& workflow,
                           const std::vector<TargetSpec>& targets) {
  DocumentLosses made;
  const std::vector<Config> given = slots_of(workflow, "loss");
  std::vector<std::string> names;
  for (const Config& slot : given) {
    Objective::Term term;
    term.target = target_of(targets, slot);
    term.factor = slot.get_or<double>("factor", 1);
    const std::string& target = targets[term.target].name;
    term.name = given.size() == 1 ? "loss" : target;
    if (std::find(names.begin(), names.end(), term.name) != names.end())
      term.name = target + "." + name_in(slot);
    if (std::find(names.begin(), names.end(), term.name) != names.end())
      slot.fail("use", "this loss of \"" + target + "\" is given twice; leave one of them out");
    names.push_back(term.name);
    made.losses.push_back(make_in<Loss>(runtime, slot, "loss"));
    term.loss = made.losses.back().get();
    made.terms.push_back(term);
  }
  expect_each_target_has_a_loss(workflow, targets, made.terms);
  return made;
}

void expect_whole_batches(const GradientStrategy& strategy, const Config& slot,
                          const std::string& loss) {
  if (!strategy.splits_batch())
    return;
  slot.fail("", "takes batches in parts, and the loss " + quote_text(loss) +
                    " is computed over whole batches; leave \"gradients\" out, or choose a loss "
                    "that is a sum over rows");
}

/// A loss that is no sum over rows cannot be computed in parts.
void expect_whole_batches(const Runtime& runtime, const ResolvedWorkflow& workflow,
                          const std::vector<Objective::Term>& terms) {
  const std::vector<Config> given = slots_of(workflow, "loss");
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (terms[i].loss->is_additive())
      continue;
    const nlohmann::json& shards = workflow.resolved.at("resources").at("shards");
    if (shards.is_number() && shards.get<int>() > 1) {
      given[i].fail("use",
                    "is computed over whole batches and cannot be cut into shards; set "
                    "resources.shards to 1");
    }
    if (const auto strategy = make_gradients(runtime, workflow)) {
      expect_whole_batches(*strategy, workflow.slot("training").child("gradients"),
                           given[i].get<std::string>("use"));
    }
    if (training_plan_of(runtime, workflow).batch_size == 1) {
      given[i].fail("use",
                    "is computed over whole batches, and of one row it has no gradient; set "
                    "training.batch_size to 2 or more");
    }
  }
}

}  // namespace treadle::internal
