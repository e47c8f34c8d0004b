// The Temporal Fusion Transformer beside PyTorch's: numbers of temporal_fusion_reference.py, which
// says how it fills weights.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/tensor/task_random.h>

#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr std::int64_t kSteps = 5;
constexpr std::int64_t kHorizon = 3;

struct FusionCase {
  const char* name;
  bool has_static;
  std::vector<double> forecast;  // [2, 3, 2]
  std::vector<double> slopes;    // of each parameter Σ gradient_i cos(i / 2)
};

// python3 plugins/forecasting/test/temporal_fusion_reference.py
std::vector<FusionCase> fusion_cases() {
  return {{"WithStatic",
           true,
           {0.24284942177177837, 0.6451187749938461, 0.3088328230615921, 0.6318214171389135,
            0.30099813722357394, 0.6572313992736396, 0.10102788220990616, 0.6999659671507261,
            0.15346119244418305, 0.6989291419273307, 0.2441482755258616, 0.6623072051761322},
           {0.000833734251702792,    0.002285315750444087,    -9.957366087908794e-06,
            -0.00013339092275192104, 0.0001535584546791051,   5.918917253653594e-05,
            -0.0001108287223682942,  0.002007132719507345,    -6.094574217116313e-05,
            0.0001207983982598169,   0.0001225597992079288,   -0.0009803417961463832,
            0.00024923881144272046,  0.0007175270967819498,   -0.002880952606284493,
            -0.0045249894231729915,  -9.107042788295472e-05,  4.0283759534834014e-05,
            0.002665451173259799,    0.004789518913483663,    -0.0002364067952864181,
            2.9399086230069016e-08,  -8.994877590388764e-08,  -1.255480093283541e-07,
            6.164695350529846e-08,   8.380167905284149e-08,   4.014397951029017e-09,
            3.3542138474895243e-08,  2.010312365420588e-08,   -0.000911255101895771,
            0.0008962437812257382,   0.005729983136672807,    -0.005648614354809495,
            -0.007607812202278947,   -0.0021503385193673663,  -0.05568066751665613,
            -0.027329456798416987,   0.000498732013601366,    -0.0018481501681423059,
            0.0027042800797095383,   -0.0015925062162263904,  -0.005358929857212719,
            -0.00015769424396378922, -0.001089240418801373,   0.00373787056389025,
            -0.00021395910199211566, 0.00017007917166589266,  0.0002825399768532527,
            -0.0001951916123609997,  -0.00012564036277631558, 4.9797917864488324e-05,
            -0.0023981371266765966,  -0.0020659884885737946,  0.0002978959106768064,
            -0.000250075501873451,   -4.0997688071702623e-10, 1.0495207829409046e-08,
            -4.833881814644023e-09,  -1.8643749220468605e-08, 9.034409616247617e-09,
            -5.684416593433161e-09,  -3.375620919055763e-09,  9.134655935458561e-09,
            -1.6785088570660327e-09, 0.011155035721329483,    -0.0009581539837872511,
            -0.0008940797430498464,  0.000327884143348107,    0.001629430166426033,
            -0.0002514295663774194,  -0.0035028224703171035,  -0.00017506377682738783,
            -0.031166069853316068,   0.026792051856589106,    -0.03148091726865131,
            0.027572282764646683,    -1.7273835978410017e-09, 1.2732146909593126e-07,
            -2.466123693888366e-07,  2.2792070618902516e-07,  -9.533345777706751e-08,
            6.267349511688184e-07,   1.5585362260923442e-07,  1.0317106256930713e-07,
            2.68114739782287e-08,    0.37386147945446124,     0.0032161212311458583,
            0.02124780829698079,     0.02861635042683924,     -0.010921171096788591,
            0.004083306851387814,    -0.022651524202281018,   -0.026724407407913403,
            -0.018059308026132433,   -0.040011197808299835,   0.006197877273057251,
            -0.020361702145504288,   0.046659215985014026,    0.04665921598501402,
            -0.06538295540020074,    -0.055664208848752665,   -0.040166558314466166,
            -0.04016655831446618,    0.11159749870443178,     -0.01012018917630264,
            -0.3501037774557739,     0.18990755355691596,     0.004255754378459833,
            0.004462325731344056,    -0.0024116186985011978,  -0.19361704622321008,
            0.03815118646465237,     0.023227920336454242,    -0.039193875504261746,
            0.1680424233212885,      -0.058274463031575505,   -2.0670491908863493e-05,
            -6.232397061464392e-05,  0.013590748939909372,    0.06985079483111781,
            0.012244904736072289,    -0.029543137827197564,   -0.2568509860735827,
            -0.07945016092830577,    -0.18608552137779077,    0.17179030953542024,
            0.17535365289383228,     0.012846263397382665,    -0.5628459621225607,
            -0.009034068893410916,   -0.10363930532654334,    0.15939912595770983,
            -0.6552747345699239,     -0.027226541980004945,   0.07914283499947421,
            0.24858349560046508,     0.4003522926111527,      -0.37399165813561125}},
          {"WithoutStatic",
           false,
           {0.474330940822072, 1.0591752884949317, 0.48646995968840134, 1.0699203206601204,
            0.4721706940771384, 1.0468575148790806, 0.3088120726300495, 0.9633662572155719,
            0.3334569066045755, 0.9797975956323186, 0.367460234547453, 0.9887633797501723},
           {0.0018684933269569447,  0.012884748022613933,    3.182569891025963e-07,
            -7.456743920488582e-08, -1.9237707680048806e-06, 4.229256567444153e-07,
            4.121995175406268e-07,  3.990063883512762e-07,   8.008757146371543e-07,
            8.096148854975054e-08,  0.0011019512959745419,   -0.0008383194479828259,
            -0.010558093495382056,  -0.000385502651399916,   -0.06996469467853117,
            0.02064873956913267,    0.05582111179461342,     -0.016043454446316354,
            -0.03653105564992859,   -0.04054672002729454,    -0.012126493655500493,
            0.031834702188657873,   1.2190895600167085e-06,  2.8364553646557028e-06,
            6.510585124075276e-06,  -2.7461150514179416e-06, -9.068295522565627e-06,
            -3.211844556022273e-06, -1.068688133802578e-05,  -1.2693916405779096e-06,
            -0.14721693671489688,   -0.01059360149436328,    -0.030664948726573237,
            0.008693123239845842,   0.10175178172552515,     0.016687868868539804,
            0.034176893334041794,   -0.0325110036829582,     0.11970883197886235,
            -0.20452662616206752,   0.15717930267602387,     0.08958001610726506,
            -0.10675044378222007,   -0.10675044378222008,    0.003038706557746713,
            0.0053572359961787455,  -0.0030713923436064532,  -0.0030713923436064584,
            0.2787390393182983,     -0.1778212883183446,     -0.6700198023278428,
            0.16695049093237455,    0.0024121816850765725,   -0.0008780511847986716,
            -0.0008756302617340802, 0.0002809166817491361,   -0.0005299863122548346,
            -0.0005663814860253342, 0.009549670559967175,    0.004409401905915821,
            1.1111625954816068e-06, -1.3918507751183872e-07, 8.058299676128402e-05,
            -0.0006084917506442221, 0.0007475593529194355,   0.0026506867734292254,
            -0.021656537349332552,  0.0038331580368948515,   -0.00229526802375513,
            0.0009849543855069058,  0.03453130998503984,     -0.003913758137957653,
            -0.040017398503178356,  -0.01413225864323475,    -0.1809747667015766,
            0.1443840089211408,     -0.099483592311052,      0.08286708320296629,
            0.12846961059425052,    0.289198385142282,       0.298773640610151,
            -0.37399165813561125}}};
}

