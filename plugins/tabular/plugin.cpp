#include <treadle/plugin.h>

#include "intersample_attention.h"
#include "random_features.h"
#include "sparse_masks.h"
#include "stream.h"
#include "tables.h"

namespace {

template <typename Layer>
void add(treadle::Registrar& registrar, std::string_view name) {
  registrar.add<treadle::FactoryOf<Layer>, treadle::LayerFactory>(name);
}

}  // namespace

TREADLE_PLUGIN(registrar) {
  using namespace treadle::tabular;
  registrar.add<TableEmbedding, treadle::GraphBuilder>("table_embedding");
  registrar.add<TabNet, treadle::GraphBuilder>("tabnet");
  registrar.add<Saint, treadle::GraphBuilder>("saint");
  add<GhostBatchNorm>(registrar, "ghost_batch_norm");
  add<RelaxedPrior>(registrar, "relaxed_prior");
  add<EntropyPenalty>(registrar, "entropy_penalty");
  add<Scale>(registrar, "scale");
  add<IntersampleAttention>(registrar, "intersample_attention");
  add<RandomFourierFeatures>(registrar, "random_fourier_features");
}
