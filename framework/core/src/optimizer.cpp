#include <treadle/core/optimizer.h>

#include <ATen/ops/full.h>

#include <treadle/base/error.h>
#include <treadle/core/plugin_call.h>

namespace treadle {
namespace {

at::Tensor make_slot(const SlotSpec& spec, const ParameterArena& arena) {
  switch (spec.kind) {
    case SlotSpec::Kind::kPerElement:
      return at::full({arena.size()}, spec.initial, arena.parameters().options());
    case SlotSpec::Kind::kPerSegment:
      return at::full({static_cast<std::int64_t>(arena.segments().size())}, spec.initial,
                      at::kDouble);
    case SlotSpec::Kind::kScalar:
      return at::full({1}, spec.initial, at::kDouble);
  }
  throw ContractViolation("unknown kind of optimizer slot");
}

}  // namespace

OptimizerSlots::OptimizerSlots(std::vector<SlotSpec> specs, const ParameterArena& arena)
    : specs_(std::move(specs)) {
  for (const SlotSpec& spec : specs_)
    tensors_.push_back(make_slot(spec, arena));
  for (const Segment& segment : arena.segments())
    segment_names_.push_back(segment.name);
}

OptimizerSlots::~OptimizerSlots() = default;

std::int64_t OptimizerSlots::bytes() const {
  std::int64_t total = 0;
  for (const at::Tensor& tensor : tensors_)
    total += static_cast<std::int64_t>(tensor.nbytes());
  return total;
}

StateDict OptimizerSlots::do_state() const {
  StateDict state;
  for (std::size_t i = 0; i < specs_.size(); ++i)
    state.put(specs_[i].name, tensors_[i]);
  state.put("segments", nlohmann::json(segment_names_));
  return state;
}

void OptimizerSlots::do_load_state(const StateDict& state) {
  if (state.value("segments") != nlohmann::json(segment_names_)) {
    throw StorageError("the saved optimizer state belongs to a model with other parameters");
  }
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const at::Tensor& saved = state.tensor(specs_[i].name);
    if (saved.sizes() != tensors_[i].sizes() || saved.scalar_type() != tensors_[i].scalar_type()) {
      throw StorageError("the saved optimizer state \"" + specs_[i].name +
                         "\" has another size or dtype than this optimizer needs");
    }
    tensors_[i].copy_(saved);
  }
}

double Optimizer::learning_rate() const {
  return call_plugin(*this, "learning_rate", [&] { return do_learning_rate(); });
}

std::vector<SlotSpec> Optimizer::slots() const {
  return call_plugin(*this, "slots", [&] { return do_slots(); });
}

void Optimizer::update(Block& block, const StepInfo& info) const {
  call_plugin(*this, "update", [&] { do_update(block, info); });
  block.arena_.write_back();
}

at::Tensor Block::slot(std::size_t slot, const Segment& segment) const {
  return slots_.tensor(slot).narrow(0, segment.offset, segment.size).view(segment.shape);
}

}  // namespace treadle