std::vector<std::string> further_inputs(bool has_static) {
  return has_static ? std::vector<std::string>{"future", "static", "static.categories"}
                    : std::vector<std::string>{"future"};
}

LayerSpec fusion_spec(bool has_static, std::vector<std::int64_t> output = {kHorizon, 2}) {
  const std::int64_t rows = TensorSpec::kVaries;
  LayerSpec spec;
  spec.dtype = at::kDouble;
  spec.inputs = {TensorSpec({rows, kSteps, 2}, at::kDouble),
                 TensorSpec({rows, kHorizon, 2}, at::kDouble)};
  if (has_static) {
    spec.inputs.emplace_back(std::vector<std::int64_t>{rows, 2}, at::kDouble);
    spec.inputs.emplace_back(std::vector<std::int64_t>{rows, 1}, at::kLong);
    spec.inputs.back().vocabulary = {3};
  }
  spec.outputs = {{"output", std::move(output)}};
  return spec;
}

std::shared_ptr<graph::Graph> fusion(const LayerSpec& spec, Json parameters) {
  parameters["use"] = "temporal_fusion_transformer";
  const std::vector<std::string> names{"i1", "i2", "i3"};
  const std::vector<std::string> used(names.begin(), names.begin() + std::ssize(spec.inputs) - 1);
  const Json steps{{{"use", "input"}, {"names", used}},
                   {{"use", "graph"}, {"name", "net"}, {"builder", parameters}, {"using", used}}};
  const TaskRandom random(3);
  return graph::read_steps(Config(), steps, "", plugin().registry()).build(spec);
}

