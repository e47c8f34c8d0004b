#include "far_operators.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ExpandUtils.h>
#include <ATen/InferSize.h>
#include <ATen/TensorOperators.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "far_memory.h"
#include "far_recording.h"

namespace treadle::far {
namespace {

using c10::optional;

constexpr c10::StreamId kDefaultStream = 0;
thread_local c10::StreamId this_stream = kDefaultStream;

/// While the fallback moves operands: what it copies is the device's own work.
thread_local int inside_operator = 0;

struct InsideOperator {
  InsideOperator() { ++inside_operator; }
  ~InsideOperator() { --inside_operator; }
};

void count(std::atomic<std::int64_t>& what) {
  if (inside_operator == 0)
    ++what;
}

at::Tensor make(c10::IntArrayRef sizes, c10::IntArrayRef strides, at::ScalarType dtype) {
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    elements = sizes[i] == 0 ? 0 : elements + (elements == 0 ? 0 : (sizes[i] - 1) * strides[i]);
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end())
    elements = 0;
  const auto type = c10::scalarTypeToTypeMeta(dtype);
  const std::size_t bytes = static_cast<std::size_t>(elements) * type.itemsize();
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       allocator().allocate(bytes), &allocator(),
                                                       /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::HIP), type);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  if (Recording* const recording = Recording::of_this_thread(this_stream))
    recording->note_made(tensor);
  return tensor;
}

at::Tensor empty_memory_format(c10::IntArrayRef sizes, optional<at::ScalarType> dtype,
                               optional<at::Layout>, optional<at::Device>, optional<bool>,
                               optional<at::MemoryFormat>) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<std::int64_t>(sizes[i], 1);
  return make(sizes, strides, dtype.value_or(at::kFloat));
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                         optional<at::ScalarType> dtype, optional<at::Layout>, optional<at::Device>,
                         optional<bool>) {
  return make(sizes, strides, dtype.value_or(at::kFloat));
}

/// Copies to the device that no stream has come to yet. Operators are done at once, in the order in
/// which threads run them; a copy beside them, on a stream of its own, is done as late as it may
/// be: before the next operator of its stream, or where a stream waits for an event behind it. Who
/// forgets to wait reads zeros.
class EnqueuedCopies {
 public:
  using Ticket = std::uint64_t;

  void add(c10::StreamId stream, std::function<void()> copy) {
    const std::lock_guard lock(mutex_);
    copies_[stream].push_back({++last_, std::move(copy)});
  }
  Ticket last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  void run(c10::StreamId stream, Ticket up_to) {
    const std::lock_guard lock(mutex_);
    run_of(copies_[stream], up_to);
  }
  void run_all() {
    const std::lock_guard lock(mutex_);
    for (auto& [stream, copies] : copies_)
      run_of(copies, last_);
  }
  bool has_run(c10::StreamId stream, Ticket up_to) {
    const std::lock_guard lock(mutex_);
    const auto& copies = copies_[stream];
    return copies.empty() || copies.front().ticket > up_to;
  }

 private:
  struct Copy {
    Ticket ticket;
    std::function<void()> run;
  };

  static void run_of(std::deque<Copy>& copies, Ticket up_to) {
    for (; !copies.empty() && copies.front().ticket <= up_to; copies.pop_front())
      copies.front().run();
  }

  std::mutex mutex_;
  std::map<c10::StreamId, std::deque<Copy>> copies_;
  Ticket last_ = 0;
};

EnqueuedCopies& enqueued() {
  static EnqueuedCopies* const kCopies = new EnqueuedCopies;  // tensors may outlive everything
  return *kCopies;
}

/// What this thread's stream has come to before its next operator.
void catch_up() {
  if (this_stream != kDefaultStream)
    enqueued().run(this_stream, enqueued().last());
}

void copy_now(const at::Tensor& source, const at::Tensor& target) {
  const Opened from(source);
  const Opened to(target);
  at::Tensor into = to.host();
  into.copy_(from.host());
}

