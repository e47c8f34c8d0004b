#include <treadle/plugin.h>

#include "transformers.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::transformers;
  registrar.add<TransformerEncoder, treadle::GraphBuilder>("transformer_encoder");
  registrar.add<TransformerDecoder, treadle::GraphBuilder>("transformer_decoder");
  registrar.add<Transformer, treadle::GraphBuilder>("transformer");
}
