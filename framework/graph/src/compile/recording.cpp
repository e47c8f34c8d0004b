#include "compile/recording.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <typeinfo>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Type.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>

#include <treadle/base/error.h>
#include <treadle/plan/lowerable.h>
#include <treadle/tensor/task_random.h>
#include <treadle/tensor/torch_versions.h>

// Recording by dispatch.
//
// A boxed fallback on a dispatch key below autograd sees every operator that reaches a backend, in
// the forward as in the backward that autograd derives from it: composite operators are taken apart
// above the key, and what a kernel calls within itself is not seen. The key is switched on for the
// recording thread alone.
//
// Tensors are told apart by where their numbers lie (storage, offset, sizes, strides, dtype):
// autograd hands saved tensors out as other objects. All tensors of a recording are held until it
// ends, so no memory is used twice. A write in place is recorded as the call it is, and a view as
// well, so a replay shares memory as the original did.
//
// A replay runs the same kernels on the same numbers in the same order, hence the same bits.

namespace treadle::graph {
namespace {

using Stack = torch::jit::Stack;

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// An argument or a result of a call: numbers, or values by index.
struct Part {
  enum class Kind { kConstant, kTensor, kTensors, kOptionals };
  Kind kind = Kind::kConstant;
  c10::IValue constant;
  std::vector<std::size_t> values;  // kNone: absent
};

struct Step {
  c10::OperatorHandle op;
  std::vector<Part> arguments;
  std::vector<Part> results;
  std::vector<std::size_t> done;  // values without later readers
};

/// Operators whose result, or whose result's size, is known only from numbers.
const std::set<std::string_view>& by_numbers() {
  static const std::set<std::string_view> names{"aten::_local_scalar_dense",
                                                "aten::item",
                                                "aten::is_nonzero",
                                                "aten::equal",
                                                "aten::nonzero",
                                                "aten::nonzero_numpy",
                                                "aten::masked_select",
                                                "aten::_unique",
                                                "aten::_unique2",
                                                "aten::unique_dim",
                                                "aten::bincount",
                                                "aten::unique_consecutive",
                                                "aten::repeat_interleave",
                                                "aten::_assert_async",
                                                "aten::unique_dim_consecutive",
                                                "aten::_pack_padded_sequence"};
  return names;
}

class Recorder {
 public:
  /// A tensor that is there before: later ones of the same place are the same value.
  std::size_t know(const at::Tensor& tensor) {
    const auto [known, is_new] = places_.try_emplace(place_of(tensor), tensors_.size());
    if (is_new)
      tensors_.push_back(tensor);
    return known->second;
  }
  std::optional<std::size_t> find(const at::Tensor& tensor) const {
    const auto known = places_.find(place_of(tensor));
    return known == places_.end() ? std::nullopt : std::optional(known->second);
  }
  /// No call may write to it.
  void protect(const at::Tensor& tensor, std::string what) {
    protected_.emplace(storage_of(tensor), std::move(what));
  }
  bool is_protected(const at::Tensor& tensor) const {
    return protected_.count(storage_of(tensor)) > 0;
  }

  void call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const c10::FunctionSchema& schema = op.schema();
    // Where libtorch makes a tensor of numbers in the program: the 3 of x / 3.
    if (schema.name() == "aten::lift_fresh") {
      torch_versions::continue_below(torch_versions::kRecordingKey, op, keys, stack);
      const at::Tensor& fresh = stack->back().toTensor();
      numbers_.emplace_back(know(fresh), fresh);
      return;
    }
    Step step{op, {}, {}, {}};
    const std::size_t first = stack->size() - schema.arguments().size();
    for (std::size_t i = 0; i < schema.arguments().size() && why_.empty(); ++i)
      step.arguments.push_back(argument(schema, i, (*stack)[first + i]));
    const std::string& name = schema.name();
    if (by_numbers().count(name) > 0)
      refuse("what it does depends on numbers (" + name + ")");
    if (name.find("dropout") != std::string::npos)
      refuse("it draws random numbers (" + name + ")");
    torch_versions::continue_below(torch_versions::kRecordingKey, op, keys, stack);
    if (!why_.empty())
      return;
    for (std::size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i)
      step.results.push_back(result((*stack)[i]));
    steps_.push_back(std::move(step));
  }

