#include <treadle/testing/training/device_contract.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/devices/device_backend.h>
#include <treadle/core/model/tensor_spec.h>
#include <treadle/engine/batch_pipeline.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/tensor/device_streams.h>
#include <treadle/tensor/task_random.h>
#include <treadle/tensor/torch_versions.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/targets.h>
#include <treadle/testing/support/whole_training.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class DeviceClaims : public ::testing::WithParamInterface<DeviceCase> {
 protected:
  static std::vector<at::Tensor> tensors_of_all_kinds() {
    const at::Tensor table = at::arange(24, at::kFloat).view({4, 6});
    return {table,
            table.t(),
            table.slice(1, 1, 4),
            table.to(at::kDouble),
            table.to(at::kLong),
            table.to(at::kByte),
            table.gt(7),
            at::ones({}),
            at::empty({0, 3})};
  }

  void expect_close(const StateDict& got, const StateDict& expected) const {
    ASSERT_EQ(got.tensors().size(), expected.tensors().size());
    const double tolerance = GetParam().tolerance;
    for (const auto& [name, tensor] : expected.tensors()) {
      const bool is_same = tolerance == 0 ? at::equal(got.tensor(name), tensor)
                                          : got.tensor(name).allclose(tensor, tolerance, tolerance);
      EXPECT_TRUE(is_same) << name;
    }
  }

  /// A table of two columns with a number to predict and weights.
  static MatrixRows::Matrices weighted_rows(std::int64_t rows) {
    const at::Tensor number = at::arange(rows, at::kFloat);
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {{"features", {2}, {{"a"}, {"b"}}}};
    matrices.spec.targets = {number_target("price")};
    matrices.spec.has_weights = true;
    matrices.inputs = {at::stack({number, number.neg()}, 1)};
    matrices.targets = {number.view({rows, 1})};
    matrices.weights = number.remainder(4).add(1);
    return matrices;
  }

  /// Records work that adds to `sum` what it draws.
  std::unique_ptr<CapturedWork> capture(TaskGenerators& generators, at::Tensor& sum) const {
    const std::vector<at::Generator> all{generators.of_device()};
    return backend_->capture(device_, all, [&] {
      const TaskRandom random(generators);
      sum.add_(at::rand_like(sum).matmul(at::ones_like(sum)));
    });
  }

  static Rehearsed on(c10::Device device, Rehearsed rehearsed = {}) {
    rehearsed.device = device;
    rehearsed.path = ParameterView::Path::kTensors;
    return rehearsed;
  }

  const std::unique_ptr<DeviceBackend> backend_ = GetParam().make();
  const FoundDevices found_ = backend_->find();
  /// The first.
  const c10::Device device_ =
      found_.devices.empty() ? c10::Device(c10::kCPU) : found_.devices.front().device;
};

}  // namespace

LINKS_CLAIMS_OF(Device)

void DeviceContract::SetUp() {
  const FoundDevices found = GetParam().make()->find();
  if (found.devices.empty())
    GTEST_SKIP() << GetParam().name << ": " << found.why_none;
}

CLAIM(Device, DevicesHaveNamesAndAreDistinct) {
  std::set<std::string> seen;
  for (const DeviceInfo& info : found_.devices) {
    EXPECT_NE(info.name, "");
    EXPECT_GE(info.memory_bytes, 0);
    EXPECT_TRUE(seen.insert(info.device.str()).second) << info.device.str() << " is there twice";
    EXPECT_EQ(info.device.type(), device_.type());
  }
}

CLAIM(Device, FindsTheSameDevicesFromAnyThread) {
  const auto errors = at_once(4, [&](std::size_t) {
    const FoundDevices again = GetParam().make()->find();
    EXPECT_EQ(again.devices.size(), found_.devices.size());
    for (std::size_t i = 0; i < again.devices.size(); ++i) {
      EXPECT_EQ(again.devices[i].device, found_.devices[i].device);
      EXPECT_EQ(again.devices[i].name, found_.devices[i].name);
    }
  });

  EXPECT_EQ(errors, kNoErrors);
}

