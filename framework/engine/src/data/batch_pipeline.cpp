#include <treadle/engine/batch_pipeline.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <treadle/base/error.h>
#include <treadle/engine/device_traffic.h>
#include <treadle/tensor/device_streams.h>

#include "plan/isolated.h"
#include "row_supply.h"
#include "stream_supply.h"

namespace treadle::engine {
namespace flow = oneapi::tbb::flow;
namespace {

/// The request for one batch, and later the batch. Small: every edge of a flow graph copies its
/// message.
struct Ticket {
  std::size_t number = 0;  // position in the sequence since the pipeline was last started
  std::size_t slot = 0;
};

/// Where a batch is prepared and waits. As many as tickets may be in flight; used in turn.
struct Slot {
  Place place;
  std::shared_ptr<const Section> section;  // null: the pass has ended before
  std::vector<std::int64_t> rows;
  Batch batch;  // on the host
  BatchPreparation::Memory memory;
  Batch sent;  // the same on the device, where there is one
  StreamEvent arrived;
  std::exception_ptr error;
};

bool only_here(const at::Tensor& tensor) {
  return !tensor.defined() || (tensor.use_count() == 1 && tensor.storage().use_count() == 1);
}

/// Whether the last user of a batch has let go of all its tensors, so that they may be written
/// again.
bool reusable(const Batch& batch) {
  const auto all_here = [](const std::vector<at::Tensor>& tensors) {
    return std::all_of(tensors.begin(), tensors.end(), only_here);
  };
  const auto free_targets = [&] {
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      const at::Tensor& target = batch.targets[i];
      const at::Tensor& original = batch.original_targets[i];
      const bool is_free = target.is_same(original)
                               ? target.use_count() == 2 && target.storage().use_count() == 1
                               : only_here(target) && only_here(original);
      if (!is_free)
        return false;
    }
    return true;
  };
  return all_here(batch.inputs) && free_targets() && all_here(batch.position_weights) &&
         only_here(batch.weights) && only_here(batch.rows) && only_here(batch.groups);
}

std::int64_t bytes_of(const Batch& batch) {
  std::int64_t bytes = 0;
  const auto add = [&bytes](const at::Tensor& tensor) {
    if (tensor.defined())
      bytes += static_cast<std::int64_t>(tensor.nbytes());
  };
  for (const std::vector<at::Tensor>* tensors :
       {&batch.inputs, &batch.targets, &batch.position_weights}) {
    for (const at::Tensor& tensor : *tensors)
      add(tensor);
  }
  add(batch.weights);
  add(batch.rows);
  add(batch.groups);
  return std::max<std::int64_t>(bytes, 1);
}

/// `what` a pass is to the user: an epoch, unless epochs have a length of their own.
[[noreturn]] void rethrow_with_place(const std::exception_ptr& error, const Place& place,
                                     const char* what) {
  const std::string where = " (while preparing batch " + std::to_string(place.batch + 1) + " of " +
                            what + " " + std::to_string(place.pass + 1) + ")";
  try {
    std::rethrow_exception(error);
  } catch (const DataError& data_error) {
    throw DataError(data_error.what() + where);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& other) {
    throw DataError(other.what() + where);
  }
}

}  // namespace

struct BatchPipeline::Impl {
  using EpochPlace = std::pair<std::int64_t, std::int64_t>;  // epoch and batch of it
  using Met = std::pair<EpochPlace, Place>;

  Impl(std::unique_ptr<RowSupply> rows, BatchPreparation steps, PipelineOptions options,
       RandomStreams random)
      : supply(std::move(rows)),
        preparation(std::move(steps)),
        options(options),
        random(random),
        batches_per_pass(supply->batches_per_pass()),
        copies(another_stream(options.device)),
        read(graph, flow::serial,
             [this](Ticket ticket) {
               isolated([&] { find_section(slots[ticket.slot]); });
               return ticket;
             }),
        prepare(graph, flow::unlimited,
                [this](Ticket ticket) {
                  isolated([&] { fill(slots[ticket.slot]); });
                  return ticket;
                }),
        in_order(graph, [](const Ticket& ticket) { return ticket.number; }),
        hand_over(graph, flow::serial, [this](Ticket ticket) {
          isolated([&] { send(slots[ticket.slot]); });
          ready.store(ticket.number + 1, std::memory_order_release);
          return flow::continue_msg();
        }) {
    flow::make_edge(read, prepare);
    flow::make_edge(prepare, in_order);
    flow::make_edge(in_order, hand_over);
  }