  void refuse(std::string why) {
    if (why_.empty())
      why_ = std::move(why);
  }
  const std::string& why() const { return why_; }
  std::size_t calls() const { return steps_.size(); }
  /// Of the first `calls`, how many compute with a tensor or a view of it.
  std::size_t uses_of(const at::Tensor& tensor, std::size_t calls) const {
    const auto is_of = [&](const std::vector<Part>& parts) {
      return std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
        return std::any_of(part.values.begin(), part.values.end(), [&](std::size_t value) {
          return value != kNone && storage_of(tensors_[value]) == storage_of(tensor);
        });
      });
    };
    return static_cast<std::size_t>(std::count_if(
        steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(calls),
        [&](const Step& step) { return is_of(step.arguments) && !is_of(step.results); }));
  }
  std::size_t values() const { return tensors_.size(); }
  std::vector<Step> take_steps() { return std::move(steps_); }
  /// Numbers that calls take as tensors.
  const std::vector<std::pair<std::size_t, at::Tensor>>& numbers() const { return numbers_; }

 private:
  using Place = std::tuple<const void*, std::int64_t, std::vector<std::int64_t>,
                           std::vector<std::int64_t>, c10::ScalarType>;

  static const void* storage_of(const at::Tensor& tensor) {
    return tensor.storage().unsafeGetStorageImpl();
  }
  static Place place_of(const at::Tensor& tensor) {
    return {storage_of(tensor), tensor.storage_offset(), tensor.sizes().vec(),
            tensor.strides().vec(), tensor.scalar_type()};
  }

  std::size_t read(const at::Tensor& tensor, const std::string& reader) {
    if (!tensor.defined())
      return kNone;
    if (!tensor.has_storage() || tensor.layout() != at::kStrided) {
      refuse("it computes with tensors that are not dense");
      return kNone;
    }
    if (const auto known = find(tensor))
      return *known;
    // The 2 of x * 2, which libtorch makes a tensor of.
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      numbers_.emplace_back(know(tensor), tensor);
      return numbers_.back().first;
    }
    refuse("it reads a tensor that is no input, parameter or buffer (" + reader + ")");
    return kNone;
  }

  Part argument(const c10::FunctionSchema& schema, std::size_t index, const c10::IValue& given) {
    const c10::Argument& declared = schema.arguments()[index];
    Part part;
    if (declared.type()->str().find("Generator") != std::string::npos) {
      refuse("it draws random numbers (" + schema.name() + ")");
    } else if (given.isTensor()) {
      part.kind = Part::Kind::kTensor;
      part.values.push_back(read(given.toTensor(), schema.name()));
      const bool is_written = declared.alias_info() != nullptr && declared.alias_info()->isWrite();
      const auto target =
          is_written ? protected_.find(storage_of(given.toTensor())) : protected_.end();
      if (target != protected_.end())
        refuse("it writes to " + target->second + " (" + schema.name() + ")");
    } else if (given.isTensorList()) {
      part.kind = Part::Kind::kTensors;
      for (const at::Tensor& one : given.toTensorVector())
        part.values.push_back(read(one, schema.name()));
    } else if (given.isOptionalTensorList()) {
      part.kind = Part::Kind::kOptionals;
      const auto list = given.toOptionalTensorList();
      for (std::size_t i = 0; i < list.size(); ++i) {
        const c10::optional<at::Tensor> one = list.get(i);
        part.values.push_back(one && one->defined() ? read(*one, schema.name()) : kNone);
        const bool is_mask = one && one->defined() &&
                             (one->scalar_type() == at::kBool || one->scalar_type() == at::kByte);
        if (is_mask)
          refuse("what it does depends on numbers (a mask as index)");
      }
    } else {
      part.constant = given;
    }
    return part;
  }

  Part result(const c10::IValue& given) {
    Part part;
    if (given.isTensor()) {
      part.kind = Part::Kind::kTensor;
      part.values.push_back(given.toTensor().defined() ? know(given.toTensor()) : kNone);
    } else if (given.isTensorList()) {
      part.kind = Part::Kind::kTensors;
      for (const at::Tensor& one : given.toTensorVector())
        part.values.push_back(know(one));
    }
    return part;
  }

  std::vector<at::Tensor> tensors_;
  std::map<Place, std::size_t> places_;
  std::map<const void*, std::string> protected_;
  std::vector<std::pair<std::size_t, at::Tensor>> numbers_;
  std::vector<Step> steps_;
  std::string why_;
};

