#include <treadle/core/components/plugin_call.h>

#include <ATen/ops/gelu.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <functional>
#include <new>
#include <stdexcept>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/learning_rate_schedule.h>

namespace treadle {
namespace {

/// Does in every function what it was told.
class Troubled : public LearningRateSchedule {
 public:
  explicit Troubled(std::function<void()> trouble) : trouble_(std::move(trouble)) {}

 private:
  double do_rate_at(std::int64_t, const ScheduleSpan&) const override {
    trouble_();
    return 1;
  }

  std::function<void()> trouble_;
};

constexpr ScheduleSpan kSpan{.base_rate = 1, .total_steps = 1, .steps_per_epoch = 1};

/// The text of the PluginError that a registered schedule's trouble ends in.
std::string told(std::function<void()> trouble) {
  PluginRegistry registry;
  registry.add<LearningRateSchedule>("troubled", [&](const Config&, const ComponentContext&) {
    return std::make_unique<Troubled>(trouble);
  });
  const auto schedule = registry.make<LearningRateSchedule>("troubled");
  try {
    schedule->rate_at(0, kSpan);
  } catch (const PluginError& error) {
    return error.what();
  }
  return "(no PluginError)";
}

TEST(PluginCall, SaysWhoFailedInWhat) {
  EXPECT_EQ(told([] { throw std::out_of_range("row 7 of 5"); }),
            "schedule \"troubled\" failed in rate_at(): row 7 of 5");
}

TEST(PluginCall, LeavesOutLibtorchsStackTrace) {
  EXPECT_EQ(told([] { TORCH_CHECK(false, "shapes differ"); }),
            "schedule \"troubled\" failed in rate_at(): shapes differ");
}

TEST(PluginCall, KnowsWhatIsNoException) {
  EXPECT_EQ(
      told([] { throw 42; }),
      "schedule \"troubled\" failed in rate_at(): it threw something that is not a std::exception");
}

TEST(PluginCall, BlamesThePluginForAPromiseItBroke) {
  const std::string text = told([] { TREADLE_EXPECTS(false, "a rate is a number"); });

  EXPECT_TRUE(text.starts_with("schedule \"troubled\" failed in rate_at(): ")) << text;
  EXPECT_NE(text.find("a rate is a number"), std::string::npos) << text;
}

TEST(PluginCall, PassesWhatWasWrittenForPeople) {
  Troubled schedule([] { throw DataError("line 3: expected a number"); });
  schedule.set_origin("somebody's");

  EXPECT_THROW(schedule.rate_at(0, kSpan), DataError);
}

TEST(PluginCall, PassesALackOfMemoryAlsoInLibtorchsWords) {
  Troubled standard([] { throw std::bad_alloc(); });
  standard.set_origin("somebody's");
  Troubled torch(
      [] { TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory: you tried"); });
  torch.set_origin("somebody's");

  EXPECT_THROW(standard.rate_at(0, kSpan), std::bad_alloc);
  EXPECT_THROW(torch.rate_at(0, kSpan), std::bad_alloc);
}

TEST(PluginCall, SaysWhatToChooseWhereLibtorchLacksAnOperator) {
  Troubled dtype([] { at::gelu(at::ones({2}, at::kLong)); });
  Troubled device([] {
    TORCH_CHECK(false,
                "Could not run 'aten::tanh' with arguments from the 'Meta' backend. This "
                "could be because the operator doesn't exist for this backend");
  });
  for (Troubled* schedule : {&dtype, &device}) {
    schedule->set_origin("somebody's");
    try {
      schedule->rate_at(0, kSpan);
      FAIL() << "nothing was thrown";
    } catch (const TrainingError& error) {
      EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("somebody's failed in"),
                                                 ::testing::HasSubstr("lacks the operator"),
                                                 ::testing::HasSubstr("\"precision\"")));
      EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("This could be")));
    }
  }
}

TEST(PluginCall, LeavesObjectsThatNoRegistryMadeAlone) {
  Troubled schedule([] { throw std::out_of_range("row 7 of 5"); });

  EXPECT_THROW(schedule.rate_at(0, kSpan), std::out_of_range);
}

/// Data whose parts fail, each in its own way.
class TroubledData : public DataProvider, public RowReader {
 private:
  class Stream : public BatchStream {
   private:
    bool do_next(Batch&) override { throw std::runtime_error("the tape broke"); }
    StateDict do_state() const override { throw std::runtime_error("where was I"); }
    void do_load_state(const StateDict&) override {}
  };

