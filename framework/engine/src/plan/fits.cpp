#include <treadle/engine/fits.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <treadle/base/error.h>

#include "isolated.h"

namespace treadle::engine {

FitSchedule::~FitSchedule() = default;

FitWaker::FitWaker() = default;
FitWaker::~FitWaker() = default;

void FitWaker::wake() {
  const std::lock_guard lock(mutex_);
  if (wake_)
    wake_();
}

/// Connects a waker with a plan while it runs.
class WakerLink {
 public:
  WakerLink(FitWaker* waker, std::function<void()> wake) : waker_(waker) { set(std::move(wake)); }
  ~WakerLink() { set(nullptr); }
  WakerLink(const WakerLink&) = delete;
  WakerLink& operator=(const WakerLink&) = delete;

 private:
  void set(std::function<void()> wake) {
    if (waker_ == nullptr)
      return;
    const std::lock_guard lock(waker_->mutex_);
    waker_->wake_ = std::move(wake);
  }

  FitWaker* waker_;
};

namespace {

namespace flow = oneapi::tbb::flow;

enum class FitState { kWaiting, kRunning, kPaused, kCompleted, kStopped };

struct FitNode {
  FitJob job;
  FitState state = FitState::kWaiting;
  bool has_run = false;
  bool goes_on = false;                  // ordered before it had given its slot back
  std::size_t copies_to_come = 0;        // of its checkpoint: until then it does not go on
  bool will_copy = !job.copies.empty();  // its copy is still to come
  std::exception_ptr failure = nullptr;
};

/// The fits of a plan by number and by name.
class FitTable {
 public:
  std::size_t size() const { return nodes_.size(); }
  FitNode& operator[](std::size_t number) { return nodes_[number]; }
  FitNode& at(const std::string& path) { return nodes_[numbers_.at(path)]; }

  /// Adds all or throws.
  void add(std::vector<FitJob> jobs) {
    const std::size_t known = size();
    for (FitJob& job : jobs) {
      if (!numbers_.emplace(job.path, size()).second)
        refuse("two fits are called \"" + job.path + "\"");
      nodes_.push_back({std::move(job)});
    }
    for (std::size_t i = known; i < size(); ++i) {
      for (const std::string& before : waits_for(i)) {
        if (numbers_.count(before) == 0) {
          refuse("\"" + nodes_[i].job.path + "\" depends on \"" + before +
                 "\", which was never planned");
        }
      }
    }
    expect_no_cycle(known);
    for (std::size_t i = known; i < size(); ++i) {
      if (nodes_[i].will_copy)
        ++at(nodes_[i].job.copies).copies_to_come;
    }
  }

  /// A plan hears of a pause from the fit itself, so what follows may be ordered, by another fit's
  /// thread, before the paused one has come back.
  void resume(const std::string& path) {
    const auto number = numbers_.find(path);
    FitNode* const node = number == numbers_.end() ? nullptr : &nodes_[number->second];
    if (node != nullptr && node->state == FitState::kRunning && !node->goes_on) {
      node->goes_on = true;
      return;
    }
    if (node == nullptr || node->state != FitState::kPaused)
      refuse("\"" + path + "\" is to go on, and is not paused");
    node->state = FitState::kWaiting;
  }

  /// A running one has given its slot back.
  void end_run(std::size_t number, FitEnd end) {
    static constexpr std::pair<FitEnd, FitState> kStates[] = {
        {FitEnd::kCompleted, FitState::kCompleted},
        {FitEnd::kPaused, FitState::kPaused},
        {FitEnd::kStopped, FitState::kStopped}};
    FitNode& node = nodes_[number];
    node.state = std::find_if(std::begin(kStates), std::end(kStates), [&](const auto& entry) {
                   return entry.first == end;
                 })->second;
    node.has_run = true;
    if (std::exchange(node.goes_on, false))
      resume(node.job.path);
  }

  /// The first that waits for nothing any more.
  std::optional<std::size_t> first_ready() {
    while (first_waiting_ < size() && is_over(nodes_[first_waiting_].state))
      ++first_waiting_;
    for (std::size_t i = first_waiting_; i < size(); ++i) {
      if (nodes_[i].state == FitState::kWaiting && reason_to_wait(i).empty())
        return i;
    }
    return std::nullopt;
  }

