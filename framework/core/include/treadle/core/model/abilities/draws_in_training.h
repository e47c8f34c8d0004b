#pragma once

namespace treadle {

/// A layer that draws random numbers in training and none in evaluation: dropout, noise.
///
/// Monte Carlo dropout (Y. Gal and Z. Ghahramani, "Dropout as a Bayesian Approximation", 2016) puts
/// these modules into training mode for a prediction, by train(), and all others, batch norms too,
/// into evaluation mode. So the draws must be all that the module does differently in training: a
/// layer with a batch norm of its own has them in a module inside.
class DrawsInTraining {
 public:
  virtual ~DrawsInTraining();
  /// False where a parameter of the layer turns the draws off: a rate of 0.
  virtual bool draws_in_training() const { return true; }
};

}  // namespace treadle