  ~Impl() { graph.wait_for_all(); }

  std::optional<std::int64_t> batches_per_epoch() const {
    if (options.batches_per_epoch)
      return options.batches_per_epoch;
    return batches_per_pass == DataProvider::kEndless ? std::nullopt : batches_per_pass;
  }

  const char* name_of_pass() const { return options.batches_per_epoch ? "pass" : "epoch"; }

  /// Whether every batch can be found by its number alone.
  bool is_counted() const { return batches_per_pass.has_value(); }

  void find_section(Slot& slot) {
    const Timeline::Span span(options.timeline, Phase::kData);
    const at::NoGradGuard no_gradients;
    try {
      slot.section = supply->section(slot.place);
    } catch (...) {
      slot.error = std::current_exception();
    }
  }

  /// Runs on any worker: the slot belongs to this call alone.
  void fill(Slot& slot) {
    if (slot.error || slot.section == nullptr)
      return;
    const Timeline::Span span(options.timeline, Phase::kData);
    const at::NoGradGuard no_gradients;
    try {
      if (!reusable(slot.batch) || !slot.arrived.has_passed())
        slot.batch = Batch();
      const SampleOrder& order = *slot.section->order;
      const std::int64_t begin =
          (slot.place.batch - slot.section->first_batch) * options.batch_size;
      slot.rows.resize(
          static_cast<std::size_t>(std::min(options.batch_size, order.size() - begin)));
      order.fill(begin, slot.rows);
      preparation.put_back(slot.batch, slot.memory);
      slot.section->reader->gather(slot.rows, slot.batch);
      if (preparation.has_host_part())
        preparation.before_transfer(slot.batch, context_of(slot), slot.memory);
      // What is staged stays in the slot, and the next batch is gathered into it.
      if (options.staging != nullptr)
        slot.batch = slot.batch.with_each(
            [&](const at::Tensor& tensor) { return options.staging->staged(tensor); });
      if (preparation.has_device_part() && options.device.is_cpu() && !options.host_part_only)
        preparation.after_transfer(slot.batch, context_of(slot));
    } catch (const NumberTooLarge& error) {
      slot.error = std::make_exception_ptr(
          DataError(slot.section->reader->describe_row(error.row()) + ": " + error.what()));
    } catch (...) {
      slot.error = std::current_exception();
    }
  }

  ApplyContext context_of(const Slot& slot) const {
    return {options.training, random.seed("batch", {static_cast<std::uint64_t>(slot.place.pass),
                                                    static_cast<std::uint64_t>(slot.place.batch)})};
  }

  /// Enqueues the copies to the device, and the rest of the preparation there; the host goes on.
  void send(Slot& slot) {
    if (options.device.is_cpu() || slot.error || slot.section == nullptr)
      return;
    const Timeline::Span span(options.timeline, Phase::kData);
    try {
      const at::NoGradGuard no_gradients;
      const StreamScope on_stream(copies);
      slot.sent = engine::sent(slot.batch, options.device, options.timeline);
      if (preparation.has_device_part())
        preparation.after_transfer(slot.sent, context_of(slot));
      slot.arrived.record(copies);
    } catch (...) {
      slot.error = std::current_exception();
    }
  }

  /// The batch of a slot, for work that the calling thread enqueues from now on.
  Batch handed_out(Slot& slot) const {
    if (options.device.is_cpu())
      return slot.batch;
    const c10::Stream stream = current_stream(options.device);
    slot.arrived.hold_back(stream);
    // Made on the stream of the copies, which must not use its memory again too early.
    return std::exchange(slot.sent, Batch()).with_each([&](const at::Tensor& tensor) {
      use_on(stream, tensor);
      return tensor;
    });
  }