thread_local Recorder* recorder_of_thread = nullptr;

void record_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard nothing_within(torch_versions::kRecordingKey);
  if (recorder_of_thread != nullptr)
    return recorder_of_thread->call(op, keys, stack);
  torch_versions::continue_below(torch_versions::kRecordingKey, op, keys, stack);
}

void expect_fallback() {
  // The registration ends with the Library object; this one lasts as long as the process.
  static const bool installed = [] {
    static torch::Library everything(torch::Library::IMPL, "_", torch_versions::kRecordingKey,
                                     __FILE__, __LINE__);
    everything.fallback(torch::CppFunction::makeFromBoxedFunction<&record_call>());
    return true;
  }();
  static_cast<void>(installed);
}

/// While it lives, calls of this thread are recorded.
class Recording {
 public:
  explicit Recording(Recorder& recorder)
      : before_(std::exchange(recorder_of_thread, &recorder)),
        key_(torch_versions::kRecordingKey) {}
  ~Recording() { recorder_of_thread = before_; }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Recorder* before_;
  c10::impl::IncludeDispatchKeyGuard key_;
};

/// The values of a replay by index.
using Values = std::vector<at::Tensor>;

c10::IValue given_of(const Part& part, const Values& values) {
  const auto value = [&](std::size_t index) {
    return index == kNone ? at::Tensor() : values[index];
  };
  switch (part.kind) {
    case Part::Kind::kConstant:
      return part.constant;
    case Part::Kind::kTensor:
      return value(part.values[0]);
    case Part::Kind::kTensors: {
      c10::List<at::Tensor> list;
      for (const std::size_t index : part.values)
        list.push_back(value(index));
      return list;
    }
    case Part::Kind::kOptionals: {
      c10::List<c10::optional<at::Tensor>> list;
      for (const std::size_t index : part.values)
        list.push_back(index == kNone ? c10::optional<at::Tensor>() : values[index]);
      return list;
    }
  }
  return {};
}

void take_result(const Part& part, const c10::IValue& result, Values& values) {
  if (part.kind == Part::Kind::kTensor && part.values[0] != kNone)
    values[part.values[0]] = result.toTensor();
  if (part.kind != Part::Kind::kTensors)
    return;
  const std::vector<at::Tensor> tensors = result.toTensorVector();
  for (std::size_t i = 0; i < part.values.size(); ++i)
    values[part.values[i]] = tensors[i];
}

void replay(const std::vector<Step>& steps, Values& values) {
  Stack stack;
  for (const Step& step : steps) {
    stack.clear();
    for (const Part& part : step.arguments)
      stack.push_back(given_of(part, values));
    step.op.callBoxed(&stack);
    for (std::size_t i = 0; i < step.results.size(); ++i)
      take_result(step.results[i], stack[i], values);
    for (const std::size_t value : step.done)
      values[value].reset();
  }
}

struct Recorded {
  std::string name;
  std::vector<Step> forward;
  std::vector<Step> backward;
  std::size_t values = 0;
  std::size_t inputs = 0;  // the first ones
  /// Values that are there for every replay: parameters and buffers.
  std::vector<std::pair<std::size_t, at::Tensor>> constants;
  std::size_t output = 0;
  /// The output lies in the memory of an input or a parameter.
  bool output_is_view = false;
  std::vector<std::size_t> kept;  // results of the forward that the backward reads
  std::size_t gradient = kNone;
  std::vector<std::size_t> of_inputs;  // kNone: has no gradient
  std::vector<at::Tensor> parameters;  // with a gradient
  std::vector<std::size_t> of_parameters;
};