  /// What a waiting fit waits for; empty: nothing.
  std::string reason_to_wait(std::size_t number) {
    const FitNode& node = nodes_[number];
    for (const std::string& path : node.job.depends_on) {
      if (const FitState state = at(path).state; state != FitState::kCompleted)
        return "it depends on " + path + ", which " + word(state);
    }
    if (node.will_copy) {
      const FitNode& source = at(node.job.copies);
      if (!source.has_run || source.state == FitState::kRunning)
        return "it begins with a copy of " + node.job.copies + ", which " + word(source.state);
    }
    if (node.has_run && node.copies_to_come > 0)
      return "its checkpoint is still to be copied by another fit";
    return "";
  }

  /// The fit has made its copy, or never will.
  void release_copy(std::size_t number) {
    if (std::exchange(nodes_[number].will_copy, false))
      --at(nodes_[number].job.copies).copies_to_come;
  }

 private:
  [[noreturn]] static void refuse(const std::string& why) {
    throw ContractViolation("the plan of fits cannot run: " + why);
  }

  static bool is_over(FitState state) {
    return state == FitState::kCompleted || state == FitState::kStopped;
  }

  static std::string word(FitState state) {
    static constexpr std::pair<FitState, const char*> kWords[] = {
        {FitState::kWaiting, "never began"},
        {FitState::kRunning, "is running"},
        {FitState::kPaused, "was left paused"},
        {FitState::kCompleted, "has completed"},
        {FitState::kStopped, "was stopped"}};
    return std::find_if(std::begin(kWords), std::end(kWords),
                        [&](const auto& entry) { return entry.first == state; })
        ->second;
  }

  std::vector<std::string> waits_for(std::size_t number) const {
    std::vector<std::string> paths = nodes_[number].job.depends_on;
    if (nodes_[number].will_copy)
      paths.push_back(nodes_[number].job.copies);
    return paths;
  }

  /// Those before `known` depend on none of the others: a cycle is among the new ones.
  void expect_no_cycle(std::size_t known) const {
    enum class Mark { kNone, kOnTheWay, kDone };
    std::vector<Mark> marks(size() - known, Mark::kNone);
    std::vector<std::size_t> way;
    const std::function<void(std::size_t)> visit = [&](std::size_t number) {
      Mark& mark = marks[number - known];
      if (mark == Mark::kOnTheWay)
        refuse("cycle: " + text_of(way, number));
      if (mark == Mark::kDone)
        return;
      mark = Mark::kOnTheWay;
      way.push_back(number);
      for (const std::string& before : waits_for(number)) {
        if (const std::size_t next = numbers_.at(before); next >= known)
          visit(next);
      }
      way.pop_back();
      marks[number - known] = Mark::kDone;
    };
    for (std::size_t i = known; i < size(); ++i)
      visit(i);
  }

  /// "a -> b -> a": each runs before the next. The way goes from a fit to those before it.
  std::string text_of(const std::vector<std::size_t>& way, std::size_t number) const {
    std::string text;
    for (auto at = std::find(way.begin(), way.end(), number); at != way.end(); ++at)
      text = nodes_[*at].job.path + (text.empty() ? "" : " -> " + text);
    return nodes_[number].job.path + " -> " + text;
  }

  std::deque<FitNode> nodes_;
  std::map<std::string, std::size_t> numbers_;
  std::size_t first_waiting_ = 0;
};

/// Lets fits in, one after another, as long as there is room.
class Admission {
 public:
  Admission(FitSchedule& schedule, FitLimits limits)
      : schedule_(schedule),
        limits_(std::move(limits)),
        node_(graph_, flow::unlimited, [this](std::size_t number) { run(number); }),
        asking_(graph_, flow::serial, [this](flow::continue_msg) { ask_again(); }) {}

  /// Any thread.
  void wake() {
    const std::lock_guard lock(mutex_);
    // A plan that waits for nothing may be over: its graph takes no more messages.
    if (is_waiting_)
      asking_.try_put({});
  }