  /// The slots for tickets in flight, as many as the memory allows. Measured on a first batch.
  void size_buffer() {
    Slot probe;
    probe.place = next_ticket;
    find_section(probe);
    fill(probe);
    if (probe.error)
      rethrow_with_place(probe.error, probe.place, name_of_pass());
    const bool is_at_end = probe.section == nullptr;
    const std::int64_t bytes =
        bytes_of(probe.batch) +
        (options.device.is_cpu() ? 0 : preparation.growth_on_device(probe.batch));
    const std::int64_t fits = is_at_end ? 2 : options.buffer_bytes / bytes;
    slots.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(fits, 2, 32)));
  }

  /// Starts the sequence anew at `place`.
  void restart(const Place& place) {
    graph.wait_for_all();
    graph.reset();
    supply->restart(place);
    issued = taken = 0;
    ready.store(0, std::memory_order_relaxed);
    next_ticket = next_batch = place;
    if (slots.empty())
      size_buffer();
    for (Slot& slot : slots)
      slot = Slot();
  }

  Place after(Place place) const {
    if (++place.batch < batches_per_pass.value_or(DataProvider::kEndless))
      return place;
    return {place.pass + 1, 0};
  }

  void issue_tickets() {
    // One slot fewer than there are: the batch the consumer holds has its slot to itself.
    while (issued - taken < slots.size() - 1) {
      const std::size_t number = issued % slots.size();
      Slot& slot = slots[number];
      slot.place = next_ticket;
      slot.error = nullptr;
      if (supply->reads()) {
        slot.section = nullptr;
        read.try_put({issued, number});
      } else {
        find_section(slot);
        prepare.try_put({issued, number});
      }
      next_ticket = after(next_ticket);
      ++issued;
    }
    most_in_flight = std::max(most_in_flight, static_cast<std::int64_t>(issued - taken) + 1);
  }

  /// Nothing: the pass has ended.
  std::optional<Batch> take() {
    // Tickets go out in groups: waking a worker costs as much as preparing a small batch.
    if (issued - taken <= slots.size() / 2)
      isolated([&] { issue_tickets(); });
    if (ready.load(std::memory_order_acquire) <= taken)
      graph.wait_for_all();
    Slot& slot = slots[taken % slots.size()];
    ++taken;
    if (slot.error)
      rethrow_with_place(slot.error, slot.place, name_of_pass());
    if (slot.section == nullptr) {
      next_batch = {next_batch.pass + 1, 0};
      return std::nullopt;
    }
    next_batch = after(next_batch);
    return handed_out(slot);
  }

  /// The batch after the last one of an epoch of so many is the first of the next.
  EpochPlace next_of(std::int64_t epoch, std::int64_t batch) const {
    return options.batches_per_epoch == batch ? EpochPlace{epoch + 1, 0} : EpochPlace{epoch, batch};
  }

  /// Where a batch of an epoch is found, when it cannot be counted: where this pipeline, or the one
  /// whose state was loaded, has met it.
  std::optional<Place> met(std::int64_t epoch, std::int64_t batch) const {
    if (is_counted()) {
      if (!options.batches_per_epoch)
        return Place{epoch, batch};
      const std::int64_t number = epoch * *options.batches_per_epoch + batch;
      return Place{number / *batches_per_pass, number % *batches_per_pass};
    }
    const EpochPlace wanted = next_of(epoch, batch);
    for (const auto& [known, place] : {begun, loaded, now}) {
      if (known == wanted)
        return place;
    }
    if (!options.batches_per_epoch || (epoch == 0 && batch == 0))
      return Place{epoch, batch};
    // An epoch that was ended early: the next one goes on from there.
    return wanted == EpochPlace{now.first.first + 1, 0} ? std::optional(now.second) : std::nullopt;
  }

  StateDict state(std::int64_t epoch, std::int64_t batch) const {
    StateDict state;
    if (!supply->reads())
      return state;
    const std::optional<Place> place = met(epoch, batch);
    TREADLE_EXPECTS(place.has_value(), "only the place where the consumer is can be saved");
    const auto add = [&](const char* name, const Met& known) {
      StateDict part;
      part.put("epoch", nlohmann::json(known.first.first));
      part.put("batch", nlohmann::json(known.first.second));
      part.put("pass", nlohmann::json(known.second.pass));
      part.put("batch_of_pass", nlohmann::json(known.second.batch));
      if (const StateDict mark = supply->mark(known.second); !mark.empty())
        part.put("stream", mark);
      state.put(name, std::move(part));
    };
    add("epoch", begun);
    add("next", {next_of(epoch, batch), *place});
    return state;
  }

  void load_state(const StateDict& state) {
    if (!supply->reads())
      return;
    const auto get = [&](const char* name) -> Met {
      const StateDict& part = state.part(name);
      const Place place{part.value("pass").get<std::int64_t>(),
                        part.value("batch_of_pass").get<std::int64_t>()};
      if (part.has_part("stream"))
        supply->load_mark(place, part.part("stream"));
      return {{part.value("epoch").get<std::int64_t>(), part.value("batch").get<std::int64_t>()},
              place};
    };
    begun = get("epoch");
    loaded = get("next");
    now = loaded;
    started = false;
  }

  const std::unique_ptr<RowSupply> supply;
  const BatchPreparation preparation;
  const PipelineOptions options;
  const RandomStreams random;
  const std::optional<std::int64_t> batches_per_pass;
  const c10::Stream copies;  // to the device

  // Touched by the consumer alone.
  Place next_ticket;
  Place next_batch;       // what take() returns next
  Met begun{{0, 0}, {}};  // the first batch of the newest epoch
  Met now{{0, 0}, {}};    // the next one
  Met loaded{{-1, 0}, {}};
  std::size_t issued = 0;
  std::size_t taken = 0;
  std::int64_t most_in_flight = 0;
  bool started = false;

  std::vector<Slot> slots;
  std::atomic<std::size_t> ready{0};  // tickets handed over, in order

  flow::graph graph;
  flow::function_node<Ticket, Ticket> read;
  flow::function_node<Ticket, Ticket> prepare;
  flow::sequencer_node<Ticket> in_order;
  flow::function_node<Ticket, flow::continue_msg> hand_over;
};

