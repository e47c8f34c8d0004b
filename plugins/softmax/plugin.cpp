#include <treadle/plugin.h>

#include "adaptive_log_softmax.h"
#include "stream.h"
#include "top_k_router.h"
#include "variants.h"

namespace {

template <typename Layer>
void add(treadle::Registrar& registrar, std::string_view name) {
  registrar.add<treadle::FactoryOf<Layer>, treadle::LayerFactory>(name);
}

}  // namespace

TREADLE_PLUGIN(registrar) {
  using namespace treadle::softmax;
  add<TemperatureSoftmax>(registrar, "temperature_softmax");
  add<GridSoftmax>(registrar, "grid_softmax");
  add<TreeSoftmax>(registrar, "tree_softmax");
  add<GumbelSoftmax>(registrar, "gumbel_softmax");
  add<MaskedSoftmax>(registrar, "masked_softmax");
  add<Sparsemax>(registrar, "sparsemax");
  add<Entmax>(registrar, "entmax");
  add<MixtureSoftmax>(registrar, "mixture_softmax");
  add<AdaptiveLogSoftmax>(registrar, "adaptive_log_softmax");
  registrar.add<TopKRouterFactory, treadle::LayerFactory>("top_k_router");
}