at::Tensor wave(std::vector<std::int64_t> sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes)
    count *= size;
  return ((at::arange(count, at::kDouble) * 0.37).cos() * 2).view(sizes);
}

std::vector<at::Tensor> fusion_inputs(bool has_static) {
  std::vector<at::Tensor> inputs{wave({2, kSteps, 2}), wave({2, kHorizon, 2}) * 0.5};
  if (has_static) {
    inputs.push_back(wave({2, 2}) - 1);
    inputs.push_back(at::tensor({2, 0}, at::kLong).view({2, 1}));
  }
  return inputs;
}

at::Tensor forecast_of(const graph::Graph& network, const std::vector<at::Tensor>& inputs) {
  graph::GraphState state(network);
  return network.run(inputs, state).front();
}

TEST(TemporalFusion, HasValuesAndGradientsOfPyTorchs) {
  for (const FusionCase& one : fusion_cases()) {
    SCOPED_TRACE(one.name);
    const auto network =
        fusion(fusion_spec(one.has_static),
               {{"hidden_size", 4}, {"num_heads", 2}, {"inputs", further_inputs(one.has_static)}});
    network->eval();
    std::vector<at::Tensor> parameters = network->parameters();
    ASSERT_EQ(parameters.size(), one.slopes.size());
    {
      const c10::NoGradGuard no_gradients;
      for (std::size_t k = 0; k < parameters.size(); ++k) {
        const at::Tensor i = at::arange(parameters[k].numel(), at::kDouble);
        parameters[k].copy_(
            ((i * 1.3 + static_cast<double>(k)).sin() * 0.6 + (parameters[k].dim() == 1 ? 0.4 : 0))
                .view(parameters[k].sizes()));
      }
    }

    const at::Tensor forecast = forecast_of(*network, fusion_inputs(one.has_static));
    (forecast.flatten() * at::arange(12, at::kDouble).cos()).sum().backward();

    EXPECT_TRUE(
        at::allclose(forecast.flatten(), at::tensor(one.forecast, at::kDouble), 1e-10, 1e-11))
        << forecast;
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const at::Tensor gradient = parameters[k].grad().flatten();
      EXPECT_NEAR(
          (gradient * (at::arange(gradient.numel(), at::kDouble) * 0.5).cos()).sum().item<double>(),
          one.slopes[k], 1e-7 * std::abs(one.slopes[k]) + 1e-13)
          << "parameter " << k;
    }
  }
}