class RecordedOp final : public PlanOp {
 public:
  explicit RecordedOp(Recorded recorded) : recorded_(std::move(recorded)) {}

  std::string_view name() const override { return recorded_.name; }
  bool allocates() const override { return true; }
  std::vector<TensorSpec> keeps(std::span<const TensorSpec>) const override {
    return std::vector<TensorSpec>(recorded_.kept.size());
  }
  /// What is kept may be a view of either.
  Reads backward_reads() const override { return {.inputs = true, .output = true}; }
  std::vector<at::Tensor> parameters() const override { return recorded_.parameters; }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    Values values = begin(inputs);
    replay(recorded_.forward, values);
    output = values[recorded_.output];
    if (recorded_.output_is_view)
      output = output.clone(at::MemoryFormat::Contiguous);
    for (std::size_t i = 0; i < kept.size(); ++i)
      kept[i] = values[recorded_.kept[i]];
  }

  void backward(const PlanGradients& gradients) const override {
    if (recorded_.gradient == kNone)
      return;
    Values values = begin(gradients.inputs);
    for (std::size_t i = 0; i < recorded_.kept.size(); ++i)
      values[recorded_.kept[i]] = gradients.kept[i];
    values[recorded_.gradient] = gradients.of_output;
    replay(recorded_.backward, values);
    for (std::size_t i = 0; i < recorded_.inputs; ++i) {
      if (!gradients.wanted[i] || recorded_.of_inputs[i] == kNone)
        continue;
      const at::Tensor& found = values[recorded_.of_inputs[i]];
      const bool is_argument = found.is_alias_of(gradients.of_output) ||
                               std::any_of(gradients.inputs.begin(), gradients.inputs.end(),
                                           [&](const auto& one) { return found.is_alias_of(one); });
      gradients.of_inputs[i] = is_argument ? found.clone(at::MemoryFormat::Contiguous) : found;
    }
    for (std::size_t i = 0; i < recorded_.parameters.size(); ++i) {
      if (gradients.of_parameters[i].defined())
        gradients.of_parameters[i].add_(values[recorded_.of_parameters[i]]);
    }
  }

 private:
  Values begin(std::span<const at::Tensor> inputs) const {
    Values values(recorded_.values);
    for (std::size_t i = 0; i < recorded_.inputs; ++i)
      values[i] = inputs[i].contiguous();
    for (const auto& [index, tensor] : recorded_.constants)
      values[index] = tensor;
    return values;
  }

  Recorded recorded_;
};

/// Puts buffers back as they were.
class BuffersLeftAlone {
 public:
  explicit BuffersLeftAlone(std::vector<at::Tensor> buffers) : buffers_(std::move(buffers)) {
    for (const at::Tensor& buffer : buffers_)
      before_.push_back(buffer.clone());
  }
  ~BuffersLeftAlone() { restore(); }
  BuffersLeftAlone(const BuffersLeftAlone&) = delete;
  BuffersLeftAlone& operator=(const BuffersLeftAlone&) = delete;

  void restore() const {
    const at::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      buffers_[i].copy_(before_[i]);
  }
  /// As they are now.
  std::vector<at::Tensor> copies() const {
    std::vector<at::Tensor> copies;
    for (const at::Tensor& buffer : buffers_)
      copies.push_back(buffer.clone());
    return copies;
  }

 private:
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> before_;
};

/// A forward of the module and its backward.
struct Passed {
  at::Tensor output;
  std::vector<at::Tensor> of_inputs;      // undefined: none
  std::vector<at::Tensor> of_parameters;  // as `parameters`
  std::vector<at::Tensor> buffers;
};

