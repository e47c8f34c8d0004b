#include "closed_form.h"

#include <optional>

#include <c10/core/GradMode.h>

#include <treadle/base/error.h>

#include "last_layer.h"

namespace treadle {

LoopNeeds ClosedFormTraining::do_needs() const {
  LoopNeeds needs;
  needs.updates = false;
  return needs;
}

void ClosedFormTraining::do_train(TrainingSession& session) {
  while (session.next_epoch()) {
    while (const std::optional<Batch> batch = session.next_batch())
      sums_.add(last_layer(session, *batch).rows);
    set_last_layer(session, sums_.solution());
    if (session.epochs() != 1)
      session.stop("the last layer is computed from all rows; more epochs change nothing");
    session.finish_epoch(session.evaluate("training").loss);
  }
}

void ClosedFormTraining::set_last_layer(TrainingSession& session,
                                        const RidgeSums::Solution& solution) {
  Batch batch;
  TREADLE_EXPECTS(session.read("training")->next(batch), "there are no rows to train on");
  const LastLayer layer = last_layer(session, batch);
  const at::NoGradGuard no_gradients;
  layer.weight.copy_(solution.weight);
  if (layer.bias.defined())
    layer.bias.copy_(solution.bias);
}

}  // namespace treadle
