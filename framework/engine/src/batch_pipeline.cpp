#include <treadle/engine/batch_pipeline.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <treadle/base/error.h>
#include <treadle/core/task_random.h>

namespace treadle::engine {
namespace flow = oneapi::tbb::flow;
namespace {

/// The order of the rows in one epoch.
struct EpochOrder {
  std::int64_t epoch = 0;
  std::vector<std::int64_t> rows;
};

struct Place {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;
  bool operator==(const Place&) const = default;
};

/// The request for one batch, and later the batch. Small: every edge of a flow graph copies its
/// message.
struct Ticket {
  std::size_t number = 0;  // position in the sequence since the pipeline was last started
  std::size_t slot = 0;
};

/// Where a batch is prepared and waits. As many as tickets may be in flight; used in turn.
struct Slot {
  Place place;
  std::shared_ptr<const EpochOrder> order;
  Batch batch;
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
         only_here(batch.weights) && only_here(batch.rows);
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
  return std::max<std::int64_t>(bytes, 1);
}

[[noreturn]] void rethrow_with_place(const std::exception_ptr& error, const Place& place) {
  const std::string where = " (while preparing batch " + std::to_string(place.batch + 1) +
                            " of epoch " + std::to_string(place.epoch + 1) + ")";
  try {
    std::rethrow_exception(error);
  } catch (const DataError& data_error) {
    throw DataError(data_error.what() + where);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& other) {
    throw DataError(other.what() + where);
  }
}

}  // namespace

struct BatchPipeline::Impl {
  Impl(const RowReader& reader, std::vector<std::int64_t> rows,
       std::vector<const Transform*> transforms, PipelineOptions options, RandomStreams random)
      : reader(reader),
        rows(std::move(rows)),
        transforms(std::move(transforms)),
        options(options),
        random(random),
        prepare(graph, flow::unlimited,
                [this](Ticket ticket) {
                  fill(slots[ticket.slot]);
                  return ticket;
                }),
        in_order(graph, [](const Ticket& ticket) { return ticket.number; }),
        hand_over(graph, flow::serial, [this](Ticket ticket) {
          ready.store(ticket.number + 1, std::memory_order_release);
          return flow::continue_msg();
        }) {
    flow::make_edge(prepare, in_order);
    flow::make_edge(in_order, hand_over);
  }

  ~Impl() { graph.wait_for_all(); }

  std::int64_t batches_per_epoch() const {
    const auto count = static_cast<std::int64_t>(rows.size());
    return options.drop_last ? count / options.batch_size
                             : (count + options.batch_size - 1) / options.batch_size;
  }

  std::shared_ptr<const EpochOrder> order_of(std::int64_t epoch) {
    const bool usable = newest_order && (newest_order->epoch == epoch || !options.shuffle);
    if (!usable) {
      auto order = std::make_shared<EpochOrder>(EpochOrder{epoch, rows});
      if (options.shuffle) {
        random.bits("shuffle", {static_cast<std::uint64_t>(epoch)}).shuffle(order->rows);
      }
      newest_order = std::move(order);
    }
    return newest_order;
  }

  std::span<const std::int64_t> rows_of(const EpochOrder& order, std::int64_t batch) const {
    const auto begin = static_cast<std::size_t>(batch * options.batch_size);
    const auto size = static_cast<std::size_t>(options.batch_size);
    return std::span(order.rows).subspan(begin, std::min(size, order.rows.size() - begin));
  }

  /// Runs on any worker: the slot belongs to this call alone.
  void fill(Slot& slot) {
    const Timeline::Span span(options.timeline, Phase::kData);
    const at::NoGradGuard no_gradients;
    try {
      const auto epoch = static_cast<std::uint64_t>(slot.place.epoch);
      const auto batch = static_cast<std::uint64_t>(slot.place.batch);
      if (!reusable(slot.batch))
        slot.batch = Batch();
      reader.gather(rows_of(*slot.order, slot.place.batch), slot.batch);
      if (transforms.empty())
        return;
      const std::uint64_t seed = random.seed("batch", {epoch, batch});
      for (const Transform* transform : transforms) {
        transform->apply(slot.batch, {options.training, seed});
      }
    } catch (...) {
      slot.error = std::current_exception();
    }
  }