std::vector<at::Tensor> leaves_of(const ToRecord& what, std::span<const at::Tensor> inputs) {
  std::vector<at::Tensor> leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    leaves.push_back(inputs[i].detach().set_requires_grad(what.wanted[i]));
  return leaves;
}

/// Of the leaves that require one, then of the parameters; undefined where there is none.
void differentiate(const ToRecord& what, const std::vector<at::Tensor>& leaves,
                   const std::vector<at::Tensor>& parameters, const at::Tensor& gradient,
                   Passed& passed) {
  passed.of_inputs.resize(leaves.size());
  passed.of_parameters.resize(parameters.size());
  std::vector<at::Tensor> by;
  std::vector<at::Tensor*> to;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (what.wanted[i]) {
      by.push_back(leaves[i]);
      to.push_back(&passed.of_inputs[i]);
    }
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    by.push_back(parameters[i]);
    to.push_back(&passed.of_parameters[i]);
  }
  if (!passed.output.requires_grad() || by.empty())
    return;
  const auto found = torch::autograd::grad({passed.output}, by, {gradient}, /*retain_graph=*/false,
                                           /*create_graph=*/false, /*allow_unused=*/true);
  for (std::size_t i = 0; i < found.size(); ++i)
    *to[i] = found[i];
}

/// Writes down which values nobody reads any more after each step.
void note_what_is_done(std::vector<Step>& steps, std::set<std::size_t> stays) {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    for (const auto* parts : {&step->arguments, &step->results}) {
      for (const Part& part : *parts) {
        for (const std::size_t value : part.values) {
          if (value != kNone && stays.insert(value).second)
            step->done.push_back(value);
        }
      }
    }
  }
}

bool are_equal(const at::Tensor& got, const at::Tensor& expected) {
  return got.defined() == expected.defined() &&
         (!got.defined() || (got.sizes() == expected.sizes() && at::equal(got, expected)));
}

class Maker {
 public:
  Maker(const ToRecord& what, std::string& why)
      : what_(what), why_(why), buffers_(what.callee.module()->buffers()) {
    for (const at::Tensor& parameter : what.callee.module()->parameters()) {
      const bool is_known =
          std::any_of(parameters_.begin(), parameters_.end(),
                      [&](const at::Tensor& known) { return known.is_same(parameter); });
      if (parameter.requires_grad() && what.records_gradients && !is_known)
        parameters_.push_back(parameter);
    }
  }

  std::shared_ptr<const PlanOp> make() {
    if (!may_be_recorded()) {
      why_ = "its layer cannot be lowered to operations";
      return nullptr;
    }
    const bool is_plain =
        std::all_of(what_.inputs.begin(), what_.inputs.end(), [](const at::Tensor& input) {
          return input.is_cpu() && input.layout() == at::kStrided && input.is_contiguous();
        });
    if (!is_plain) {
      why_ = "modules are recorded for contiguous inputs on a CPU";
      return nullptr;
    }
    auto recorded = recorded_calls();
    if (!recorded)
      return nullptr;
    auto op = std::make_shared<RecordedOp>(*std::move(recorded));
    std::vector<at::Tensor> others;
    for (const at::Tensor& input : what_.inputs)
      others.push_back(input.is_floating_point() ? at::randn_like(input) : input);
    if (is_the_module(*op, what_.inputs) && is_the_module(*op, others))
      return op;
    why_ = "a recording of its operators does not give its bits";
    return nullptr;
  }

 private:
  /// A module may do anything, such as count its calls. Those of libtorch are known to do nothing
  /// else, but for the one that holds a function.
  bool may_be_recorded() const {
    if (what_.callee.ability<Recordable>() != nullptr)
      return true;
    const auto modules = what_.callee.module()->modules();
    return std::all_of(modules.begin(), modules.end(), [](const auto& module) {
      const torch::nn::Module& one = *module;
      const std::string type = c10::demangle(typeid(one).name());
      return type.rfind("torch::nn::", 0) == 0 && type.find("FunctionalImpl") == std::string::npos;
    });
  }