at::Tensor strided(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                   optional<std::int64_t> offset) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(self.storage()),
                                                             self.key_set(), self.dtype());
  c10::TensorImpl* const impl = view.unsafeGetTensorImpl();
  impl->set_storage_offset(offset.value_or(self.storage_offset()));
  impl->set_sizes_and_strides(sizes, strides);
  return view;
}

/// The same memory, whatever becomes of the tensor: what a record uses.
at::Tensor as_it_is(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_cpu())
    return tensor;
  return strided(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

void record_copy(Recording& recording, const at::Tensor& source, const at::Tensor& target) {
  if (source.is_cpu())
    refuse_recording("a copy from the host to the device, whose values would never change");
  if (target.is_cpu())
    refuse_recording("a copy from the device to the host, which waits for it");
  recording.keep(source);
  recording.keep(target);
  recording.add([from = as_it_is(source), to = as_it_is(target)] { copy_now(from, to); });
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  if (Recording* const recording = Recording::of_this_thread(this_stream);
      recording != nullptr && inside_operator == 0)
    record_copy(*recording, source, target);
  if (!source.is_cpu() && target.is_cpu())
    count(traffic().to_host);
  if (source.is_cpu() && !target.is_cpu()) {
    count(traffic().to_device);
    if (non_blocking && inside_operator == 0 && this_stream != kDefaultStream) {
      enqueued().add(this_stream, [source, target] { copy_now(source, target); });
      return target;
    }
  }
  catch_up();
  copy_now(source, target);
  return target;
}

at::Tensor& copy(at::Tensor& self, const at::Tensor& source, bool non_blocking) {
  copy_from(source.sizes() == self.sizes() ? source : source.expand_as(self), self, non_blocking);
  return self;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  if (target.sizes() != source.sizes()) {
    const at::Tensor resized = at::empty(source.sizes(), target.options());
    at::Tensor(target).set_(resized.storage(), 0, resized.sizes(), resized.strides());
  }
  return copy_from(source, target, false);
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage, std::int64_t offset,
                        c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(sizes, strides);
  return self;
}

at::Tensor view(const at::Tensor& self, c10::IntArrayRef requested) {
  const auto sizes = at::infer_size_dv(requested, self.numel());
  const auto strides = at::detail::computeStride(self.sizes(), self.strides(), sizes);
  TORCH_CHECK(strides.has_value(),
              "view() needs a tensor whose memory is laid out as the new shape; use reshape()");
  return strided(self, sizes, *strides, self.storage_offset());
}

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  return strided(self, sizes, strides, self.storage_offset());
}

at::Tensor unfold(const at::Tensor& self, std::int64_t dimension, std::int64_t size,
                  std::int64_t step) {
  const std::int64_t at = dimension < 0 ? dimension + self.dim() : dimension;
  std::vector<std::int64_t> sizes = self.sizes().vec();
  std::vector<std::int64_t> strides = self.strides().vec();
  const auto place = static_cast<std::size_t>(at);
  strides.push_back(strides[place]);
  sizes.push_back(size);
  sizes[place] = (sizes[place] - size) / step + 1;
  strides[place] *= step;
  return strided(self, sizes, strides, self.storage_offset());
}

const at::Tensor& resize_tensor(const at::Tensor& self, c10::IntArrayRef sizes,
                                optional<at::MemoryFormat>) {
  if (self.sizes() == sizes)
    return self;
  const at::Tensor resized = at::empty(sizes, self.options());
  at::Tensor(self).set_(resized.storage(), 0, resized.sizes(), resized.strides());
  return self;
}

at::Scalar item(const at::Tensor& self) {
  if (Recording::of_this_thread(this_stream) != nullptr && inside_operator == 0)
    refuse_recording("the host reads a number of the device (item()), and waits for it");
  count(traffic().waits);
  catch_up();
  return Opened(self).host().item();
}

at::Tensor to_far(const at::Tensor& host) {
  if (!host.defined())
    return host;
  const at::Tensor far = make(host.sizes(), host.strides(), host.scalar_type());
  copy_now(host, far);
  return far;
}

