// Every builder keeps what GraphContract asks.
#include <treadle/testing/graph/graph_contract.h>

#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using Shapes = std::vector<std::vector<std::int64_t>>;

/// Of one layer with two heads; `more` has keys beside that.
GraphCase transformer_case(std::string name, const std::string& component,
                           Json more = Json::object(), Shapes inputs = {{4, 6}},
                           std::vector<Role> roles = {}) {
  GraphCase one;
  one.name = std::move(name);
  if (more.is_null())
    more = Json::object();
  more["num_heads"] = more.value("num_heads", 2);
  more["dim_feedforward"] = 5;
  for (const char* const key : {"num_layers", "num_encoder_layers", "num_decoder_layers"}) {
    if ((component == "transformer") == (std::string(key) != "num_layers"))
      more[key] = 1;
  }
  one.make = [component, more = std::move(more)] {
    return plugin().make<GraphBuilder>(component, more);
  };
  one.components = [] { return std::cref(components()); };
  one.inputs = std::move(inputs);
  one.roles = std::move(roles);
  one.is_whole = false;
  return one;
}

constexpr Role kNumbers = Role::kFeatures;

INSTANTIATE_TEST_SUITE_P(
    Transformers, GraphContract,
    ::testing::Values(
        transformer_case("Encoder", "transformer_encoder"),
        transformer_case("EncoderOfToday", "transformer_encoder",
                         {{"norm_first", true},
                          {"norm", "rms_norm"},
                          {"activation", "swiglu"},
                          {"dropout", 0},
                          {"bias", false},
                          {"is_causal", true},
                          {"num_heads", 3},
                          {"num_kv_heads", 1},
                          {"window", 2},
                          {"rotary", {{"theta", 100}}}}),
        transformer_case("EncoderOfLengths", "transformer_encoder", {{"final_norm", true}},
                         {{4, 6}, {}}, {kNumbers, Role::kLengths}),
        transformer_case("EncoderOfSegmentsAndMasks", "transformer_encoder",
                         {{"activation", "gelu"}}, {{4, 6}, {4}, {4, 4}},
                         {kNumbers, Role::kSegments, Role::kMask}),
        transformer_case("Decoder", "transformer_decoder", {}, {{4, 6}, {3, 5}}),
        transformer_case("PreNormDecoderOfPadding", "transformer_decoder",
                         {{"norm_first", true}, {"activation", "geglu"}}, {{4, 6}, {4, 5}, {}, {4}},
                         {kNumbers, kNumbers, Role::kLengths, Role::kMask}),
        transformer_case("DecoderOfSegments", "transformer_decoder",
                         {{"rotary", Json::object()}, {"num_heads", 3}}, {{4, 6}, {3, 5}, {4}, {3}},
                         {kNumbers, kNumbers, Role::kSegments, Role::kSegments}),
        transformer_case("Both", "transformer", {}, {{4, 6}, {3, 6}}),
        transformer_case("BothOfPaddingAndSegments", "transformer",
                         {{"norm_first", true}, {"activation", "reglu"}, {"final_norm", false}},
                         {{4, 6}, {3, 4}, {}, {3}, {4}, {3}},
                         {kNumbers, kNumbers, Role::kLengths, Role::kMask, Role::kSegments,
                          Role::kSegments})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