  void* do_ask(std::string_view id) override {
    return id == RowReader::kInterface ? static_cast<RowReader*>(this) : nullptr;
  }
  void do_open(const OpenRequest&) override {}
  const DataSpec& do_spec() const override { return spec_; }
  std::string do_content_hash() const override { return ""; }
  std::unique_ptr<BatchStream> do_stream(std::int64_t) const override {
    return std::make_unique<Stream>();
  }
  StateDict do_state() const override { throw std::runtime_error("no names yet"); }
  void do_load_state(const StateDict&) override {}
  std::int64_t do_rows() const override { return 3; }
  void do_gather(std::span<const std::int64_t>, Batch&) const override {
    throw std::runtime_error("the disk is gone");
  }
  at::Tensor do_targets(std::size_t) const override { return {}; }

  DataSpec spec_;
};

std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const PluginError& error) {
    return error.what();
  }
  return "(no PluginError)";
}

TEST(PluginCall, ReachesWhatADataProviderGivesAway) {
  PluginRegistry registry;
  registry.add<DataProvider>("tape", [](const Config&, const ComponentContext&) {
    return std::make_unique<TroubledData>();
  });
  const auto data = registry.make<DataProvider>("tape");
  data->open({});
  const auto stream = data->stream(2);
  Batch batch;
  const std::vector<std::int64_t> rows{1};

  EXPECT_EQ(text_of([&] { stream->next(batch); }),
            "data \"tape\" failed in next(): the tape broke");
  EXPECT_EQ(text_of([&] { static_cast<void>(stream->state()); }),
            "data \"tape\" failed in state(): where was I");
  EXPECT_EQ(text_of([&] { static_cast<void>(data->state()); }),
            "data \"tape\" failed in state(): no names yet");
  EXPECT_EQ(text_of([&] { data->ask<RowReader>()->gather(rows, batch); }),
            "data \"tape\" failed in gather(): the disk is gone");
}

/// A network that cannot take what it is given.
class Stubborn : public Model {
 public:
  void forward(const Inputs&, Outputs&, ForwardContext&) override {
    TORCH_CHECK(false, "mat1 and mat2 shapes cannot be multiplied");
  }
};

class StubbornProvider : public ModelProvider {
 public:
  explicit StubbornProvider(bool gives_a_model) : gives_a_model_(gives_a_model) {}

 private:
  std::shared_ptr<Model> do_create(const ModelSpec&) const override {
    return gives_a_model_ ? std::make_shared<Stubborn>() : nullptr;
  }

  bool gives_a_model_;
};

TEST(PluginCall, ReachesTheModelsOfAProvider) {
  ModelSpec spec;
  spec.inputs.resize(1);
  spec.outputs.resize(1);
  PluginRegistry registry;
  for (const bool gives : {true, false}) {
    registry.add<ModelProvider>(gives ? "stubborn" : "empty",
                                [gives](const Config&, const ComponentContext&) {
                                  return std::make_unique<StubbornProvider>(gives);
                                });
  }
  const auto model = registry.make<ModelProvider>("stubborn")->create(spec);
  const auto empty = registry.make<ModelProvider>("empty");
  Outputs outputs;
  ForwardContext context;

  EXPECT_EQ(text_of([&] { (*model)(Inputs(), outputs, context); }),
            "model \"stubborn\" failed in forward(): mat1 and mat2 shapes cannot be multiplied");
  EXPECT_EQ(text_of([&] { empty->create(spec); }),
            "model \"empty\" failed in create(): it returned no model");
}

TEST(PluginCall, IsKnownWhileItRuns) {
  std::string inside;
  std::string method;
  PluginRegistry registry;
  registry.add<LearningRateSchedule>("watched", [&](const Config&, const ComponentContext&) {
    EXPECT_EQ(running_plugin_call().origin, "schedule \"watched\"");
    EXPECT_EQ(running_plugin_call().method, "");
    return std::make_unique<Troubled>([&] {
      inside = running_plugin_call().origin;
      method = running_plugin_call().method;
    });
  });
  EXPECT_EQ(running_plugin_call().origin, "");

  const auto schedule = registry.make<LearningRateSchedule>("watched");
  schedule->rate_at(0, kSpan);

  EXPECT_EQ(inside, schedule->origin());
  EXPECT_EQ(method, "rate_at");
  EXPECT_EQ(running_plugin_call().origin, "");
}

}  // namespace
}  // namespace treadle