/// One call of an operator of the host, on the memory of its operands: same strides, same bits.
class HostCall {
 public:
  HostCall(const c10::OperatorHandle& op, torch::jit::Stack& stack)
      : schema_(op.schema()), stack_(stack), first_(stack.size() - schema_.arguments().size()) {
    for (std::size_t i = first_; i < stack_.size(); ++i) {
      given_.push_back(stack_[i]);
      stack_[i] = on_host(stack_[i], is_out(schema_.arguments()[i - first_]));
    }
    expect_one_device();
  }

  /// What the operator has left on the stack, on the device.
  void take_results() {
    const std::size_t begin = stack_.size() - schema_.returns().size();
    for (Grown& grown : grown_) {
      if (grown.host.sizes() != grown.far.sizes())
        resize_tensor(grown.far, grown.host.sizes(), {});
      copy_now(grown.host, grown.far);
    }
    for (std::size_t i = 0; i < schema_.returns().size(); ++i) {
      const c10::AliasInfo* const alias = schema_.returns()[i].alias_info();
      c10::IValue& result = stack_[begin + i];
      result = alias != nullptr && alias->isWrite() ? argument_of(*alias) : on_device(result);
    }
  }

 private:
  /// `out`: the operator may give it another size.
  struct Grown {
    at::Tensor host;
    at::Tensor far;
  };

  /// As on other accelerators, a number may be on the host, and where an operator has them copied,
  /// indices and lengths.
  void expect_one_device() const {
    static const std::set<std::string> kCopiesIndices{"aten::index", "aten::index_put",
                                                      "aten::index_put_", "aten::_index_put_impl_",
                                                      "aten::_pack_padded_sequence"};
    TORCH_CHECK(!is_far_ || !has_host_tensor_ || kCopiesIndices.count(schema_.name()) > 0,
                "Expected all tensors to be on the same device, but found at least two devices, ",
                c10::Device(kType, 0), " and cpu! (", schema_.name(), ")");
  }

  static bool is_out(const c10::Argument& argument) {
    return argument.kwarg_only() && argument.alias_info() != nullptr &&
           argument.alias_info()->isWrite();
  }

  at::Tensor on_host(const at::Tensor& tensor, bool is_out) {
    if (!tensor.defined())
      return tensor;
    if (tensor.is_cpu()) {
      has_host_tensor_ |= tensor.dim() > 0;
      return tensor;
    }
    is_far_ = true;
    if (is_out) {
      grown_.push_back({at::empty({0}, tensor.options().device(at::kCPU)), tensor});
      return grown_.back().host;
    }
    opened_.push_back({std::make_unique<Opened>(tensor), tensor});
    return opened_.back().opened->host();
  }

  c10::IValue on_host(const c10::IValue& value, bool is_out) {
    if (value.isTensor())
      return on_host(value.toTensor(), is_out);
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector())
        list.push_back(on_host(tensor, is_out));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<optional<at::Tensor>> list;
      for (const optional<at::Tensor>& tensor : value.toOptionalTensorVector())
        list.push_back(tensor ? optional<at::Tensor>(on_host(*tensor, is_out)) : tensor);
      return list;
    }
    if (value.isDevice()) {
      is_far_ = true;
      return c10::Device(c10::kCPU);
    }
    return value;
  }

  /// What an operator returns that it has written to.
  c10::IValue argument_of(const c10::AliasInfo& alias) const {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      const c10::AliasInfo* const its = schema_.arguments()[i].alias_info();
      if (its != nullptr && its->beforeSets() == alias.beforeSets())
        return given_[i];
    }
    throw std::logic_error("an operator returns what it was not given");
  }

  at::Tensor on_device(const at::Tensor& tensor) const {
    if (!tensor.defined() || !is_far_)
      return tensor;
    // A result may be an operand, or a view of one, without saying so.
    for (const auto& [opened, far] : opened_) {
      const at::Tensor& host = opened->host();
      if (host.numel() > 0 && tensor.storage().data() == host.storage().data()) {
        return strided(far, tensor.sizes(), tensor.strides(),
                       far.storage_offset() + tensor.storage_offset());
      }
    }
    return to_far(tensor);
  }

  c10::IValue on_device(const c10::IValue& value) const {
    if (value.isTensor())
      return on_device(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector())
        list.push_back(on_device(tensor));
      return list;
    }
    return value;
  }

  struct OpenedOperand {
    std::unique_ptr<Opened> opened;
    at::Tensor far;
  };

  const c10::FunctionSchema& schema_;
  torch::jit::Stack& stack_;
  const std::size_t first_;
  std::vector<c10::IValue> given_;
  std::vector<OpenedOperand> opened_;
  std::vector<Grown> grown_;
  bool is_far_ = false;
  bool has_host_tensor_ = false;  // with dimensions
};