/// What is left of one epoch.
class BatchPipeline::Stream : public BatchStream {
 public:
  Stream(Impl& pipeline, std::int64_t epoch, std::int64_t batch, Place place)
      : pipeline_(pipeline), epoch_(epoch), batch_(batch), place_(place) {}

 private:
  bool do_next(Batch& batch) override {
    if (ended_ || batch_ == pipeline_.batches_per_epoch())
      return false;
    batch = Batch();  // lets go of the last batch before its slot may be used again
    TREADLE_EXPECTS(pipeline_.next_batch == place_,
                    "a stream ends when another epoch of its source is opened");
    std::optional<Batch> taken = pipeline_.take();
    if (!taken && place_.batch == 0)
      throw DataError("the data has no rows to train on after those kept for validation");
    if (!taken && pipeline_.options.batches_per_epoch && !pipeline_.options.one_pass) {
      pipeline_.restart(pipeline_.next_batch);  // the next pass
      taken = pipeline_.take();
      if (!taken)
        throw DataError("the data gave rows before, and has none when it is read again");
    }
    place_ = pipeline_.next_batch;
    if (!taken) {
      ended_ = true;
      pipeline_.started = false;  // what is in flight is behind the end
      return false;
    }
    batch = *std::move(taken);
    ++batch_;
    // An epoch that is read again (statistics of batch norm) is no progress.
    if (const auto next = pipeline_.next_of(epoch_, batch_); pipeline_.now.first <= next)
      pipeline_.now = {next, place_};
    return true;
  }

  StateDict do_state() const override {
    StateDict state;
    state.put("epoch", nlohmann::json(epoch_));
    state.put("batch", nlohmann::json(batch_));
    state.put("source", pipeline_.state(epoch_, batch_));
    return state;
  }

  void do_load_state(const StateDict& state) override {
    epoch_ = state.value("epoch").get<std::int64_t>();
    batch_ = state.value("batch").get<std::int64_t>();
    pipeline_.load_state(state.part("source"));
    const std::optional<Place> place = pipeline_.met(epoch_, batch_);
    TREADLE_EXPECTS(place.has_value(), "a saved stream has its place");
    place_ = *place;
    pipeline_.restart(place_);
  }

