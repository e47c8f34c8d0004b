#include <treadle/plugin.h>

#include "class_losses.h"
#include "distribution_loss.h"
#include "ensemble_loss.h"
#include "number_losses.h"
#include "quantile_loss.h"
#include "whole_losses.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::losses;
  registrar.add<CrossEntropy, treadle::Loss>("cross_entropy");
  registrar.add<BceWithLogits, treadle::Loss>("bce_with_logits");
  registrar.add<EnsembleLoss, treadle::Loss>("ensemble");
  registrar.add<KlDiv>("kl_div");
  registrar.add<Mse>("mse");
  registrar.add<L1>("l1");
  registrar.add<SmoothL1>("smooth_l1");
  registrar.add<Quantile>("quantile");
  registrar.add<GaussianNll, treadle::Loss>("gaussian_nll");
  registrar.add<StudentTNll, treadle::Loss>("student_t_nll");
  registrar.add<NegativeBinomialNll, treadle::Loss>("negative_binomial_nll");
  registrar.add<GaussianMixtureNll, treadle::Loss>("gaussian_mixture_nll");
  registrar.add<Correlation>("correlation");
  registrar.add<Sharpe>("sharpe");
}