void call_on_host(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  HostCall call(op, stack);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  call.take_results();
}

/// Calls `use` with every tensor among the values.
template <typename Use>
void for_each_tensor(const torch::jit::Stack& values, const Use& use) {
  for (const c10::IValue& value : values) {
    if (value.isTensor())
      use(value.toTensor());
    if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector())
        use(tensor);
    }
    if (value.isOptionalTensorList()) {
      for (const optional<at::Tensor>& tensor : value.toOptionalTensorVector())
        use(tensor.value_or(at::Tensor()));
    }
  }
}

c10::IValue as_it_is(const c10::IValue& value) {
  if (value.isTensor())
    return as_it_is(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector())
      list.push_back(as_it_is(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<optional<at::Tensor>> list;
    for (const optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? optional<at::Tensor>(as_it_is(*tensor)) : tensor);
    return list;
  }
  return value;
}

std::vector<at::Tensor> tensors_of(const torch::jit::Stack& values, std::size_t begin) {
  std::vector<at::Tensor> all;
  for_each_tensor({values.begin() + static_cast<std::ptrdiff_t>(begin), values.end()},
                  [&](const at::Tensor& tensor) { all.push_back(tensor); });
  return all;
}

/// Where a call has come to results in other memory, they are copied to where it was recorded.
void put(const std::vector<at::Tensor>& results, const std::vector<at::Tensor>& recorded) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined() || results[i].is_cpu() ||
        results[i].storage().data() == recorded[i].storage().data())
      continue;
    TORCH_CHECK(results[i].sizes() == recorded[i].sizes(),
                "a replayed operator has a result of another size");
    copy_now(results[i], recorded[i]);
  }
}

/// Operators whose results have as many elements as the data says: a GPU's wait for that number.
void refuse_sizes_of_data(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
                          std::size_t first) {
  static const std::set<std::string> kAlways{
      "aten::nonzero",      "aten::masked_select",      "aten::_unique",
      "aten::_unique2",     "aten::unique_consecutive", "aten::unique_dim",
      "aten::bincount",     "aten::repeat_interleave",  "aten::argwhere",
      "aten::nonzero_numpy"};
  const std::string& name = op.schema().name();
  bool waits = kAlways.contains(name);
  const bool puts = name.rfind("aten::index_put", 0) == 0 || name.rfind("aten::_index_put", 0) == 0;
  // One value where a mask says so is filled in.
  const bool fills = puts && stack[first + 2].toTensor().numel() == 1 && !stack[first + 3].toBool();
  if (name == "aten::index" || (puts && !fills)) {
    for (const optional<at::Tensor>& index : stack[first + 1].toOptionalTensorVector())
      waits |= index && index->defined() && index->scalar_type() == at::kBool;
  }
  if (waits)
    refuse_recording((name + " has a size that depends on values: the host waits for it").c_str());
}