CLAIM(Device, StagedTensorsAreEqualAndStayWhereTheyAre) {
  for (const at::Tensor& tensor : tensors_of_all_kinds()) {
    const at::Tensor staged = backend_->staged(tensor);

    EXPECT_TRUE(at::equal(staged, tensor)) << TensorSpec::of(tensor).text();
    EXPECT_TRUE(backend_->staged(staged).is_same(staged)) << "staged again";
  }
}

CLAIM(Device, CopiesToTheDeviceAndBackChangeNothing) {
  for (const DeviceInfo& info : found_.devices) {
    for (const at::Tensor& tensor : tensors_of_all_kinds()) {
      const at::Tensor there = backend_->staged(tensor).to(info.device, /*non_blocking=*/true);

      EXPECT_EQ(there.device(), info.device);
      EXPECT_TRUE(at::equal(there.cpu(), tensor)) << TensorSpec::of(tensor).text();
    }
  }
}

CLAIM(Device, EveryDeviceComputes) {
  const TaskRandom random(1);
  const at::Tensor a = at::randn({17, 9});
  const at::Tensor b = at::randn({9, 5});
  for (const DeviceInfo& info : found_.devices) {
    const at::Tensor product = at::matmul(a.to(info.device), b.to(info.device));

    EXPECT_TRUE(product.cpu().allclose(at::matmul(a, b), 1e-4, 1e-5));
  }
}

CLAIM(Device, AStreamWaitsForTheEventOfAnother) {
  const c10::Stream here = current_stream(device_);
  const c10::Stream beside = another_stream(device_);
  for (int repeat = 0; repeat < 50; ++repeat) {
    const at::Tensor host = backend_->staged(at::ones({1 << 16}).mul_(repeat));
    at::Tensor there;
    StreamEvent arrived;
    {
      const StreamScope on_stream(beside);
      there = host.to(device_, /*non_blocking=*/true);
      arrived.record(beside);
    }
    arrived.hold_back(here);
    use_on(here, there);

    ASSERT_EQ(there.sum().cpu().item<float>(), static_cast<float>(repeat) * (1 << 16));
  }
}

CLAIM(Device, EverythingIsDoneAfterSynchronize) {
  const c10::Stream stream = current_stream(device_);
  at::Tensor work = at::ones({256, 256}, at::TensorOptions(device_));
  for (int repeat = 0; repeat < 20; ++repeat)
    work = at::matmul(work, work).mul_(1.0 / 256);
  StreamEvent behind;
  behind.record(stream);

  backend_->synchronize(device_);

  EXPECT_TRUE(behind.has_passed());
}

// As for the steps of an epoch: recorded again and again, read behind a wait.
CLAIM(Device, MarksAreReadBehindTheWorkTheyStandBehind) {
  const auto begin = backend_->mark(device_);
  const auto end = backend_->mark(device_);
  if (begin == nullptr)
    GTEST_SKIP() << GetParam().name << " has no clock";
  EXPECT_FALSE(begin->has_passed()) << "it was not recorded";
  for (int repeat = 0; repeat < 3; ++repeat) {
    begin->record();
    at::Tensor work = at::ones({256, 256}, at::TensorOptions(device_));
    for (int i = 0; i < 10; ++i)
      work = at::matmul(work, work).mul_(1.0 / 256);
    end->record();

    backend_->synchronize(device_);

    ASSERT_TRUE(begin->has_passed() && end->has_passed());
    EXPECT_GT(end->seconds_since(*begin), 0);
    EXPECT_LT(end->seconds_since(*begin), 60);
    EXPECT_EQ(begin->seconds_since(*begin), 0);
    EXPECT_NEAR(begin->seconds_since(*end), -end->seconds_since(*begin), 1e-5);
  }
}

