#include <treadle/testing/component_contract.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

const Json kOneLayer{{"num_layers", 1}, {"num_heads", 1}};

INSTANTIATE_TEST_SUITE_P(Plugin, ComponentContract,
                         ::testing::ValuesIn(components_of(TREADLE_PLUGIN_FOLDER,
                                                           {{"transformer_encoder", kOneLayer},
                                                            {"transformer_decoder", kOneLayer},
                                                            {"transformer",
                                                             {{"num_encoder_layers", 1},
                                                              {"num_decoder_layers", 1},
                                                              {"num_heads", 1}}}})),
                         CaseName());

}  // namespace
}  // namespace treadle::testing