/// Every other operator: the host's, on the same memory.
void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Recording* const recording =
      inside_operator == 0 ? Recording::of_this_thread(this_stream) : nullptr;
  count_call();
  const InsideOperator inside;
  catch_up();
  if (recording == nullptr)
    return call_on_host(op, *stack);
  const std::size_t first = stack->size() - op.schema().arguments().size();
  refuse_sizes_of_data(op, *stack, first);
  const torch::jit::Stack given(stack->begin() + static_cast<std::ptrdiff_t>(first), stack->end());
  for_each_tensor(given, [&](const at::Tensor& tensor) {
    if (tensor.defined() && !tensor.is_cpu())
      recording->keep(tensor);
  });
  call_on_host(op, *stack);
  torch::jit::Stack again;
  for (const c10::IValue& value : given)
    again.push_back(as_it_is(value));
  std::vector<at::Tensor> results = tensors_of(*stack, first);
  for (at::Tensor& result : results)
    result = as_it_is(result);
  recording->add([op, again, results] {
    torch::jit::Stack values = again;
    call_on_host(op, values);
    put(tensors_of(values, 0), results);
  });
}

/// The same for operators that are called by their own names: `call` returns their results.
template <typename Call>
std::vector<at::Tensor> recorded(std::initializer_list<at::Tensor> operands, const Call& call) {
  Recording* const recording = Recording::of_this_thread(this_stream);
  const InsideOperator inside;
  const at::AutoDispatchBelowAutograd below;
  catch_up();
  if (recording == nullptr)
    return call();
  for (const at::Tensor& operand : operands) {
    if (operand.defined())
      recording->keep(operand);
  }
  std::vector<at::Tensor> results = call();
  recording->add([call, results] { put(call(), results); });
  return results;
}

// libtorch asks other devices than its own for convolutions as a whole. These are the CPU's.

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const optional<at::Tensor>& bias, c10::IntArrayRef stride,
                       c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
                       c10::IntArrayRef output_padding, std::int64_t groups) {
  TORCH_CHECK(input.device() == weight.device(),
              "Expected all tensors to be on the same device, but found ", input.device(), " and ",
              weight.device(), "! (convolution)");
  const at::Tensor plain_bias = bias.value_or(at::Tensor());
  return recorded({input, weight, plain_bias},
                  [=, stride = stride.vec(), padding = padding.vec(), dilation = dilation.vec(),
                   output_padding = output_padding.vec()] {
                    const Opened x(input);
                    const Opened w(weight);
                    optional<Opened> b;
                    if (plain_bias.defined())
                      b.emplace(plain_bias);
                    return std::vector<at::Tensor>{to_far(at::convolution(
                        x.host(), w.host(), b ? optional<at::Tensor>(b->host()) : c10::nullopt,
                        stride, padding, dilation, transposed, output_padding, groups))};
                  })
      .front();
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
    c10::IntArrayRef stride, c10::IntArrayRef padding, c10::IntArrayRef dilation, bool transposed,
    c10::IntArrayRef output_padding, std::int64_t groups, std::array<bool, 3> wanted) {
  const std::vector<at::Tensor> results =
      recorded({gradient, input, weight}, [=, stride = stride.vec(), padding = padding.vec(),
                                           dilation = dilation.vec(),
                                           output_padding = output_padding.vec()] {
        const Opened g(gradient);
        const Opened x(input);
        const Opened w(weight);
        const std::vector<std::int64_t> bias{transposed ? weight.size(1) * groups : weight.size(0)};
        const auto [of_input, of_weight, of_bias] =
            at::convolution_backward(g.host(), x.host(), w.host(), c10::IntArrayRef(bias), stride,
                                     padding, dilation, transposed, output_padding, groups, wanted);
        return std::vector<at::Tensor>{to_far(of_input), to_far(of_weight), to_far(of_bias)};
      });
  return {results[0], results[1], results[2]};
}

/// What an event stands behind.
struct Recorded {
  c10::StreamId stream;
  EnqueuedCopies::Ticket ticket;
};