CLAIM(Device, ATaskDrawsTheSameNumbersAgain) {
  const auto draw = [&](std::uint64_t seed) {
    const TaskRandom random(seed);
    const at::Tensor ones = at::ones({1000}, at::TensorOptions(device_));
    std::vector<at::Tensor> drawn{at::randn({1000}, at::TensorOptions(device_)).cpu(),
                                  at::dropout(ones, 0.3, /*train=*/true).cpu()};
    return drawn;
  };
  const auto first = draw(3);
  at::randn({5}, at::TensorOptions(device_));  // outside of tasks
  const auto again = draw(3);
  const auto other = draw(4);

  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(at::equal(again[i], first[i])) << i;
    EXPECT_FALSE(at::equal(other[i], first[i])) << i;
  }
  EXPECT_NEAR(first[1].mean().item<double>(), 1, 0.15) << "what is kept makes up for the rest";
}

CLAIM(Device, MemoryOfTensorsIsCountedAndGivenBack) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  const auto allowed = [&](std::int64_t bytes) {
    return GetParam().counts_tensors ? bytes : bytes / 2;  // others allocate and free, too
  };
  const std::int64_t before = backend_->memory(device_).in_use;
  backend_->reset_peak(device_);
  {
    const at::Tensor tensor = at::ones({kBytes}, at::TensorOptions(device_).dtype(at::kByte));
    const DeviceMemory during = backend_->memory(device_);
    EXPECT_GE(during.in_use - before, allowed(kBytes));
    EXPECT_GE(during.peak, during.in_use);
    EXPECT_GE(during.reserved, during.in_use);
    EXPECT_GE(during.available, 0);
  }
  const DeviceMemory after = backend_->memory(device_);
  EXPECT_LE(after.in_use - before, kBytes - allowed(kBytes));
  EXPECT_GE(after.peak - before, allowed(kBytes));
  backend_->reset_peak(device_);
  EXPECT_LE(backend_->memory(device_).peak - before, kBytes - allowed(kBytes));
}

// With copies ahead on their own stream.
CLAIM(Device, APipelineHandsOutTheSameBatchesThere) {
  const MatrixRows rows(weighted_rows(200));
  const std::vector<std::int64_t> all = row_numbers(0, 200);
  const auto batches = [&](c10::Device device, const DeviceBackend* staging, int workers) {
    std::vector<Batch> batches;
    engine::ThreadBudget(workers).run([&] {
      engine::BatchPipeline pipeline(
          rows, all, {}, {.batch_size = 16, .shuffle = true, .device = device, .staging = staging},
          RandomStreams(5));
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        const auto stream = pipeline.epoch(epoch);
        for (Batch batch; stream->next(batch);) {
          EXPECT_EQ(batch.inputs[0].device(), device);
          batches.push_back(batch.to(c10::kCPU));
        }
      }
    });
    return batches;
  };
  const std::vector<Batch> expected = batches(c10::kCPU, nullptr, 1);
  for (const int workers : {1, 3}) {
    const std::vector<Batch> got = batches(device_, backend_.get(), workers);

    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      expect_same(got[i].inputs, expected[i].inputs, "input");
      expect_same(got[i].targets, expected[i].targets, "target");
      EXPECT_TRUE(at::equal(got[i].rows, expected[i].rows));
    }
  }
}