// A step of the forecast depends on what is known of the steps up to it, not of those behind.
TEST(TemporalFusion, LooksAtNoLaterStep) {
  const c10::NoGradGuard no_gradients;
  const auto network = fusion(fusion_spec(false), Json::object());
  network->eval();
  std::vector<at::Tensor> inputs = fusion_inputs(false);
  const at::Tensor before = forecast_of(*network, inputs);
  inputs[1] = inputs[1].clone();
  inputs[1].select(1, 1).add_(1);

  const at::Tensor after = forecast_of(*network, inputs);

  EXPECT_TRUE(before.select(1, 0).equal(after.select(1, 0)));
  EXPECT_FALSE(before.select(1, 1).equal(after.select(1, 1)));
  EXPECT_FALSE(before.select(1, 2).equal(after.select(1, 2)));
}

// Weights tell which variables count, and which steps: both are means.
TEST(TemporalFusion, WeightsOfVariablesAndStepsSumToOne) {
  const c10::NoGradGuard no_gradients;
  const auto weights_of = [](const std::string& component, const Json& parameters,
                             const at::Tensor& x, const char* name) {
    LayerSpec spec;
    spec.inputs = {TensorSpec::of(x)};
    const TaskRandom random(5);
    const auto layer = plugin().make<LayerFactory>(component, parameters)->create(spec);
    LayerContext context;
    const std::vector<std::string> names{name};
    context.request_outputs(names);
    layer->forward({&x, 1}, context);
    return context.take_outputs().front();
  };
  const at::Tensor variables = at::randn({3, 2, 5, 4});
  const at::Tensor steps = at::randn({3, 6, 4});

  const at::Tensor of_variables =
      weights_of("variable_selection", Json::object(), variables, "weights");
  const at::Tensor of_steps =
      weights_of("interpretable_attention", {{"num_heads", 2}, {"queries", 2}}, steps, "attention");

  EXPECT_EQ(of_variables.sizes(), (std::vector<std::int64_t>{3, 2, 5}));
  EXPECT_TRUE(at::allclose(of_variables.sum(-1), at::ones({3, 2})));
  EXPECT_EQ(of_steps.sizes(), (std::vector<std::int64_t>{3, 2, 6}));
  EXPECT_TRUE(at::allclose(of_steps.sum(-1), at::ones({3, 2})));
  EXPECT_EQ(of_steps.select(1, 0).select(1, 5).abs().max().item<float>(), 0);
}

TEST(TemporalFusion, PredictsOneStepWithoutTheDimensionOfSteps) {
  const c10::NoGradGuard no_gradients;
  LayerSpec spec = fusion_spec(false, {4});
  spec.inputs[1].sizes[1] = 1;
  const auto network = fusion(spec, Json::object());
  const std::vector<at::Tensor> inputs{wave({2, kSteps, 2}), wave({2, 1, 2})};

  EXPECT_EQ(forecast_of(*network, inputs).sizes(), (std::vector<std::int64_t>{2, 4}));
}

TEST(TemporalFusion, RefusesWhatItCannotTake) {
  const auto refusal = [](const LayerSpec& spec, const Json& parameters) -> std::string {
    try {
      fusion(spec, parameters);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  LayerSpec shorter = fusion_spec(false);
  shorter.inputs[1].sizes[1] = 2;
  LayerSpec several = fusion_spec(false);
  several.outputs.push_back(several.outputs[0]);

  EXPECT_THAT(refusal(fusion_spec(false), {{"inputs", {"static"}}}),
              HasSubstr("must name \"future\""));
  EXPECT_THAT(refusal(fusion_spec(true), Json::object()),
              HasSubstr("has 1 further inputs (\"inputs\") and \"using\" names 3"));
  EXPECT_THAT(refusal(shorter, Json::object()),
              HasSubstr("takes [B, horizon, columns] as \"future\", of 3 steps, got"));
  EXPECT_THAT(refusal(several, Json::object()), HasSubstr("computes one output"));
  EXPECT_THAT(refusal(fusion_spec(false), {{"hidden_size", 6}}),
              HasSubstr("must divide hidden_size, 6"));
}

}  // namespace
}  // namespace treadle::testing
