// Branches one after the other and at once: the same pass, and what must follow tasks to other
// threads.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>

#include <ATen/ops/dropout.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <oneapi/tbb/flow_graph.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/tensor/task_random.h>

#include "compile/planned_parts.h"
#include "pass.h"

namespace treadle::graph {
namespace {

using namespace testing;
using ::testing::HasSubstr;

/// Waits until two threads are here, or gives up: whether they met. Whoever comes later waits for
/// nobody.
class Meeting {
 public:
  bool both_come() {
    std::unique_lock lock(mutex_);
    ++here_;
    arrived_.notify_all();
    return arrived_.wait_for(lock, std::chrono::seconds(5), [&] { return here_ >= 2; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  int here_ = 0;
};

/// Dropout in two branches, a tensor that branches and others use, one that a branch uses twice, a
/// graph within that has branches, too.
std::shared_ptr<Graph> tangled() {
  const TaskRandom random(3);
  const auto linear = [] { return torch::nn::Linear(6, 6); };
  const FlowBuilder inner =
      FlowBuilder::from(linear()).split({linear(), torch::nn::Dropout(0.5), linear()}).merge(add());
  const auto graph =
      FlowBuilder::from(linear())
          .tag("x")
          .split({FlowBuilder().residual(linear()).through(linear()),
                  FlowBuilder::from(linear()).through(torch::nn::Dropout(0.5)),
                  FlowBuilder::from(inner).through(linear()), torch::nn::Dropout(0.3), linear()})
          .merge(add())
          .through(plus_reference())
          .using_({"x"})
          .mixture_of_experts(softmax_router(6, 2),
                              {linear(), FlowBuilder::from(linear()).residual(linear())})
          .build();
  graph->to(at::kDouble);
  return graph;
}

/// A dynamic graph, and one whose plan says which branches run at once.
class BranchesRun : public ::testing::TestWithParam<Execution> {};

TEST_P(BranchesRun, GiveTheSameBitsOneByOneAndAtOnce) {
  const auto graph = tangled();
  const Pass expected = pass_through(*graph, Branches::kSequential);
  graph->set_execution(GetParam());
  for (int repeat = 0; repeat < 2; ++repeat)
    expect_same(pass_through(*graph, Branches::kSequential), expected);
  for (const int threads : {1, 2, 3, 8}) {
    SCOPED_TRACE(threads);
    with_threads(threads, [&] {
      for (int repeat = 0; repeat < 5; ++repeat)
        expect_same(pass_through(*graph, Branches::kParallel), expected);
    });
  }
}

// A zero would be a step of an optimizer with momentum or decay.
TEST_P(BranchesRun, HaveNoGradientsWhereNothingUsesWhatTheyGive) {
  const auto graph = FlowBuilder::from(torch::nn::Linear(6, 6))
                         .tag("used")
                         .split({torch::nn::Linear(6, 6), torch::nn::Linear(6, 6)})
                         .tag_group("branch")
                         .at({"used", "branch_0"})
                         .merge(add())
                         .build();
  graph->to(at::kDouble);
  graph->set_execution(GetParam());
  for (const Branches branches : {Branches::kSequential, Branches::kParallel}) {
    with_threads(2, [&] {
      const Pass pass = pass_through(*graph, branches);

      EXPECT_TRUE(pass.gradients[3].defined());
      EXPECT_FALSE(pass.gradients[5].defined());
    });
  }
}

TEST_P(BranchesRun, MayBeGivenAStateThatIsAbsent) {
  const TaskRandom random(3);
  const auto graph = FlowBuilder::from(torch::nn::Linear(6, 6))
                         .split({state_add(), FlowBuilder().through(state_add())})
                         .using_({"memory"})
                         .merge(add())
                         .through(torch::nn::Linear(6, 6))
                         .tag("memory")
                         .build();
  graph->to(at::kDouble);
  const at::Tensor input = at::randn({5, 6}, at::kDouble);
  const auto seen = [&](Branches branches) {
    graph->set_branches(branches);
    forget_gradients(*graph);
    GraphState state(*graph);
    for (int step = 0; step < 2; ++step) {
      graph->run({&input, 1}, state)[0].square().sum().backward();
      state.detach();
    }
    Pass pass;
    pass.output = state.tagged("memory").detach();
    for (const at::Tensor& parameter : graph->parameters())
      pass.gradients.push_back(parameter.grad().clone());
    pass.input_gradient = input;
    return pass;
  };
  const Pass expected = seen(Branches::kSequential);
  graph->set_execution(GetParam());
  for (int repeat = 0; repeat < 2; ++repeat)
    with_threads(2, [&] { expect_same(seen(Branches::kParallel), expected); });
}

TEST_P(BranchesRun, ThatRememberGoBackThroughEarlierForwards) {
  const TaskRandom random(3);
  const FlowBuilder remembers =
      FlowBuilder().through(state_add()).using_({"sum"}).through(rows(6, 6)).tag("sum");
  const auto graph = FlowBuilder::from(rows(6, 6))
                         .map(FlowBuilder().split({remembers, rows(6, 6), rows(6, 6)}).merge(add()))
                         .each()
                         .build(spec_of({{6}}));
  const Pass expected = pass_through(*graph, Branches::kSequential);
  graph->set_execution(GetParam());
  for (int repeat = 0; repeat < 2; ++repeat)
    with_threads(2, [&] { expect_same(pass_through(*graph, Branches::kParallel), expected); });
}

// A record of one call adds its two uses up before it adds them to those of other calls.
TEST_P(BranchesRun, OfABodyAddUpWeightsThatOneUsesAgain) {
  const TaskRandom random(3);
  const FlowBuilder again = FlowBuilder().loop(rows(6, 6)).times(2);
  const auto graph =
      FlowBuilder::from(rows(6, 6))
          .loop(FlowBuilder().split({again, rows(6, 6)}).merge(add()).through(identity()))
          .times(3)
          .build(spec_of({{6}}));
  const Pass expected = pass_through(*graph, Branches::kSequential);
  graph->set_execution(GetParam());
  for (int repeat = 0; repeat < 2; ++repeat)
    with_threads(2, [&] { expect_same(pass_through(*graph, Branches::kParallel), expected); });
}

// Each branch of the switch uses the weight for its own rows.
TEST_P(BranchesRun, OfABodyAddUpAWeightThatASwitchByRowUsesInEveryBranch) {
  const TaskRandom random(3);
  const Part shared = rows(6, 6);
  const FlowBuilder chosen =
      FlowBuilder().switch_(argmax_selector(6, 3, true), {shared, shared, shared}, SwitchBy::kRow);
  const FlowBuilder body = FlowBuilder().split({chosen, rows(6, 6)}).merge(add());
  const auto graph = FlowBuilder::from(rows(6, 6)).loop(body).times(3).build(spec_of({{6}}));
  const Pass expected = pass_through(*graph, Branches::kSequential);
  graph->set_execution(GetParam());
  with_threads(3, [&] { expect_same(pass_through(*graph, Branches::kParallel), expected); });
}

TEST_P(BranchesRun, OfTwoGraphsWithinAddUpAWeightThatBothUseAgain) {
  const TaskRandom random(3);
  const torch::nn::Linear shared(6, 6);
  const FlowBuilder again = FlowBuilder().loop(shared).times(2);
  const auto within = [&] {
    return FlowBuilder().split({again, torch::nn::Linear(6, 6)}).merge(add());
  };
  const auto graph = FlowBuilder::from(within()).through(within()).build();
  graph->to(at::kDouble);
  const Pass expected = pass_through(*graph, Branches::kSequential);
  graph->set_execution(GetParam());
  for (int repeat = 0; repeat < 2; ++repeat)
    with_threads(2, [&] { expect_same(pass_through(*graph, Branches::kParallel), expected); });
}

// A graph within has what it shares with a graph in it under two names.
TEST_P(BranchesRun, GiveAWeightOfTwoNamesItsGradientOnce) {
  const auto shared = std::make_shared<Scale>(2);
  const FlowBuilder twice =
      FlowBuilder::from(shared).through(FlowBuilder::from(shared).through(times(1)));
  const auto graph = FlowBuilder().split({twice, times(1)}).merge(add()).build();
  graph->set_execution(GetParam());
  graph->set_branches(Branches::kParallel);
  with_threads(2, [&] { graph->forward(row({3})).sum().backward(); });

  EXPECT_EQ(shared->weight.grad().item<double>(), 2 * 2 * 3);
  EXPECT_EQ(graph->nodes()[1].parameters, 1);
}

TEST_P(BranchesRun, DrawByThemselves) {
  const auto graph =
      FlowBuilder().split({torch::nn::Dropout(0.5), torch::nn::Dropout(0.5)}).merge(cat(0)).build();
  graph->set_execution(GetParam());
  const auto drawn = [&](std::uint64_t seed) {
    const TaskRandom random(seed);
    return graph->forward(at::ones({1, 64}));
  };
  EXPECT_TRUE(at::equal(drawn(1), drawn(1)));
  EXPECT_FALSE(at::equal(drawn(1), drawn(2)));
  EXPECT_FALSE(at::equal(drawn(1)[0], drawn(1)[1])) << "branches must not draw the same";
}

TEST_P(BranchesRun, RunBesideEachOther) {
  Meeting forward;
  std::atomic<int> met{0};
  const Part meets = [&](const at::Tensor& x) {
    met += forward.both_come() ? 1 : 0;
    return x.mul(2);
  };
  const auto graph = FlowBuilder().split({meets, meets}).merge(add()).build();
  graph->set_execution(GetParam());
  graph->set_branches(Branches::kParallel);

  with_threads(2, [&] { EXPECT_EQ(numbers(graph->forward(row({1}))).front(), 4); });

  EXPECT_EQ(met, 2);
}

// A training or an evaluation beside this one would draw this one's random numbers.
TEST_P(BranchesRun, LetNobodyWhoWaitsForThemTakeUpOtherWork) {
  namespace flow = oneapi::tbb::flow;
  Meeting branches;
  std::atomic<bool> is_beside{false};
  std::atomic<bool> is_waiting{false};
  std::atomic<bool> took_other_work{false};
  std::thread::id caller;
  with_threads(3, [&] {
    caller = std::this_thread::get_id();
    flow::graph others;
    flow::continue_node<flow::continue_msg> other(others, [&](const flow::continue_msg&) {
      took_other_work = is_waiting && std::this_thread::get_id() == caller;
      return flow::continue_msg();
    });
    flow::continue_node<flow::continue_msg> beside(others, [&](const flow::continue_msg&) {
      is_beside = true;
      is_beside.notify_one();
      is_waiting.wait(false);
      // For another thread than this one, as it is not free for a while.
      other.try_put(flow::continue_msg());
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return flow::continue_msg();
    });
    beside.try_put(flow::continue_msg());
    is_beside.wait(false);
    const Part meets = [&](const at::Tensor& x) {
      EXPECT_TRUE(branches.both_come());
      if (std::this_thread::get_id() != caller) {
        is_waiting = true;
        is_waiting.notify_one();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
      return x.mul(2);
    };
    const auto graph = FlowBuilder().split({meets, meets}).merge(add()).build();
    graph->set_execution(GetParam());
    graph->set_branches(Branches::kParallel);
    graph->forward(row({1}));
    is_waiting = false;
    others.wait_for_all();
  });

  EXPECT_FALSE(took_other_work);
}

// Its nodes are registered in place of the body's graph, which modules() so does not contain.
TEST_P(BranchesRun, BesideEachOtherInARecomputedBodyThatStandsInTheFlow) {
  for (const RecomputedNames names : {RecomputedNames::kOfNode, RecomputedNames::kOfFlow}) {
    std::atomic<int> met{0};
    const auto body = [&](Meeting& meeting) {
      const Part meets = [&](const at::Tensor& x) {
        met += meeting.both_come() ? 1 : 0;
        return x.mul(2);
      };
      return recompute(FlowBuilder().split({meets, meets}).merge(add()), names);
    };
    Meeting in_graph;
    Meeting in_graph_within;
    const auto graph = FlowBuilder::from(body(in_graph))
                           .through(FlowBuilder::from(identity()).through(body(in_graph_within)))
                           .build();
    graph->set_execution(GetParam());
    graph->set_branches(Branches::kParallel);

    with_threads(2, [&] {
      const at::NoGradGuard no_gradients;
      EXPECT_EQ(numbers(graph->forward(row({1}))).front(), 16);
    });

    EXPECT_EQ(met, 4);
  }
}

TEST_P(BranchesRun, OfARecomputedBodyGiveTheSameBits) {
  const TaskRandom random(3);
  const FlowBuilder again = FlowBuilder().loop(rows(6, 6)).times(2);
  const Part recomputed_body =
      recompute(FlowBuilder().split({again, torch::nn::Dropout(0.5), rows(6, 6)}).merge(add()),
                RecomputedNames::kOfFlow);
  const auto graph = FlowBuilder::from(rows(6, 6))
                         .loop(FlowBuilder::from(recomputed_body).through(identity()))
                         .times(3)
                         .build(spec_of({{6}}));
  const Pass expected = pass_through(*graph, Branches::kSequential);
  graph->set_execution(GetParam());
  for (int repeat = 0; repeat < 2; ++repeat)
    with_threads(2, [&] { expect_same(pass_through(*graph, Branches::kParallel), expected); });
}

/// x, and its backward waits for another's.
class MeetsInBackward : public torch::autograd::Function<MeetsInBackward> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            std::int64_t meeting) {
    context->saved_data["meeting"] = meeting;
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    auto* meeting = reinterpret_cast<Meeting*>(context->saved_data["meeting"].toInt());  // NOLINT
    EXPECT_TRUE(meeting->both_come());
    return {gradients[0], at::Tensor()};
  }
};

TEST_P(BranchesRun, GoBackBesideEachOther) {
  Meeting backward;
  const Part meets = [&](const at::Tensor& x) {
    return MeetsInBackward::apply(x, reinterpret_cast<std::int64_t>(&backward));
  };
  const auto graph = FlowBuilder().split({meets, meets}).merge(add()).build();
  graph->set_execution(GetParam());
  graph->set_branches(Branches::kParallel);

  with_threads(2, [&] {
    const at::Tensor x = row({1, 2}).set_requires_grad(true);
    graph->forward(x).sum().backward();
    EXPECT_EQ(numbers(x.grad()), (std::vector<double>{2, 2}));
  });
}

TEST_P(BranchesRun, RunOneAfterTheOtherUnlessSomebodyAsksForMore) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const Part heavy = [&](const at::Tensor& x) {
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return x.mul(1);
  };
  const auto graph = FlowBuilder().split({heavy, heavy}).merge(add()).build();
  graph->set_execution(GetParam());
  with_threads(2, [&] {
    for (int i = 0; i < 8; ++i)
      graph->forward(row({1}));
  });
  EXPECT_EQ(threads.size(), 1U);
}

TEST_P(BranchesRun, FollowTheGradModeOfTheirCaller) {
  std::atomic<int> recording{0};
  const Part asks = [&](const at::Tensor& x) {
    recording += at::GradMode::is_enabled() ? 1 : 0;
    return x.mul(1);
  };
  const auto graph = FlowBuilder().split({asks, asks, asks}).merge(add()).build();
  graph->set_execution(GetParam());
  graph->set_branches(Branches::kParallel);
  with_threads(3, [&] {
    {
      const at::NoGradGuard no_gradients;
      graph->forward(row({1}));
      EXPECT_EQ(recording, 0);
    }
    graph->forward(row({1}));
    EXPECT_EQ(recording, 3);
  });
}

TEST_P(BranchesRun, ThatFailAreNamedAndTheNextForwardIsWhole) {
  bool fails = true;
  const Part sometimes = [&fails](const at::Tensor& x) {
    if (fails)
      throw std::runtime_error("no");
    return x.mul(2);
  };
  const auto graph = FlowBuilder().split({times(1), sometimes, times(3)}).merge(add()).build();
  graph->set_execution(GetParam());
  graph->set_branches(Branches::kParallel);
  with_threads(2, [&] {
    for (int i = 0; i < 10; ++i) {
      try {
        graph->forward(row({1}));
        ADD_FAILURE();
      } catch (const TrainingError& error) {
        EXPECT_STREQ(error.what(),
                     "node \"Function_1\" (Function) failed on [1, 1] from \"input\": no");
      }
      if (i == 5) {  // from a plan that is known
        fails = false;
        EXPECT_EQ(numbers(graph->forward(row({1}))).front(), 6);
        fails = true;
      }
    }
    fails = false;
    EXPECT_EQ(numbers(graph->forward(row({1}))).front(), 6);
  });
}

TEST_P(BranchesRun, EndWhenStopped) {
  std::stop_source stop;
  stop.request_stop();
  const auto graph = FlowBuilder().split({times(1), times(2)}).merge(add()).build();
  graph->set_execution(GetParam());
  graph->set_branches(Branches::kParallel);
  GraphState state(*graph);

  with_threads(2, [&] {
    EXPECT_THROW(graph->run(std::vector<at::Tensor>{row({1})}, state, stop.get_token()),
                 Interrupted);
  });
}

TEST_P(BranchesRun, ThatShareAParameterRunOneByOne) {
  const auto shared = std::make_shared<Scale>(2);
  const auto graph = FlowBuilder()
                         .split({shared, FlowBuilder::from(shared).through(times(1))})
                         .merge(add())
                         .build();
  graph->set_execution(GetParam());
  graph->set_branches(Branches::kParallel);
  with_threads(2, [&] { graph->forward(row({3})).sum().backward(); });

  EXPECT_EQ(shared->weight.grad().item<double>(), 6);
}

TEST_P(BranchesRun, GoBackAfterTheGraphIsGone) {
  const at::Tensor input = row({4}).set_requires_grad(true);
  at::Tensor loss;
  {
    const auto graph = FlowBuilder()
                           .split({std::make_shared<Scale>(2), std::make_shared<Scale>(3)})
                           .merge(add())
                           .build();
    graph->set_execution(GetParam());
    graph->set_branches(Branches::kParallel);
    loss = graph->forward(input).sum();
  }
  loss.backward();

  EXPECT_EQ(numbers(input.grad()), (std::vector<double>{5}));
}

TEST(Branches, GoBackTwiceWhereTheGraphIsKept) {
  const auto graph = FlowBuilder()
                         .split({std::make_shared<Scale>(2), std::make_shared<Scale>(3)})
                         .merge(add())
                         .build();
  graph->set_branches(Branches::kParallel);
  with_threads(2, [&] {
    const at::Tensor loss = graph->forward(row({4})).sum();
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
  });
  for (const at::Tensor& parameter : graph->parameters())
    EXPECT_EQ(parameter.grad().item<double>(), 8);
}

TEST_P(BranchesRun, OfSeveralForwardsAtOnce) {
  const auto graph = tangled();
  graph->set_execution(GetParam());
  const Pass expected = pass_through(*graph, Branches::kSequential);
  graph->set_branches(Branches::kParallel);
  graph->eval();
  const at::Tensor input = at::ones({2, 6}, at::kDouble);
  const at::Tensor once = graph->forward(input);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      // libtorch marks a parameter's node as used without a lock: recording belongs to one thread.
      const at::NoGradGuard no_gradients;
      for (int repeat = 0; repeat < 20; ++repeat)
        wrong += at::equal(graph->forward(input), once) ? 0 : 1;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Executions, BranchesRun,
                         ::testing::Values(Execution::kDynamic, Execution::kCompiled),
                         [](const auto& info) {
                           return info.param == Execution::kDynamic ? "Dynamic" : "Compiled";
                         });

TEST(CompiledBranches, ArePlannedAsCallsWhereTheyRunAtOnce) {
  const auto graph = FlowBuilder().split({times(2), times(3)}).merge(add()).build();
  graph->set_execution(Execution::kCompiled);
  graph->set_branches(Branches::kParallel);
  const at::Tensor input = row({1});

  const plan::Plan plan = graph->compile({&input, 1});

  EXPECT_EQ(plan.instructions()[1].outputs.size(), 2U);
  EXPECT_THAT(plan.text(), HasSubstr("because it runs beside other branches"));
  EXPECT_EQ(plan.dynamic_nodes(), 0U);
}

TEST(CompiledBranches, OfAGraphWithinRunBesideEachOtherToo) {
  Meeting forward;
  std::atomic<int> met{0};
  bool at_once = false;
  const Part meets = [&](const at::Tensor& x) {
    if (at_once)
      met += forward.both_come() ? 1 : 0;
    return x.mul(2);
  };
  const auto inner = FlowBuilder().split({meets, meets}).merge(add()).build();
  const auto graph = FlowBuilder::from(times(3)).loop(inner).times(2).build();
  graph->set_execution(Execution::kCompiled);
  inner->set_branches(Branches::kSequential);
  graph->forward(row({1}));
  at_once = true;
  inner->set_branches(Branches::kParallel);  // a plan that is known follows

  with_threads(2, [&] {
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(numbers(graph->forward(row({1}))).front(), 48) << "forward " << i;
  });

  EXPECT_EQ(met, 20);
}

}  // namespace
}  // namespace treadle::graph
