#include <treadle/core/training/parameter_view.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>

#include <treadle/base/error.h>

namespace treadle {

const at::Tensor& ParameterPiece::gradients() const {
  if (!gradients_.defined())
    gradients_ = raw_gradients_.mul(view_->step_.gradient_scale);
  return gradients_;
}

const at::Tensor& ParameterPiece::slot(std::size_t slot) const {
  if (slot < slots_.size() && packed_[slot].codes.defined() && !slots_[slot].defined()) {
    slots_[slot] = view_->slots_.quantizer(slot)
                       ->dequantize(packed_[slot])
                       .narrow(0, 0, parameters_.numel())
                       .view(parameters_.sizes())
                       .to(parameters_.scalar_type());
  }
  TREADLE_EXPECTS(slot < slots_.size() && slots_[slot].defined(),
                  "runs() have per-element slots, layers() also those per segment; a scalar slot "
                  "is the view's");
  return slots_[slot];
}

void ParameterPiece::set_parameters(const at::Tensor& value) const {
  view_->write(parameters_, value);
}

void ParameterPiece::set_slot(std::size_t slot, const at::Tensor& value) const {
  if (slot >= slots_.size() || !packed_[slot].codes.defined())
    return view_->write(this->slot(slot), value);
  const BlockQuantizer::Quantized& packed = packed_[slot];
  at::Tensor flat = value.reshape({-1});
  if (const std::int64_t missing = packed.codes.numel() - flat.numel(); missing > 0)
    flat = at::constant_pad_nd(flat, {0, missing});
  const BlockQuantizer::Quantized quantized = view_->slots_.quantizer(slot)->quantize(flat);
  view_->write(packed.codes, quantized.codes);
  view_->write(packed.scales, quantized.scales);
  slots_[slot] = at::Tensor();
}

std::span<const double> HostParameters::updates() const {
  const at::Tensor& updates = slots_.updates();
  return {updates.data_ptr<double>(), static_cast<std::size_t>(updates.numel())};
}

ParameterView::ParameterView(ParameterArena& arena, OptimizerSlots& slots, Path path)
    : arena_(arena),
      slots_(slots),
      is_host_(path == Path::kFastest && arena.parameters().is_cpu()),
      host_(arena, slots) {}

ParameterView::~ParameterView() = default;

const HostParameters& ParameterView::require_host() const {
  if (!arena_.parameters().is_cpu()) {
    throw TrainingError("this optimizer updates parameters on a CPU only, and they are on " +
                        device().str() + "; choose another optimizer, or train on the CPU");
  }
  TREADLE_EXPECTS(may_use_host_, "an update whose numbers are tensors has none for the host");
  return host_;
}

/// Which segments take part. Views and cohorts stay as they are while these are the same.
void ParameterView::note_active() {
  const std::span<const Segment> segments = arena_.segments();
  bool differs = active_.size() != segments.size();
  active_.resize(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    differs = differs || active_[i] != segments[i].active();
    active_[i] = segments[i].active();
  }
  if (differs) {
    slots_.split_cohorts(active_);
    mask_ = at::Tensor();
  }
  if (differs || generation_ != slots_.generation()) {
    generation_ = slots_.generation();
    has_runs_ = has_layers_ = false;
  }
}

void ParameterView::begin_step(const StepInfo& info) {
  note_active();
  host_.info_ = info;
  may_use_host_ = is_host_;
  if (arena_.parameters().is_cpu()) {
    double* const updates = slots_.updates().data_ptr<double>();
    for (std::size_t i = 0; i < active_.size(); ++i)
      updates[i] += active_[i] ? 1 : 0;
  } else {
    make_mask();
    slots_.updates().add_(mask_);
  }
  has_numbers_ = false;
  forget_values();
}

/// The host's numbers as tensors, once somebody uses them.
void ParameterView::make_numbers() {
  if (has_numbers_)
    return;
  const auto put = [this](at::Tensor& number, double value) {
    if (number.defined())
      number.fill_(value);
    else
      number = at::full({}, value, slots_.updates().options());
  };
  put(own_.learning_rate, host_.info_.learning_rate);
  put(own_.gradient_scale, host_.info_.gradient_scale);
  step_ = own_;
  has_numbers_ = true;
}

const at::Tensor& ParameterView::learning_rate() {
  make_numbers();
  return step_.learning_rate;
}

void ParameterView::begin_step(const StepTensors& step) {
  note_active();
  may_use_host_ = false;
  step_ = step;
  has_numbers_ = true;
  make_mask();
  slots_.updates().add_(mask_ * step.skip.logical_not());
  forget_values();
}

void ParameterView::make_mask() {
  if (mask_.defined())
    return;
  const at::Tensor here = at::empty({static_cast<std::int64_t>(active_.size())}, at::kDouble);
  double* const marks = here.data_ptr<double>();
  for (std::size_t i = 0; i < active_.size(); ++i)
    marks[i] = active_[i] ? 1 : 0;
  mask_ = here.to(slots_.updates().device());
}

void ParameterView::forget_values() {
  for (std::vector<ParameterPiece>* pieces : {&runs_, &layers_}) {
    for (ParameterPiece& piece : *pieces) {
      piece.gradients_ = at::Tensor();
      for (std::size_t slot = 0; slot < piece.slots_.size(); ++slot) {
        if (piece.packed_[slot].codes.defined())
          piece.slots_[slot] = at::Tensor();
      }
    }
  }
}

std::span<const ParameterPiece> ParameterView::runs() {
  make_numbers();
  if (!has_runs_)
    make_runs();
  return runs_;
}

std::span<const ParameterPiece> ParameterView::layers() {
  make_numbers();
  if (!has_layers_)
    make_layers();
  return layers_;
}

at::Tensor ParameterView::scalar(std::size_t slot) const {
  TREADLE_EXPECTS(slots_.spec(slot).kind == SlotSpec::Kind::kScalar, "that is no scalar slot");
  return slots_.tensor(slot).select(0, 0);
}

void ParameterView::set_scalar(std::size_t slot, const at::Tensor& value) {
  make_numbers();
  write(scalar(slot), value);
}

/// Elements [begin, begin + size).
ParameterPiece ParameterView::piece(std::int64_t begin, std::int64_t size,
                                    std::size_t first_segment) {
  ParameterPiece piece;
  piece.view_ = this;
  piece.segment_ = &arena_.segments()[first_segment];
  piece.parameters_ = arena_.parameters().narrow(0, begin, size);
  piece.raw_gradients_ = arena_.gradients().narrow(0, begin, size);
  constexpr std::int64_t kBlock = BlockQuantizer::kBlock;
  const std::int64_t blocks = (size + kBlock - 1) / kBlock;
  for (std::size_t slot = 0; slot < slots_.count(); ++slot) {
    const bool is_packed = slots_.quantizer(slot) != nullptr;
    const bool is_vector = slots_.spec(slot).kind == SlotSpec::Kind::kPerElement && !is_packed;
    piece.slots_.push_back(is_vector ? slots_.tensor(slot).narrow(0, begin, size) : at::Tensor());
    piece.packed_.emplace_back();
    if (is_packed) {
      piece.packed_.back() = {slots_.tensor(slot).narrow(0, begin, blocks * kBlock),
                              slots_.scales(slot).narrow(0, begin / kBlock, blocks)};
    }
  }
  piece.updates_ = slots_.updates().select(0, static_cast<std::int64_t>(first_segment));
  return piece;
}

void ParameterView::make_runs() {
  const std::span<const Segment> segments = arena_.segments();
  const auto end_of = [&](std::size_t i) {  // with the padding
    return i + 1 < segments.size() ? segments[i + 1].offset : arena_.size();
  };
  runs_.clear();
  for (std::size_t first = 0; first < segments.size();) {
    std::size_t last = first;
    const auto joins = [&](std::size_t next) {
      return next < segments.size() && active_[next] &&
             slots_.cohorts()[next] == slots_.cohorts()[first];
    };
    if (active_[first]) {
      while (joins(last + 1))
        ++last;
      const std::int64_t begin = segments[first].offset;
      runs_.push_back(piece(begin, end_of(last) - begin, first));
    }
    first = last + 1;
  }
  has_runs_ = true;
}

void ParameterView::make_layers() {
  layers_.clear();
  const std::span<const Segment> segments = arena_.segments();
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (!active_[i])
      continue;
    ParameterPiece layer = piece(segments[i].offset, segments[i].size, i);
    layer.parameters_ = layer.parameters_.view(segments[i].shape);
    layer.raw_gradients_ = layer.raw_gradients_.view(segments[i].shape);
    for (std::size_t slot = 0; slot < layer.slots_.size(); ++slot) {
      at::Tensor& tensor = layer.slots_[slot];
      if (tensor.defined())
        tensor = tensor.view(segments[i].shape);
      else if (slots_.spec(slot).kind == SlotSpec::Kind::kPerSegment)
        tensor = slots_.tensor(slot).select(0, static_cast<std::int64_t>(i));
      else if (slots_.spec(slot).kind == SlotSpec::Kind::kTensor)
        tensor = slots_.tensor_of(slot, i);
    }
    layers_.push_back(std::move(layer));
  }
  has_layers_ = true;
}

void ParameterView::write(const at::Tensor& target, const at::Tensor& value) const {
  at::Tensor into = target;
  if (step_.skip.defined())
    at::where_out(into, step_.skip, target, value.to(target.scalar_type()));
  else
    into.copy_(value);
}

}  // namespace treadle