  at::Tensor forward(const std::vector<at::Tensor>& inputs) const {
    Callee::State state;
    return what_.callee.call(inputs, state, what_.scope);
  }

  std::optional<Recorded> recorded_calls() {
    expect_fallback();
    Recorder recorder;
    Recorded recorded;
    Passed passed;
    at::Tensor gradient;
    const std::vector<at::Tensor> leaves = leaves_of(what_, what_.inputs);
    const std::vector<at::Tensor> all_parameters = what_.callee.module()->parameters();
    const std::vector<at::Tensor> all_buffers = what_.callee.module()->buffers();
    for (const at::Tensor& leaf : leaves) {
      if (recorder.know(leaf) + 1 != recorder.values()) {
        why_ = "two of its inputs are one tensor";
        return std::nullopt;
      }
      recorder.protect(leaf, "an input");
    }
    recorded.inputs = leaves.size();
    for (const at::Tensor& parameter : all_parameters) {
      recorded.constants.emplace_back(recorder.know(parameter), parameter.detach());
      recorder.protect(parameter, "a parameter");
    }
    for (const at::Tensor& buffer : all_buffers)
      recorded.constants.emplace_back(recorder.know(buffer), buffer);
    {
      const Recording recording(recorder);
      passed.output = forward(leaves);
    }
    const std::size_t calls = recorder.calls();
    const std::size_t made = recorder.values();
    if (what_.records_gradients && passed.output.requires_grad()) {
      gradient = at::randn_like(passed.output, at::MemoryFormat::Contiguous);
      recorded.gradient = recorder.know(gradient);
      const Recording recording(recorder);
      differentiate(what_, leaves, parameters_, gradient, passed);
    }
    buffers_.restore();  // after the backward, which reads what the forward saved of them
    const auto value_of = [&](const at::Tensor& tensor) {
      const auto known = recorder.find(tensor);
      if (!known)
        recorder.refuse("it returns a tensor that no operator made");
      return known.value_or(0);
    };
    recorded.output = value_of(passed.output);
    recorded.output_is_view =
        recorder.is_protected(passed.output) ||
        std::any_of(all_buffers.begin(), all_buffers.end(),
                    [&](const at::Tensor& buffer) { return buffer.is_alias_of(passed.output); });
    recorded.of_inputs.assign(leaves.size(), kNone);
    for (std::size_t i = 0; i < passed.of_inputs.size(); ++i) {
      if (passed.of_inputs[i].defined())
        recorded.of_inputs[i] = value_of(passed.of_inputs[i]);
    }
    for (std::size_t i = 0; i < passed.of_parameters.size(); ++i) {
      if (!passed.of_parameters[i].defined())
        continue;
      recorded.parameters.push_back(parameters_[i]);
      recorded.of_parameters.push_back(value_of(passed.of_parameters[i]));
    }
    for (const at::Tensor& parameter : parameters_) {
      if (recorder.uses_of(parameter, calls) > 1)
        recorder.refuse("it uses a parameter more than once, whose gradient is a sum");
    }
    if (!recorder.why().empty()) {
      why_ = recorder.why();
      return std::nullopt;
    }
    recorded.name = "recorded " + what_.callee.type();
    recorded.values = recorder.values();
    recorded.constants.insert(recorded.constants.end(), recorder.numbers().begin(),
                              recorder.numbers().end());
    recorded.forward = recorder.take_steps();
    recorded.backward.assign(
        std::make_move_iterator(recorded.forward.begin() + static_cast<std::ptrdiff_t>(calls)),
        std::make_move_iterator(recorded.forward.end()));
    recorded.forward.erase(recorded.forward.begin() + static_cast<std::ptrdiff_t>(calls),
                           recorded.forward.end());
    keep_for_backward(recorded, made);
    return recorded;
  }