  Impl& pipeline_;
  std::int64_t epoch_;
  std::int64_t batch_;
  Place place_;
  bool ended_ = false;
};

namespace {

Batching batching_of(const PipelineOptions& options) {
  return {options.batch_size, options.drop_last, options.fewest_rows, options.shuffle,
          options.sampler};
}

void expect_usable(const PipelineOptions& options) {
  TREADLE_EXPECTS(options.batch_size >= 1, "a batch has at least one row");
  TREADLE_EXPECTS(options.batches_per_epoch.value_or(1) >= 1, "an epoch has at least one batch");
  TREADLE_EXPECTS(options.fewest_rows >= 1, "a batch has at least one row");
}

}  // namespace

BatchPipeline::BatchPipeline(const RowReader& reader, RowList rows, BatchPreparation preparation,
                             PipelineOptions options, RandomStreams random) {
  expect_usable(options);
  TREADLE_EXPECTS(!rows.empty(), "a pipeline needs at least one row");
  impl_ =
      std::make_unique<Impl>(supply_of_rows(reader, std::move(rows), batching_of(options), random),
                             std::move(preparation), options, random);
  TREADLE_EXPECTS(*impl_->batches_per_pass >= 1,
                  "drop_last leaves no batch: fewer rows than one batch");
}

BatchPipeline::BatchPipeline(StreamInput input, BatchPreparation preparation,
                             PipelineOptions options, RandomStreams random) {
  expect_usable(options);
  impl_ = std::make_unique<Impl>(supply_of_stream(input, batching_of(options), random),
                                 std::move(preparation), options, random);
  if (impl_->batches_per_pass && *impl_->batches_per_pass != DataProvider::kEndless &&
      *impl_->batches_per_pass < 1) {
    throw DataError(
        "the stream leaves no batch to train on: " +
        std::to_string(
            std::max<std::int64_t>(0, input.data->stream_rows().value_or(0) - input.first_row)) +
        " rows after those that validate, and a batch has " + std::to_string(options.batch_size) +
        (options.drop_last ? ", which training.drop_last leaves out unless it is full" : "") +
        "; lower training.batch_size, or keep fewer rows for validation");
  }
}

BatchPipeline::~BatchPipeline() = default;

std::optional<std::int64_t> BatchPipeline::batches_per_pass() const {
  return impl_->batches_per_pass;
}

std::int64_t BatchPipeline::most_in_flight() const {
  return impl_->most_in_flight;
}

std::optional<std::int64_t> BatchPipeline::do_batches_per_epoch() const {
  return impl_->batches_per_epoch();
}

std::unique_ptr<BatchStream> BatchPipeline::do_epoch(std::int64_t epoch, std::int64_t first_batch) {
  const std::optional<std::int64_t> batches = batches_per_epoch();
  TREADLE_EXPECTS(epoch >= 0 && first_batch >= 0 && first_batch <= batches.value_or(first_batch),
                  "there is no such batch");
  const std::optional<Place> met = impl_->met(epoch, first_batch);
  TREADLE_EXPECTS(met.has_value(),
                  "where an epoch of a stream begins is known when the one before has ended");
  Place place = *met;
  if (first_batch == 0) {
    impl_->begun = {{epoch, 0}, place};
    impl_->supply->forget_before(place);
  }
  // Without a new order and augmentation all epochs are alike: go on with what is being prepared.
  const PipelineOptions& options = impl_->options;
  const bool alike = !batching_of(options).varies() && !options.training &&
                     !options.batches_per_epoch && !impl_->supply->reads();
  if (impl_->started && alike && impl_->next_batch.batch == first_batch)
    place = impl_->next_batch;
  const bool continues = impl_->started && impl_->next_batch == place;
  if (!continues && first_batch != batches) {
    impl_->restart(place);
    impl_->started = true;
  }
  return std::make_unique<Stream>(*impl_, epoch, first_batch, place);
}

StateDict BatchPipeline::do_state(std::int64_t epoch, std::int64_t first_batch) const {
  return impl_->state(epoch, first_batch);
}

void BatchPipeline::do_load_state(const StateDict& state) {
  impl_->load_state(state);
}

}  // namespace treadle::engine
