#include <treadle/core/model/factory_of.h>
#include <treadle/plugin.h>

#include "images.h"
#include "sequences.h"
#include "tables.h"
#include "tokens.h"

TREADLE_PLUGIN(registrar) {
  using namespace treadle::networks;
  registrar.add<ResNet, treadle::GraphBuilder>("resnet");
  registrar.add<UNet, treadle::GraphBuilder>("unet");
  registrar.add<MlpMixer, treadle::GraphBuilder>("mlp_mixer");
  registrar.add<VisionTransformer, treadle::GraphBuilder>("vit");
  registrar.add<TemporalConvolutions, treadle::GraphBuilder>("tcn");
  registrar.add<Gpt, treadle::GraphBuilder>("gpt");
  registrar.add<Bert, treadle::GraphBuilder>("bert");
  registrar.add<Mlp, treadle::GraphBuilder>("mlp");
  registrar.add<TabM, treadle::GraphBuilder>("tabm");
  registrar.add<FtTransformer, treadle::GraphBuilder>("ft_transformer");
  registrar.add<treadle::FactoryOf<ClassToken>, treadle::LayerFactory>("class_token");
  registrar.add<treadle::FactoryOf<FeatureTokenizer>, treadle::LayerFactory>("feature_tokenizer");
}
