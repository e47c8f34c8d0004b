// Components with one defect each: contract_test.cpp says which claims find it.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include <treadle/base/component.h>
#include <treadle/base/config.h>
#include <treadle/base/error.h>
#include <treadle/plugin.h>

namespace {

using treadle::Component;
using treadle::Config;

/// As it should be: reads its parameters, and says which of them do not go together.
class Thing : public Component {
 public:
  static constexpr std::string_view kInterface = "org.example.thing/0";

  explicit Thing(const Config& config)
      : every_(config.get<std::int64_t>("every")), floor_(config.get<double>("floor")) {
    if (floor_ > 0 && every_ == 1)
      config.fail("floor", "needs \"every\" above 1");
  }

  bool is_usual() const { return every_ == 1000 && floor_ == 0; }
  double floor() const { return floor_; }

 private:
  std::int64_t every_;
  double floor_;
};

/// A thing with something done after its parameters were found right.
template <void (*act)(const Thing&)>
class After final : public Thing {
 public:
  explicit After(const Config& config) : Thing(config) { act(*this); }
};

void set_the_seed(const Thing&) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(42);
}
void set_the_default_dtype(const Thing&) {
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(at::kFloat));
}
void turn_gradients_on(const Thing&) {
  c10::GradMode::set_enabled(true);
}
void set_the_locale(const Thing&) {
  std::setlocale(LC_ALL, "C");
}
void set_the_environment(const Thing&) {
  ::setenv("TREADLE_WRONG", "1", 1);
}
void set_the_umask(const Thing&) {
  ::umask(022);
}
void start_a_thread(const Thing&) {
  static bool started = false;
  if (!std::exchange(started, true))
    std::thread([] { ::pause(); }).detach();
}
void open_a_descriptor(const Thing&) {
  [[maybe_unused]] static const int log = ::open("/dev/null", O_WRONLY);
}
void leak_descriptors(const Thing&) {
  [[maybe_unused]] const int log = ::open("/dev/null", O_WRONLY);
}
void print(const Thing&) {
  std::printf("made\n");
}
void write_to_standard_error(const Thing&) {
  [[maybe_unused]] const auto written = ::write(2, "made\n", 5);
}
void fail_in_several_threads(const Thing&) {
  static const std::thread::id first = std::this_thread::get_id();
  if (std::this_thread::get_id() != first)
    throw std::runtime_error("made by another thread");
}
void throw_what_is_no_error(const Thing& thing) {
  if (!thing.is_usual())
    throw std::runtime_error("every");
}
void throw_what_is_no_exception(const Thing& thing) {
  if (thing.floor() > 0)
    throw 42;
}
void not_say_which(const Thing& thing) {
  if (thing.floor() > 0)
    throw treadle::UsageError("that is too much");
}
void blame_storage(const Thing& thing) {
  if (thing.floor() > 0)
    throw treadle::StorageError("floor: no space left");
}
/// Only once claims are tested: loading makes each component a few times.
void crash_when_told(const Thing&) {
  static std::atomic<int> made = 0;
  if (++made > 10 && getenv("TREADLE_TEST_CRASHES") != nullptr)
    abort();
}

/// Every object of a thread lies where the one before does.
class IsOneObject final : public Thing {
 public:
  using Thing::Thing;

  static void* operator new(std::size_t) {
    alignas(Thing) static thread_local std::byte place[sizeof(Thing)];
    return place;
  }
  static void operator delete(void*) {}
};

class KnowsEverything final : public Thing {
 public:
  using Thing::Thing;

 private:
  void* do_ask(std::string_view) override { return this; }
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<Thing>("right");
  registrar.add<After<set_the_seed>>("sets_the_seed");
  registrar.add<After<set_the_default_dtype>>("sets_the_default_dtype");
  registrar.add<After<turn_gradients_on>>("turns_gradients_on");
  registrar.add<After<set_the_locale>>("sets_the_locale");
  registrar.add<After<set_the_environment>>("sets_the_environment");
  registrar.add<After<set_the_umask>>("sets_the_umask");
  registrar.add<After<start_a_thread>>("starts_a_thread");
  registrar.add<After<open_a_descriptor>>("opens_a_descriptor");
  registrar.add<After<leak_descriptors>>("leaks_descriptors");
  registrar.add<After<print>>("prints");
  registrar.add<After<write_to_standard_error>>("writes_to_standard_error");
  registrar.add<IsOneObject>("is_one_object");
  registrar.add<KnowsEverything>("offers_everything");
  registrar.add<After<fail_in_several_threads>>("fails_in_several_threads");
  registrar.add<After<throw_what_is_no_error>>("throws_what_is_no_error");
  registrar.add<After<throw_what_is_no_exception>>("throws_what_is_no_exception");
  registrar.add<After<not_say_which>>("does_not_say_which");
  registrar.add<After<blame_storage>>("blames_storage");
  registrar.add<After<crash_when_told>>("crashes_when_told");
}
