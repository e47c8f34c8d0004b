#include <treadle/engine/batch_pipeline.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/task_arena.h>

#include <treadle/base/error.h>
#include <treadle/tensor/device_streams.h>

#include "data/batch_slot.h"
#include "data/row_supply.h"
#include "data/stream_supply.h"
#include "plan/isolated.h"

namespace treadle::engine {
namespace flow = oneapi::tbb::flow;

StepStream::~StepStream() = default;

namespace {

/// The request for one batch, and later the batch. Small: every edge of a flow graph copies its
/// message.
struct Ticket {
  std::size_t number = 0;  // position in the sequence since the pipeline was last started
  std::size_t slot = 0;
};

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

/// What of the batches a pipeline prepares.
struct BatchPipeline::Share {
  ShardRange shards;       // of each
  std::int64_t first = 0;  // of a pass: this one,
  std::int64_t step = 1;   // and every so manyth after it
  bool operator==(const Share&) const = default;
};

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
        work{preparation, this->options, this->random, another_stream(options.device)},
        read(graph, flow::serial,
             [this](Ticket ticket) {
               isolated([&] { find_section(slots[ticket.slot]); });
               return ticket;
             }),
        prepare(graph, flow::unlimited,
                [this](Ticket ticket) {
                  isolated([&] { slots[ticket.slot].fill(work, share.shards); });
                  return ticket;
                }),
        in_order(graph, [](const Ticket& ticket) { return ticket.number; }),
        hand_over(graph, flow::serial, [this](Ticket ticket) {
          isolated([&] { slots[ticket.slot].send(work); });
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

  void find_section(BatchSlot& slot) {
    const Timeline::Span span(options.timeline, Phase::kData);
    const at::NoGradGuard no_gradients;
    try {
      slot.section = supply->section(slot.place);
    } catch (...) {
      slot.error = std::current_exception();
    }
  }

  /// The slots for tickets in flight, as many as the memory allows. Measured on a first batch.
  void size_buffer() {
    BatchSlot probe;
    probe.place = next_ticket;
    find_section(probe);
    probe.fill(work, share.shards);
    if (probe.error)
      rethrow_with_place(probe.error, probe.place, name_of_pass());
    const bool is_at_end = probe.section == nullptr;
    const std::int64_t fits = is_at_end ? 2 : options.buffer_bytes / probe.bytes(work);
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
    for (BatchSlot& slot : slots)
      slot = BatchSlot();
  }

  Place after(Place place) const {
    place.batch += share.step;
    if (place.batch < batches_per_pass.value_or(DataProvider::kEndless))
      return place;
    return {place.pass + 1, share.first};
  }

  void issue_tickets() {
    // One slot fewer than there are: the batch the consumer holds has its slot to itself.
    while (issued - taken < slots.size() - 1) {
      const std::size_t number = issued % slots.size();
      BatchSlot& slot = slots[number];
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
  std::optional<StepRows> take() {
    // Tickets go out in groups: waking a worker costs as much as preparing a small batch.
    if (issued - taken <= slots.size() / 2)
      isolated([&] { issue_tickets(); });
    if (ready.load(std::memory_order_acquire) <= taken)
      graph.wait_for_all();
    BatchSlot& slot = slots[taken % slots.size()];
    ++taken;
    if (slot.error)
      rethrow_with_place(slot.error, slot.place, name_of_pass());
    if (slot.section == nullptr) {
      next_batch = {next_batch.pass + 1, share.first};
      return std::nullopt;
    }
    next_batch = after(next_batch);
    return slot.take(work);
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
  const SlotWork work;

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

  Share share{{0, options.shards}};   // changes while nothing is in flight
  std::vector<BatchSlot> slots;       // as many as tickets may be in flight; used in turn
  std::atomic<std::size_t> ready{0};  // tickets handed over, in order

  flow::graph graph;
  flow::function_node<Ticket, Ticket> read;
  flow::function_node<Ticket, Ticket> prepare;
  flow::sequencer_node<Ticket> in_order;
  flow::function_node<Ticket, flow::continue_msg> hand_over;
};

/// What is left of one epoch.
class BatchPipeline::Epoch {
 public:
  Epoch(Impl& pipeline, std::int64_t epoch, std::int64_t batch, Place place)
      : pipeline_(pipeline), epoch_(epoch), batch_(batch), place_(place) {}

  bool is_over() const {
    const std::optional<std::int64_t> end = pipeline_.batches_per_epoch();
    return ended_ || (end && batch_ >= *end);
  }

  /// Nothing: it has ended. Before, the rows that were taken last are let go of: their slot may be
  /// used again.
  std::optional<StepRows> next() {
    TREADLE_EXPECTS(pipeline_.next_batch == place_,
                    "a stream ends when another epoch of its source is opened");
    std::optional<StepRows> taken = pipeline_.take();
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
      return std::nullopt;
    }
    batch_ += pipeline_.share.step;
    // An epoch that is read again (statistics of batch norm) is no progress.
    if (const auto next = pipeline_.next_of(epoch_, batch_); pipeline_.now.first <= next)
      pipeline_.now = {next, place_};
    return taken;
  }

  StateDict state() const {
    StateDict state;
    state.put("epoch", nlohmann::json(epoch_));
    state.put("batch", nlohmann::json(batch_));
    state.put("source", pipeline_.state(epoch_, batch_));
    return state;
  }

  void load_state(const StateDict& state) {
    epoch_ = state.value("epoch").get<std::int64_t>();
    batch_ = state.value("batch").get<std::int64_t>();
    pipeline_.load_state(state.part("source"));
    const std::optional<Place> place = pipeline_.met(epoch_, batch_);
    TREADLE_EXPECTS(place.has_value(), "a saved stream has its place");
    place_ = *place;
    pipeline_.restart(place_);
  }

 private:
  Impl& pipeline_;
  std::int64_t epoch_;
  std::int64_t batch_;
  Place place_;
  bool ended_ = false;
};

/// An epoch in whole batches.
class BatchPipeline::Stream final : public BatchStream {
 public:
  explicit Stream(Epoch epoch) : epoch_(epoch) {}

 private:
  bool do_next(Batch& batch) override {
    if (epoch_.is_over())
      return false;
    batch = Batch();
    std::optional<StepRows> rows = epoch_.next();
    if (rows)
      batch = joined(std::move(rows->shards));
    return rows.has_value();
  }

  static Batch joined(std::vector<Batch> shards) {
    if (shards.size() == 1)
      return std::move(shards.front());
    std::vector<Batch> with_rows;
    std::copy_if(shards.begin(), shards.end(), std::back_inserter(with_rows),
                 [](const Batch& shard) { return shard.size() > 0; });
    return Batch::join(with_rows);
  }

  StateDict do_state() const override { return epoch_.state(); }
  void do_load_state(const StateDict& state) override { epoch_.load_state(state); }

  Epoch epoch_;
};

class BatchPipeline::Steps final : public StepStream {
 public:
  explicit Steps(Epoch epoch) : epoch_(epoch) {}

  bool next(StepRows& rows) override {
    if (epoch_.is_over())
      return false;
    rows = {};
    std::optional<StepRows> taken = epoch_.next();
    if (taken)
      rows = *std::move(taken);
    return taken.has_value();
  }

 private:
  Epoch epoch_;
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
  TREADLE_EXPECTS(options.shards >= 1, "a batch has at least one shard");
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
  return std::make_unique<Stream>(open(epoch, first_batch, {{0, impl_->options.shards}}));
}

std::unique_ptr<StepStream> BatchPipeline::steps(std::int64_t epoch, std::int64_t first_batch,
                                                 ShardRange own) {
  TREADLE_EXPECTS(own.first < own.last && own.last <= impl_->options.shards,
                  "a process has some of the shards");
  return std::make_unique<Steps>(open(epoch, first_batch, {own}));
}

std::unique_ptr<BatchStream> BatchPipeline::every(std::int64_t epoch, std::int64_t first,
                                                  std::int64_t step) {
  TREADLE_EXPECTS(step >= 1 && first >= 0 && first < step, "some batches of a pass");
  TREADLE_EXPECTS(!impl_->options.batches_per_epoch, "an epoch is a pass");
  const std::int64_t begin = std::min(first, batches_per_epoch().value_or(first));
  return std::make_unique<Stream>(open(epoch, begin, {{0, impl_->options.shards}, first, step}));
}

/// Opens an epoch of which `share` is prepared.
BatchPipeline::Epoch BatchPipeline::open(std::int64_t epoch, std::int64_t first_batch,
                                         const Share& share) {
  const std::optional<std::int64_t> batches = batches_per_epoch();
  TREADLE_EXPECTS(epoch >= 0 && first_batch >= 0 && first_batch <= batches.value_or(first_batch),
                  "there is no such batch");
  const std::optional<Place> met = impl_->met(epoch, first_batch);
  TREADLE_EXPECTS(met.has_value(),
                  "where an epoch of a stream begins is known when the one before has ended");
  Place place = *met;
  if (first_batch == share.first) {
    impl_->begun = {{epoch, 0}, place};
    impl_->supply->forget_before(place);
  }
  if (impl_->share != share) {
    impl_->graph.wait_for_all();
    impl_->share = share;
    impl_->started = false;
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
  return Epoch(*impl_, epoch, first_batch, place);
}

StateDict BatchPipeline::do_state(std::int64_t epoch, std::int64_t first_batch) const {
  return impl_->state(epoch, first_batch);
}

void BatchPipeline::do_load_state(const StateDict& state) {
  impl_->load_state(state);
}

}  // namespace treadle::engine