  void run_all() {
    {
      const std::lock_guard lock(mutex_);
      take_orders();
      admit();
    }
    graph_.wait_for_all();
    TREADLE_EXPECTS(!is_waiting_, "a plan that waits was left");
    for (std::size_t i = 0; i < fits_.size(); ++i) {
      if (fits_[i].failure)
        std::rethrow_exception(fits_[i].failure);
    }
    if (failure_)
      std::rethrow_exception(failure_);
    for (std::size_t i = 0; i < fits_.size(); ++i) {
      if (fits_[i].state == FitState::kWaiting)
        throw TrainingError(fits_[i].job.path + " could not begin: " + fits_.reason_to_wait(i));
    }
  }

 private:
  void run(std::size_t number) {
    FitEnd end = FitEnd::kStopped;
    std::exception_ptr failure;
    // Waiting for a batch should not pick up another fit, which would train inside this one. Waits
    // for a flow graph, as those for batches are, may do so all the same (oneTBB 2021.8): that only
    // delays this fit, as no step is open then, and a fit takes nothing from its thread.
    isolated([&] {
      try {
        end = schedule_.run(path_of(number), [this, number] { settle_soon(number); });
      } catch (...) {
        failure = std::current_exception();
      }
    });
    const std::lock_guard lock(mutex_);
    fits_[number].failure = failure;
    has_failed_ = has_failed_ || failure != nullptr;
    --running_;
    end_run(number, end);
    settle(number);
    take_orders();
    admit();
  }

  std::string path_of(std::size_t number) {
    const std::lock_guard lock(mutex_);
    return fits_[number].job.path;
  }

  /// Not from here: what this thread spawns in its isolation it may also pick up.
  void settle_soon(std::size_t number) {
    graph_.reserve_wait();
    oneapi::tbb::this_task_arena::enqueue([this, number] {
      {
        const std::lock_guard lock(mutex_);
        settle(number);
        admit();
      }
      graph_.release_wait();
    });
  }

  // With the lock held, as everything below.
  void end_run(std::size_t number, FitEnd end) {
    try {
      fits_.end_run(number, end);
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void settle(std::size_t number) {
    if (unsettled_ == number)
      unsettled_.reset();
    fits_.release_copy(number);
  }

  void ask_again() {
    const std::lock_guard lock(mutex_);
    take_orders();
    admit();
  }

  /// Keeps the graph alive while nothing runs in it.
  void wait_for_more(bool waits) {
    if (waits == is_waiting_)
      return;
    is_waiting_ = waits;
    waits ? graph_.reserve_wait() : graph_.release_wait();
  }

  void fail(std::exception_ptr failure) {
    if (!failure_)
      failure_ = std::move(failure);
    has_failed_ = true;
  }

  void take_orders() {
    if (has_failed_)
      return wait_for_more(false);
    try {
      FitOrders orders = schedule_.next();
      wait_for_more(orders.waits);
      fits_.add(std::move(orders.start));
      for (const std::string& path : orders.resume)
        fits_.resume(path);
    } catch (...) {
      fail(std::current_exception());
      wait_for_more(false);
    }
  }

  void admit() {
    if (has_failed_ || unsettled_ || running_ == limits_.at_once)
      return;
    const std::optional<std::size_t> number = fits_.first_ready();
    if (!number || (running_ > 0 && limits_.fits && !limits_.fits()))
      return;
    unsettled_ = number;
    ++running_;
    fits_[*number].state = FitState::kRunning;
    node_.try_put(*number);
  }

  FitSchedule& schedule_;
  const FitLimits limits_;

  std::mutex mutex_;
  FitTable fits_;
  std::size_t running_ = 0;
  std::optional<std::size_t> unsettled_;  // the newest, until it has its memory
  bool has_failed_ = false;
  std::exception_ptr failure_;  // of the schedule, not of a fit

  flow::graph graph_;
  flow::function_node<std::size_t> node_;
  flow::function_node<flow::continue_msg> asking_;
  bool is_waiting_ = false;  // guarded by mutex_
};

}  // namespace

void run_fits(FitSchedule& schedule, FitLimits limits, FitWaker* waker) {
  TREADLE_EXPECTS(limits.at_once >= 1, "at least one fit runs at a time");
  Admission admission(schedule, std::move(limits));
  const WakerLink link(waker, [&admission] { admission.wake(); });
  admission.run_all();
}

}  // namespace treadle::engine
