#include "src/step/step_marks.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle::engine {
namespace {

/// A device whose clock a test turns, and which comes past what was recorded when it is told to.
struct ClockOfATest {
  double now = 0;
  double passed_up_to = 0;
  int marks = 0;
};

class MarkOfATest final : public DeviceMark {
 public:
  explicit MarkOfATest(const ClockOfATest& clock) : clock_(clock) {}

  void record() override { time_ = clock_.now; }
  bool has_passed() const override { return time_ <= clock_.passed_up_to; }
  double seconds_since(const DeviceMark& earlier) const override {
    const auto& other = static_cast<const MarkOfATest&>(earlier);
    TREADLE_EXPECTS(has_passed() && other.has_passed(), "a mark is read too early");
    return time_ - other.time_;
  }

 private:
  const ClockOfATest& clock_;
  double time_ = 0;
};

class DeviceOfATest final : public DeviceBackend {
 public:
  explicit DeviceOfATest(ClockOfATest* clock) : clock_(clock) {}

 private:
  FoundDevices do_find() const override { return {.devices = {}, .why_none = "it is for a test"}; }
  DeviceMemory do_memory(c10::Device) const override { return {.in_use = 512}; }
  void do_reset_peak(c10::Device) const override {}
  void do_synchronize(c10::Device) const override {}
  std::unique_ptr<DeviceMark> do_mark(c10::Device) const override {
    if (clock_ == nullptr)
      return nullptr;
    ++clock_->marks;
    return std::make_unique<MarkOfATest>(*clock_);
  }

  ClockOfATest* const clock_;  // null: the device has none
};

const c10::Device kDevice(c10::kHIP, 0);

class StepMarksOfADevice : public ::testing::Test {
 protected:
  void step(double idle_before, double busy) {
    clock_.now += idle_before;
    marks_.begin_step();
    clock_.now += busy;
    marks_.end_step();
  }
  DeviceUse::Totals totals() const { return timeline_.device_use().totals(); }

  ClockOfATest clock_;
  const DeviceOfATest device_{&clock_};
  Timeline timeline_{/*keeps_events=*/true};
  StepMarks marks_{&device_, kDevice, &timeline_};
};

TEST_F(StepMarksOfADevice, TellWhatIsBusyAndWhatIsIdle) {
  step(7, 1);  // before the first step nothing is idle
  step(0.25, 2);
  step(0.5, 3);
  clock_.passed_up_to = clock_.now;

  marks_.end_epoch();
  step(9, 1);  // nor between two epochs
  step(1, 1);
  clock_.passed_up_to = clock_.now;
  marks_.end_epoch();

  EXPECT_NEAR(totals().busy_seconds, 6 + 2, 1e-6);
  EXPECT_NEAR(totals().idle_seconds, 0.75 + 1, 1e-6);
  ASSERT_EQ(timeline_.device_spans().size(), 5U);
  EXPECT_EQ(timeline_.device_spans()[1].duration, 2'000'000'000);
  EXPECT_NEAR(1e-9 * static_cast<double>(timeline_.device_spans()[1].start -
                                         timeline_.device_spans()[0].start),
              1.25, 1e-6);
  EXPECT_EQ(timeline_.device_samples().size(), 2U) << "one an epoch";
}

TEST_F(StepMarksOfADevice, AreReadOnlyWhenTheDeviceHasPassedThemAndUsedAgain) {
  for (int i = 0; i < 4; ++i)
    step(1, 1);
  const int made = clock_.marks;
  clock_.passed_up_to = clock_.now - 2;  // all but the last

  marks_.read();
  EXPECT_EQ(timeline_.device_spans().size(), 3U);
  for (int i = 0; i < 3; ++i)
    step(1, 1);

  EXPECT_EQ(clock_.marks, made) << "those that were read are recorded again";
  clock_.passed_up_to = clock_.now;
  marks_.end_epoch();
  EXPECT_NEAR(totals().busy_seconds, 7, 1e-6);
}

TEST(StepMarks, DoNothingOnACpuOrWithoutAClock) {
  ClockOfATest clock;
  const DeviceOfATest device(&clock);
  const DeviceOfATest without_clock(nullptr);
  Timeline timeline;
  struct Measured {
    const DeviceBackend* backend;
    c10::Device device;
    Timeline* timeline;
  };
  for (const auto& [backend, where, times] :
       {Measured{&device, c10::kCPU, &timeline}, Measured{nullptr, kDevice, &timeline},
        Measured{&device, kDevice, nullptr}, Measured{&without_clock, kDevice, &timeline}}) {
    StepMarks marks(backend, where, times);
    marks.begin_step();
    marks.end_step();
    marks.read();
    marks.end_epoch();
  }
  EXPECT_EQ(clock.marks, 0);
  EXPECT_EQ(timeline.device_use().totals().busy_seconds, 0);
}

}  // namespace
}  // namespace treadle::engine