CLAIM(Device, CapturedWorkIsDoneWhenItIsReplayed) {
  if (!backend_->can_capture())
    GTEST_SKIP() << GetParam().name << " does not record work";
  const StreamScope on_stream(another_stream(device_));
  TaskGenerators generators(device_);
  const auto ones = [&] { return at::ones({8, 8}, at::TensorOptions(device_)); };
  at::Tensor sum = ones();
  generators.seed(1);
  const auto work = capture(generators, sum);

  EXPECT_TRUE(at::equal(sum.cpu(), ones().cpu())) << "it is recorded, not done";

  const auto replayed = [&](std::uint64_t seed) {
    sum.fill_(1);
    generators.seed(seed);
    work->replay();
    return sum.cpu();
  };
  const auto carried_out = [&](std::uint64_t seed) {
    const TaskRandom random(seed);
    return ones().add_(at::rand_like(ones()).matmul(ones())).cpu();
  };
  for (const std::uint64_t seed : {2U, 3U, 2U})
    EXPECT_TRUE(at::equal(replayed(seed), carried_out(seed))) << "seed " << seed;
  EXPECT_FALSE(at::equal(replayed(2), replayed(3))) << "it draws anew";
}

CLAIM(Device, WorkThatReadsTheDeviceCannotBeCaptured) {
  if (!backend_->can_capture())
    GTEST_SKIP() << GetParam().name << " does not record work";
  const StreamScope on_stream(another_stream(device_));
  at::Tensor sum = at::ones({8, 8}, at::TensorOptions(device_));
  EXPECT_THROW(backend_->capture(device_, {}, [&] { sum.mul_(sum.sum().item<float>()); }),
               std::exception);
  EXPECT_THROW(backend_->capture(device_, {},
                                 [&] {
                                   sum.add_(1);
                                   throw TrainingError("of the work");
                                 }),
               TrainingError);

  EXPECT_EQ(sum.sum().item<float>(), 64) << "nothing of it was done";
  TaskGenerators generators(device_);
  EXPECT_NO_THROW(capture(generators, sum)->replay()) << "the device is as good as before";
}

CLAIM(Device, CapturedTrainingsHaveTheResultOfOthers) {
  if (!backend_->can_capture())
    GTEST_SKIP() << GetParam().name << " does not record work";
  const StreamScope on_stream(another_stream(device_));
  // What the host draws for a device without generators cannot be recorded.
  const double dropout = torch_versions::has_generators(device_) ? Rehearsed().dropout : 0;
  const auto rehearsed = [&](DeviceBackend* backend) {
    return std::make_unique<Rehearsal>(on(device_, {.dropout = dropout, .capture = backend}));
  };
  const Whole eager(rehearsed(nullptr));
  const Whole captured(rehearsed(backend_.get()));

  expect_close(captured.rehearsal->weights(), eager.rehearsal->weights());
  EXPECT_GT(captured.result.replayed_steps, 0);
  expect_every_checkpoint_leads_to_the_same_end([&] { return rehearsed(backend_.get()); });
}

CLAIM(Device, TrainsAsTensorsOnACpuDo) {
  // Numbers of dropout differ from device to device.
  const Whole here(std::make_unique<Rehearsal>(on(c10::kCPU, {.dropout = 0})));
  const Whole there(std::make_unique<Rehearsal>(on(device_, {.dropout = 0})));

  expect_close(there.rehearsal->weights(), here.rehearsal->weights());
  EXPECT_EQ(there.result.total_epochs, here.result.total_epochs);
  EXPECT_NEAR(there.result.final_loss, here.result.final_loss,
              GetParam().tolerance * (1 + here.result.final_loss));
}

CLAIM(Device, ResumesWhereItStopped) {
  const auto make = [&] { return std::make_unique<Rehearsal>(on(device_)); };
  expect_every_checkpoint_leads_to_the_same_end(make);
}

CLAIM(Device, SeveralTrainingsMayShareADevice) {
  const auto train = [&] {
    const StreamScope on_stream(another_stream(device_));
    const Whole whole(std::make_unique<Rehearsal>(on(device_)));
    return whole.rehearsal->weights();
  };
  const StateDict alone = train();
  std::vector<StateDict> got(3);

  const auto errors = at_once(got.size(), [&](std::size_t thread) { got[thread] = train(); });

  EXPECT_EQ(errors, kNoErrors);
  for (const StateDict& weights : got)
    EXPECT_TRUE(same_bits(weights, alone));
}

}  // namespace treadle::testing
