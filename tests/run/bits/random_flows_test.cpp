// Random flows, each run in every way there is: the same bits. A failure shows the shortest flow
// that still fails. TREADLE_RANDOM_FLOWS=5000 tries that many instead of the usual few, and
// TREADLE_RANDOM_FLOWS_FROM=300 begins with that seed.
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <regex>
#include <set>
#include <string>

#include <gmock/gmock.h>

#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/core/model/forward_context.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/graph_state.h>
#include <treadle/host/run/runtime.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/support/test_device.h>

#include "random_flow.h"

namespace treadle::testing {
namespace {

using graph::Branches;
using graph::Execution;
using graph::GraphState;
using nlohmann::json;

std::uint64_t from_environment(const char* name, std::uint64_t usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : std::stoull(text);
}

struct Way {
  std::string name;
  Execution execution = Execution::kDynamic;
  Branches branches = Branches::kSequential;
  bool is_resumed = false;  ///< its states are saved and loaded before the last step
  c10::Device device = c10::kCPU;
};

constexpr const char* kEnd = "evaluated";
constexpr const char* kError = "error";
constexpr const char* kSurprise = "something else than a Treadle error";

/// Everything a training sees; tensors as bytes, so that two NaN are the same.
using Trace = std::vector<std::pair<std::string, std::string>>;

void note(Trace& trace, std::string name, const at::Tensor& tensor) {
  std::string bytes = "nothing";
  if (tensor.defined()) {
    at::Tensor flat = tensor.detach().cpu().add(0).contiguous();  // -0 is 0
    if (flat.is_floating_point())
      flat.masked_fill_(flat.isnan(), std::numeric_limits<double>::quiet_NaN());
    bytes.assign(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
  }
  trace.emplace_back(std::move(name), std::move(bytes));
}

at::Tensor rows_for(const RandomFlow& flow, std::int64_t rows, c10::Device device) {
  std::vector<std::int64_t> sizes = flow.input().sizes;
  sizes[0] = rows;
  const at::Tensor drawn = flow.input().dtype == at::kLong
                               ? at::randint(RandomFlow::kCategories, sizes, at::kLong)
                               : at::randn(sizes, at::TensorOptions(flow.input().dtype));
  return drawn.to(device);
}

/// Gradients through one step of time: the second batch reads states as numbers, though nobody cut
/// those of the first.
void note_one_step_gradients(Trace& trace, const RandomFlow& flow, graph::Graph& graph,
                             c10::Device device) {
  const TaskRandom random(2);
  ForwardContext context;
  context.set_truncated_bptt(true);
  for (const char* batch : {"first", "second"}) {
    const std::string of_batch = std::string("through one step, ") + batch + ", ";
    const at::Tensor input = rows_for(flow, 5, device);
    Outputs outputs(1);
    graph.forward({&input, 1}, outputs, context);
    note(trace, of_batch + "output", outputs[0]);
    if (outputs[0].requires_grad())
      outputs[0].square().sum().backward();
    for (auto& parameter : graph.named_parameters()) {
      note(trace, of_batch + "gradient of " + parameter.key(), parameter.value().grad());
      parameter.value().mutable_grad().reset();
    }
  }
}

/// Steps of gradient descent, gradients cut between them, the last with fewer rows; two batches
/// through one step of time; then a forward as in validation.
Trace trace_of(const RandomFlow& flow, const json& steps, const Way& way) {
  Trace trace;
  const auto graph = flow.build(steps);
  graph->set_execution(way.execution);
  graph->set_branches(way.branches);
  graph->to(way.device);
  auto state = std::make_unique<GraphState>(*graph);
  try {
    const auto parameters = graph->named_parameters();
    for (const std::int64_t rows : {7, 7, 7, 5}) {
      const std::string step = "step " + std::to_string(trace.size()) + ", ";
      const TaskRandom random(trace.size());
      for (const auto& parameter : parameters)
        parameter->mutable_grad().reset();
      if (way.is_resumed && rows == 5) {
        const StateDict saved = state->state();
        state = std::make_unique<GraphState>(*graph);
        state->load_state(saved);
        state->to(way.device);
      }
      const at::Tensor input = rows_for(flow, rows, way.device);
      if (at::isFloatingType(input.scalar_type()))
        input.set_requires_grad(rows == 7);
      const at::Tensor output = graph->run({&input, 1}, *state)[0];
      note(trace, step + "output", output);
      for (const std::string& tag : graph->tags())
        note(trace, step + "\"" + tag + "\"", state->tagged(tag));
      if (output.requires_grad())
        output.square().sum().backward();
      note(trace, step + "gradient of the input", input.grad());
      const at::NoGradGuard no_gradients;
      for (const auto& parameter : parameters) {
        note(trace, step + "gradient of " + parameter.key(), parameter->grad());
        if (parameter->grad().defined())
          parameter->sub_(parameter->grad(), 1e-3);
      }
      state->detach();
    }
    for (const auto& parameter : parameters)
      parameter->mutable_grad().reset();
    note_one_step_gradients(trace, flow, *graph, way.device);
    for (const auto& parameter : parameters)
      note(trace, parameter.key(), parameter.value());
    for (const auto& buffer : graph->named_buffers())
      note(trace, buffer.key(), buffer.value());
    const TaskRandom random(1);
    graph->eval();
    const at::NoGradGuard no_gradients;
    GraphState fresh(*graph);
    for (int forward = 0; forward < 2; ++forward) {
      const at::Tensor input = rows_for(flow, 4, way.device);
      note(trace, kEnd, graph->run({&input, 1}, fresh)[0]);
    }
  } catch (const Error& error) {
    trace.emplace_back(kError, error.what());
  } catch (const std::exception& error) {
    trace.emplace_back(kSurprise, error.what());
  }
  return trace;
}

std::string spoken(const Trace& trace, std::size_t index) {
  if (index == trace.size())
    return "nothing more";
  const auto& [name, value] = trace[index];
  return name == kError || name == kSurprise ? name + ": " + value : name;
}

/// Where they part; empty: nowhere.
std::string difference(const Trace& one, const Trace& other) {
  std::size_t at = 0;
  while (at < one.size() && at < other.size() && one[at] == other[at])
    ++at;
  return at == one.size() && at == other.size() ? "" : spoken(one, at) + " | " + spoken(other, at);
}

/// Leaves out what can be left out, from the outermost steps inwards, while `fails` stays true.
json shortest(json steps, const std::function<bool(const json&)>& fails) {
  const auto shorten = [&] {
    const json leaves = steps.flatten();
    for (const auto& [pointer, value] : leaves.items()) {
      for (json::json_pointer place(pointer); !place.empty(); place.pop_back()) {
        json less = steps;
        json& parent = less[place.parent_pointer()];
        if (parent.is_array()) {
          parent.erase(std::stoul(place.back()));
        } else {
          parent.erase(place.back());
        }
        if (fails(less)) {
          steps = std::move(less);
          return true;
        }
      }
    }
    return false;
  };
  while (shorten())
    continue;
  return steps;
}

/// Beside the first, in which everything is done as it is written.
std::vector<Way> ways_on(c10::Device device) {
  std::vector<Way> all{
      {"dynamic, branches at once", Execution::kDynamic, Branches::kParallel},
      {"dynamic, resumed", Execution::kDynamic, Branches::kSequential, /*is_resumed=*/true},
      {"compiled", Execution::kCompiled, Branches::kSequential},
      {"compiled, branches at once", Execution::kCompiled, Branches::kParallel},
      {"compiled, resumed", Execution::kCompiled, Branches::kSequential, /*is_resumed=*/true}};
  for (Way& way : all)
    way.device = device;
  return all;
}

/// A switch whose branches give other numbers of rows: a plan is for given sizes, and says so.
bool needs_to_be_dynamic(const Trace& trace) {
  return !trace.empty() && trace.back().first == kError &&
         trace.back().second.find("sizes that depend on numbers") != std::string::npos;
}

/// True if it ran to its end.
bool expect_every_way_the_same(const RandomFlow& flow, const Way& first,
                               const std::vector<Way>& ways) {
  const Trace wanted = trace_of(flow, flow.steps(), first);
  for (const auto& [name, text] : wanted)
    EXPECT_NE(name, kSurprise) << text << "\n" << flow.steps();
  for (const Way& way : ways) {
    const Trace trace = trace_of(flow, flow.steps(), way);
    const std::string found = difference(trace, wanted);
    if (found.empty() || needs_to_be_dynamic(trace))
      continue;
    const json shorter = shortest(flow.steps(), [&](const json& steps) {
      try {
        return !difference(trace_of(flow, steps, way), trace_of(flow, steps, first)).empty();
      } catch (const std::exception&) {  // it no longer builds
        return false;
      }
    });
    ADD_FAILURE() << way.name << ": " << found << "\ninput " << flow.input().text() << "\n"
                  << shorter;
  }
  return wanted.back().first == kEnd;
}

/// Has `compare` look at many flows; it returns whether a flow ran to its end.
template <typename Compare>
void for_each_flow(const Runtime& runtime, std::uint64_t usual, const Compare& compare) {
  const std::uint64_t first = from_environment("TREADLE_RANDOM_FLOWS_FROM", 1);
  const std::uint64_t count = from_environment("TREADLE_RANDOM_FLOWS", usual);
  std::uint64_t ended = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomFlow flow(runtime.registry(), seed);
    EXPECT_TRUE(flow.surprises().empty()) << flow.surprises().front();
    ended += compare(flow) ? 1 : 0;
  }
  // Else they fail all alike, and nothing was compared.
  EXPECT_GE(ended * 10, count * 8) << ended << " of " << count << " ran to their end";
}

TEST(RandomFlows, GiveTheSameBitsInEveryWay) {
  const Runtime runtime;
  for_each_flow(runtime, 60, [](const RandomFlow& flow) {
    return expect_every_way_the_same(flow, Way{"dynamic"}, ways_on(c10::kCPU));
  });
}

void add_names(const json& value, std::set<std::string>& names) {
  if (value.is_object() && value.contains("use") && value["use"].is_string())
    names.insert(value["use"].get<std::string>());
  if (value.is_string())
    names.insert(value.get<std::string>());
  if (value.is_structured()) {
    for (const json& part : value)
      add_names(part, names);
  }
}

// A layer that is never drawn is held to no law. Half a minute, so only where many are asked for.
TEST(RandomFlows, DrawEveryLayer) {
  constexpr std::uint64_t kEnough = 500;
  if (from_environment("TREADLE_RANDOM_FLOWS", 0) < kEnough)
    GTEST_SKIP() << "set TREADLE_RANDOM_FLOWS=500";
  const Runtime runtime;
  std::set<std::string> missing;
  for (const CatalogComponent& layer : runtime.catalog().components("layer"))
    missing.insert(layer.component->name);
  missing.erase("head");  // drawn where a model ends, by random documents
  for (std::uint64_t seed = 1; seed <= kEnough && !missing.empty(); ++seed) {
    std::set<std::string> drawn;
    add_names(RandomFlow(runtime.registry(), seed).steps(), drawn);
    for (const std::string& name : drawn)
      missing.erase(name);
  }
  EXPECT_THAT(missing, ::testing::IsEmpty());
}

/// Whether libtorch computes it by other operators there: it looks at all times of a sequence at
/// once on a CPU alone.
bool has_recurrent_layers(const RandomFlow& flow) {
  static const std::regex kRecurrent(R"re("(lstm|gru|rnn)")re");
  return std::regex_search(flow.steps().dump(), kRecurrent);
}

TEST(RandomFlows, GiveTheBitsOfTheCpuOnADevice) {
  const TestDevice* const device = TestDevice::chosen();
  if (device == nullptr || !device->draws_as_a_cpu())
    GTEST_SKIP() << "TREADLE_TEST_DEVICE names no device with the bits of a CPU";
  const Runtime runtime;
  for_each_flow(runtime, 12, [&](const RandomFlow& flow) {
    Way there{"dynamic, on the device"};
    there.device = device->device();
    std::vector<Way> ways = ways_on(there.device);
    if (!has_recurrent_layers(flow))
      ways.push_back(Way{"on the CPU"});
    return expect_every_way_the_same(flow, there, ways);
  });
}

TEST(RandomFlows, AreWrittenAsTheyWereRead) {
  const Runtime runtime;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const RandomFlow flow(runtime.registry(), seed);
    SCOPED_TRACE(flow.steps().dump());
    const auto rewritten = [&](const json& flow) {
      return graph::write_flow(graph::read_whole_flow(Config(flow), runtime.registry()));
    };

    const json written = rewritten({{"flow", flow.steps()}});

    EXPECT_EQ(rewritten(written), written);
    EXPECT_EQ(difference(trace_of(flow, written["flow"], {}), trace_of(flow, flow.steps(), {})),
              "");
  }
}

}  // namespace
}  // namespace treadle::testing