  /// The slots for tickets in flight, as many as the memory allows. Measured on a first batch.
  void size_buffer() {
    Slot probe;
    probe.place = next_ticket;
    probe.order = order_of(next_ticket.epoch);
    fill(probe);
    if (probe.error)
      rethrow_with_place(probe.error, probe.place);
    const std::int64_t fits = options.buffer_bytes / bytes_of(probe.batch);
    slots.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(fits, 2, 32)));
  }

  /// Starts the sequence anew at `place`.
  void restart(const Place& place) {
    graph.wait_for_all();
    graph.reset();
    issued = taken = 0;
    ready.store(0, std::memory_order_relaxed);
    next_ticket = next_batch = place;
    if (slots.empty())
      size_buffer();
    for (Slot& slot : slots)
      slot = Slot();
  }

  Place after(Place place) const {
    if (++place.batch < batches_per_epoch())
      return place;
    return {place.epoch + 1, 0};
  }

  void issue_tickets() {
    // One slot fewer than there are: the batch the consumer holds has its slot to itself.
    while (issued - taken < slots.size() - 1) {
      const std::size_t slot = issued % slots.size();
      slots[slot].place = next_ticket;
      slots[slot].order = order_of(next_ticket.epoch);
      slots[slot].error = nullptr;
      prepare.try_put({issued, slot});
      next_ticket = after(next_ticket);
      ++issued;
    }
    most_in_flight = std::max(most_in_flight, static_cast<std::int64_t>(issued - taken) + 1);
  }

  Batch take() {
    // Tickets go out in groups: waking a worker costs as much as preparing a small batch.
    if (issued - taken <= slots.size() / 2)
      issue_tickets();
    if (ready.load(std::memory_order_acquire) <= taken)
      graph.wait_for_all();
    Slot& slot = slots[taken % slots.size()];
    ++taken;
    next_batch = after(next_batch);
    if (slot.error)
      rethrow_with_place(slot.error, slot.place);
    return slot.batch;
  }

  const RowReader& reader;
  const std::vector<std::int64_t> rows;
  const std::vector<const Transform*> transforms;
  const PipelineOptions options;
  const RandomStreams random;

  // Touched by the consumer alone.
  std::shared_ptr<const EpochOrder> newest_order;
  Place next_ticket;
  Place next_batch;  // what take() returns next
  std::size_t issued = 0;
  std::size_t taken = 0;
  std::int64_t most_in_flight = 0;
  bool started = false;

  std::vector<Slot> slots;
  std::atomic<std::size_t> ready{0};  // tickets handed over, in order

  flow::graph graph;
  flow::function_node<Ticket, Ticket> prepare;
  flow::sequencer_node<Ticket> in_order;
  flow::function_node<Ticket, flow::continue_msg> hand_over;
};

/// What is left of one epoch.
class BatchPipeline::Stream : public BatchStream {
 public:
  Stream(Impl& pipeline, Place place) : pipeline_(pipeline), place_(place) {}

 private:
  bool do_next(Batch& batch) override {
    if (place_.batch >= pipeline_.batches_per_epoch())
      return false;
    batch = Batch();  // lets go of the last batch before its slot may be used again
    TREADLE_EXPECTS(pipeline_.next_batch == place_,
                    "a stream ends when another epoch of its source is opened");
    batch = pipeline_.take();
    ++place_.batch;
    return true;
  }

  StateDict do_state() const override {
    StateDict state;
    state.put("epoch", nlohmann::json(place_.epoch));
    state.put("batch", nlohmann::json(place_.batch));
    return state;
  }

  void do_load_state(const StateDict& state) override {
    place_ = {state.value("epoch").get<std::int64_t>(), state.value("batch").get<std::int64_t>()};
    pipeline_.restart(place_);
  }

  Impl& pipeline_;
  Place place_;
};

BatchPipeline::BatchPipeline(const RowReader& reader, std::vector<std::int64_t> rows,
                             std::vector<const Transform*> transforms, PipelineOptions options,
                             RandomStreams random) {
  TREADLE_EXPECTS(options.batch_size >= 1, "a batch has at least one row");
  TREADLE_EXPECTS(!rows.empty(), "a pipeline needs at least one row");
  impl_ = std::make_unique<Impl>(reader, std::move(rows), std::move(transforms), options, random);
  TREADLE_EXPECTS(impl_->batches_per_epoch() >= 1,
                  "drop_last leaves no batch: fewer rows than one batch");
}

BatchPipeline::~BatchPipeline() = default;

std::int64_t BatchPipeline::most_in_flight() const {
  return impl_->most_in_flight;
}

std::int64_t BatchPipeline::do_rows() const {
  return static_cast<std::int64_t>(impl_->rows.size());
}

std::int64_t BatchPipeline::do_batches_per_epoch() const {
  return impl_->batches_per_epoch();
}

std::unique_ptr<BatchStream> BatchPipeline::do_epoch(std::int64_t epoch, std::int64_t first_batch) {
  TREADLE_EXPECTS(epoch >= 0 && first_batch >= 0 && first_batch <= batches_per_epoch(),
                  "there is no such batch");
  Place place{epoch, first_batch};
  // Without shuffling and augmentation all epochs are alike: go on with what is being prepared.
  const bool alike = !impl_->options.shuffle && !impl_->options.training;
  if (impl_->started && alike && impl_->next_batch.batch == first_batch)
    place = impl_->next_batch;
  const bool continues = impl_->started && impl_->next_batch == place;
  if (!continues && first_batch < batches_per_epoch())
    impl_->restart(place);
  impl_->started = true;
  return std::make_unique<Stream>(*impl_, place);
}

}  // namespace treadle::engine