/// One device with as many streams as anybody asks for.
class FarGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return {kType, 0}; }
  c10::Device getDevice() const override { return {kType, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override { return stream_of(this_stream); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream_of(kDefaultStream); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    static std::atomic<c10::StreamId> last{kDefaultStream};
    return stream_of(++last);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    Recording::note_stream(stream.id());
    return stream_of(std::exchange(this_stream, stream.id()));
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event == nullptr)
      *event = new Recorded();
    *static_cast<Recorded*>(*event) = {stream.id(), enqueued().last()};
  }
  void block(void* event, const c10::Stream&) const override {
    if (const auto* recorded = static_cast<Recorded*>(event))
      enqueued().run(recorded->stream, recorded->ticket);
  }
  bool queryEvent(void* event) const override {
    const auto* recorded = static_cast<Recorded*>(event);
    return recorded == nullptr || enqueued().has_run(recorded->stream, recorded->ticket);
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Recorded*>(event);
  }
  // Memory is given back by whoever holds it last, and a copy that is enqueued holds it.
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
  bool queryStream(const c10::Stream& stream) const override {
    return enqueued().has_run(stream.id(), enqueued().last());
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    count(traffic().waits);
    enqueued().run(stream.id(), enqueued().last());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

 private:
  static c10::Stream stream_of(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, {kType, 0}, id);
  }
};

/// Autograd has no part in it: on a CPU it passes such operators on to their kernel.
void pass_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
}

/// Where libtorch has a kernel for the CPU, and composes the operator of others elsewhere, the far
/// device has the CPU's, too.
void take_from_cpu(torch::Library& aten, torch::Library& autograd) {
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind("aten::", 0) != 0)
      continue;
    const auto op = dispatcher.findSchema(name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
        op->hasKernelForDispatchKey(c10::DispatchKey::HIP))
      continue;
    const std::string full =
        name.name + (name.overload_name.empty() ? "" : "." + name.overload_name);
    aten.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&fall_back>());
    // libtorch 1.13 has no autograd key for HIP, and takes that of the rest, which composes.
    if (op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
      autograd.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&pass_autograd>());
  }
}

}  // namespace

Traffic& traffic() {
  static Traffic counted;
  return counted;
}

void synchronize() {
  count(traffic().waits);
  if (is_gone()) {
    throw TrainingError(
        "the device far:0 failed: it has fallen off the bus; work that was enqueued on it is lost. "
        "Plug it in, then resume the run");
  }
  enqueued().run_all();
}

namespace {

class RecordedCalls final : public CapturedWork {
 public:
  explicit RecordedCalls(std::vector<std::function<void()>> calls) : calls_(std::move(calls)) {}

  void replay() override {
    const InsideOperator inside;
    const at::AutoDispatchBelowAutograd below;  // as where operators are called
    catch_up();
    for (const auto& call : calls_) {
      count_call();
      call();
    }
  }

 private:
  const std::vector<std::function<void()>> calls_;
};

}  // namespace

std::unique_ptr<CapturedWork> capture(const std::function<void()>& work) {
  TORCH_CHECK(this_stream != kDefaultStream, "work is not captured on the default stream");
  Recording recording(this_stream);
  work();
  return std::make_unique<RecordedCalls>(recording.end());
}

void install() {
  static const FarGuard guard;
  static const bool installed = [] {
    static c10::impl::DeviceGuardImplRegistrar registered(kType, &guard);
    using torch::CppFunction;
    static torch::Library everything(torch::Library::IMPL, "_", c10::DispatchKey::HIP, __FILE__,
                                     __LINE__);
    everything.fallback(CppFunction::makeFromBoxedFunction<&fall_back>());
    static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::HIP, __FILE__,
                               __LINE__);
    aten.impl("empty.memory_format", &empty_memory_format);
    aten.impl("empty_strided", &empty_strided);
    aten.impl("_copy_from", &copy_from);
    aten.impl("_copy_from_and_resize", &copy_from_and_resize);
    aten.impl("copy_", &copy);
    aten.impl("set_.source_Storage_storage_offset", &set_storage);
    aten.impl("as_strided", &strided);
    aten.impl("view", &view);
    aten.impl("_reshape_alias", &reshape_alias);
    aten.impl("unfold", &unfold);
    aten.impl("resize_", &resize_tensor);
    aten.impl("_local_scalar_dense", &item);
    aten.impl("convolution_overrideable", &convolution);
    aten.impl("convolution_backward_overrideable", &convolution_backward);
    static torch::Library autograd(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradOther,
                                   __FILE__, __LINE__);
    take_from_cpu(aten, autograd);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace treadle::far
