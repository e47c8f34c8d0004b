#include "far_recording.h"

#include <atomic>
#include <cstring>
#include <utility>

#include <c10/util/Exception.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "far_memory.h"

namespace treadle::far {
namespace {

std::atomic<Recording*> active{nullptr};

/// Follows a backward pass to the engine's threads, which a stream of this device does not.
struct Mark final : c10::DebugInfoBase {
  explicit Mark(std::uint64_t its_number) : number(its_number) {}
  const std::uint64_t number;  // of the recording
};

constexpr auto kMarks = c10::DebugInfoKind::TEST_INFO;

std::shared_ptr<c10::DebugInfoGuard> mark(std::uint64_t number) {
  return std::make_shared<c10::DebugInfoGuard>(kMarks, std::make_shared<Mark>(number));
}

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

Recording::Recording(c10::StreamId stream)
    : stream_(stream), number_(next_number()), mark_(mark(number_)) {
  Recording* none = nullptr;
  TORCH_CHECK(active.compare_exchange_strong(none, this), "the device records other work already");
}

Recording::~Recording() {
  put_back();
}

void Recording::put_back() {
  if (Recording* self = this; !active.compare_exchange_strong(self, nullptr))
    return;
  mark_.reset();
  for (auto& [data, kept] : kept_) {
    const OpenedBlock open(data);
    std::memcpy(data, kept.bytes.data(), kept.bytes.size());
  }
  kept_.clear();
}

std::vector<std::function<void()>> Recording::end() {
  put_back();
  return std::move(calls_);
}

Recording* Recording::of_this_thread(c10::StreamId stream) {
  Recording* const now = active.load();
  if (now == nullptr)
    return nullptr;
  const auto* const its = static_cast<const Mark*>(c10::ThreadLocalDebugInfo::get(kMarks));
  const bool is_its = stream == now->stream_ || (its != nullptr && its->number == now->number_);
  return is_its ? now : nullptr;
}

void Recording::note_stream(c10::StreamId stream) {
  thread_local std::shared_ptr<void> marked;
  Recording* const now = active.load();
  const bool is_its = now != nullptr && stream == now->stream_;
  if (marked && !is_its)
    marked.reset();
  const auto* const its = static_cast<const Mark*>(c10::ThreadLocalDebugInfo::get(kMarks));
  if (is_its && (its == nullptr || its->number != now->number_))
    marked = mark(now->number_);
}

void Recording::keep(const at::Tensor& tensor) {
  void* const data = tensor.storage().data_ptr().get();
  const std::lock_guard lock(mutex_);
  if (data == nullptr || made_.contains(data) || kept_.contains(data))
    return;
  const OpenedBlock open(data);
  const auto* const begin = static_cast<const char*>(data);
  kept_.emplace(data, Kept{tensor.storage(), {begin, begin + tensor.storage().nbytes()}});
}

void Recording::note_made(const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  made_.insert(tensor.storage().data_ptr().get());
}

void Recording::add(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  calls_.push_back(std::move(call));
}

void refuse_recording(const char* what) {
  TORCH_CHECK(false, "operation not permitted while work is captured: ", what);
}

}  // namespace treadle::far