  /// `made`: values beyond it are the backward's.
  static void keep_for_backward(Recorded& recorded, std::size_t made) {
    std::set<std::size_t> there;  // without the forward
    for (std::size_t i = 0; i < recorded.inputs; ++i)
      there.insert(i);
    for (const auto& [index, tensor] : recorded.constants)
      there.insert(index);
    std::set<std::size_t> kept;
    const auto reads = [&](std::size_t value) {
      if (value < made && there.count(value) == 0)
        kept.insert(value);
    };
    for (const Step& step : recorded.backward) {
      for (const Part& part : step.arguments)
        std::for_each(part.values.begin(), part.values.end(), reads);
    }
    for (const auto* gradients : {&recorded.of_inputs, &recorded.of_parameters})
      std::for_each(gradients->begin(), gradients->end(), reads);
    recorded.kept.assign(kept.begin(), kept.end());
    std::set<std::size_t> after_forward = kept;
    after_forward.insert(recorded.output);
    note_what_is_done(recorded.forward, std::move(after_forward));
    std::set<std::size_t> after_backward(recorded.of_inputs.begin(), recorded.of_inputs.end());
    after_backward.insert(recorded.of_parameters.begin(), recorded.of_parameters.end());
    note_what_is_done(recorded.backward, std::move(after_backward));
  }

  /// Whether a replay gives what the module gives, gradients and buffers included.
  bool is_the_module(const RecordedOp& op, std::span<const at::Tensor> inputs) {
    const std::vector<at::Tensor> leaves = leaves_of(what_, inputs);
    Passed expected;
    expected.output = forward(leaves);
    expected.buffers = buffers_.copies();
    const at::Tensor gradient = at::randn_like(expected.output, at::MemoryFormat::Contiguous);
    differentiate(what_, leaves, parameters_, gradient, expected);
    buffers_.restore();
    Passed got;
    replay_all(op, inputs, gradient, got);
    buffers_.restore();
    const auto same = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(), are_equal);
    };
    return are_equal(got.output, expected.output.detach()) && same(got.buffers, expected.buffers) &&
           same(got.of_inputs, expected.of_inputs) &&
           same(got.of_parameters, expected.of_parameters);
  }

  void replay_all(const RecordedOp& op, std::span<const at::Tensor> inputs,
                  const at::Tensor& gradient, Passed& got) const {
    const at::NoGradGuard no_gradients;
    const at::AutoDispatchBelowADInplaceOrView no_recording;
    std::vector<TensorSpec> specs;
    for (const at::Tensor& input : inputs)
      specs.push_back(TensorSpec::of(input));
    std::vector<at::Tensor> kept(op.keeps(specs).size());
    op.forward(inputs, got.output, kept);
    got.buffers = buffers_.copies();
    got.of_inputs.resize(inputs.size());
    got.of_parameters.resize(parameters_.size());
    const std::vector<at::Tensor> with_gradient = op.parameters();
    std::vector<at::Tensor> of_parameters;
    for (const at::Tensor& parameter : with_gradient)
      of_parameters.push_back(at::zeros_like(parameter));
    const auto wanted = std::make_unique<bool[]>(inputs.size());
    std::copy(what_.wanted.begin(), what_.wanted.end(), wanted.get());
    op.backward({gradient, inputs, got.output, kept, got.of_inputs, specs,
                 std::span<const bool>(wanted.get(), inputs.size()), of_parameters});
    for (std::size_t i = 0, next = 0; i < parameters_.size(); ++i) {
      if (next < with_gradient.size() && with_gradient[next].is_same(parameters_[i]))
        got.of_parameters[i] = of_parameters[next++];
    }
  }

  const ToRecord& what_;
  std::string& why_;
  BuffersLeftAlone buffers_;
  std::vector<at::Tensor> parameters_;  // trained ones
};

}  // namespace

std::shared_ptr<const PlanOp> record(const ToRecord& what, std::string& why) {
  const at::AutoGradMode gradients(what.records_gradients);
  const TaskRandom random(0);
  try {
    return Maker(what, why).make();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {  // the call that follows fails in its own words, if it does
    why = "its operators cannot be recorded";
    return nullptr;
  }
}

}  // namespace treadle::graph
