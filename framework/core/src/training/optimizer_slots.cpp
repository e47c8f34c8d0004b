#include <treadle/core/training/optimizer_slots.h>

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/accumulate.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

constexpr const char* kSegments = "segments";
constexpr const char* kUpdates = "steps";

std::string name_of_scales(const SlotSpec& spec) {
  return spec.name + ".scales";
}

std::shared_ptr<const BlockQuantizer> make_quantizer(const SlotSpec& spec, c10::Device device) {
  using Signs = BlockQuantizer::Signs;
  if (spec.storage == SlotSpec::Storage::kFull)
    return nullptr;
  TREADLE_EXPECTS(spec.kind == SlotSpec::Kind::kPerElement && spec.initial == 0,
                  "a slot of 8 bits has a number per element and begins with 0");
  const bool has_sign = spec.storage == SlotSpec::Storage::kEightBits;
  return std::make_shared<BlockQuantizer>(has_sign ? Signs::kBoth : Signs::kNone, device);
}

/// Begins each segment's tensor with 64 bytes, as segments do.
std::vector<OptimizerSlots::Place> make_places(const SlotSpec& spec, const ParameterArena& arena,
                                               const std::vector<bool>& members) {
  std::vector<OptimizerSlots::Place> places;
  if (spec.kind != SlotSpec::Kind::kTensor)
    return places;
  TREADLE_EXPECTS(spec.shape != nullptr, "a slot of kind kTensor needs a shape");
  const std::int64_t line = 64 / static_cast<std::int64_t>(arena.parameters().element_size());
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < arena.segments().size(); ++i) {
    OptimizerSlots::Place place{{0}, offset, 0};
    if (members.empty() || members[i]) {
      place.shape = spec.shape(arena.segments()[i]);
      place.size = c10::multiply_integers(place.shape);
    }
    offset += (place.size + line - 1) / line * line;
    places.push_back(std::move(place));
  }
  return places;
}

std::int64_t size_of(const std::vector<OptimizerSlots::Place>& places, std::int64_t line) {
  return places.empty() ? 0 : (places.back().offset + places.back().size + line - 1) / line * line;
}

at::Tensor make_slot(const SlotSpec& spec, const ParameterArena& arena,
                     const BlockQuantizer* quantizer,
                     const std::vector<OptimizerSlots::Place>& places) {
  const at::TensorOptions options = arena.parameters().options();
  if (quantizer != nullptr)
    return at::full({arena.size()}, quantizer->zero(), options.dtype(at::kByte));
  switch (spec.kind) {
    case SlotSpec::Kind::kPerElement:
      return at::full({arena.size()}, spec.initial, options);
    case SlotSpec::Kind::kPerSegment:
      return at::full({static_cast<std::int64_t>(arena.segments().size())}, spec.initial,
                      options.dtype(at::kDouble));
    case SlotSpec::Kind::kScalar:
      return at::full({1}, spec.initial, options.dtype(at::kDouble));
    case SlotSpec::Kind::kTensor:
      return at::full(
          {size_of(places, 64 / static_cast<std::int64_t>(arena.parameters().element_size()))},
          spec.initial, options);
  }
  throw ContractViolation("unknown kind of optimizer slot");
}

/// Segments with the same number of updates may be treated alike from now on.
std::vector<int> cohorts_of(const at::Tensor& updates) {
  const at::Tensor here = updates.cpu();
  const double* const counts = here.data_ptr<double>();
  std::map<double, int> known;
  std::vector<int> cohorts(static_cast<std::size_t>(here.numel()));
  for (std::size_t i = 0; i < cohorts.size(); ++i)
    cohorts[i] = known.emplace(counts[i], static_cast<int>(known.size())).first->second;
  return cohorts;
}

}  // namespace

OptimizerSlots::OptimizerSlots(std::vector<SlotSpec> specs, const ParameterArena& arena,
                               const std::vector<bool>& members)
    : specs_(std::move(specs)),
      updates_(at::zeros({static_cast<std::int64_t>(arena.segments().size())},
                         arena.parameters().options().dtype(at::kDouble))),
      cohorts_(arena.segments().size(), 0) {
  TREADLE_EXPECTS(arena.alignment() % alignment_of(specs_) == 0,
                  "slots of 8 bits need an arena whose segments begin with a block");
  for (const SlotSpec& spec : specs_) {
    quantizers_.push_back(make_quantizer(spec, arena.parameters().device()));
    places_.push_back(make_places(spec, arena, members));
    tensors_.push_back(make_slot(spec, arena, quantizers_.back().get(), places_.back()));
    scales_.push_back(quantizers_.back() == nullptr
                          ? at::Tensor()
                          : at::zeros({arena.size() / BlockQuantizer::kBlock},
                                      arena.parameters().options().dtype(at::kFloat)));
  }
  for (const Segment& segment : arena.segments())
    segment_names_.push_back(segment.name);
}

OptimizerSlots::~OptimizerSlots() = default;

std::int64_t OptimizerSlots::alignment_of(const std::vector<SlotSpec>& specs) {
  const bool is_full = std::all_of(specs.begin(), specs.end(), [](const SlotSpec& spec) {
    return spec.storage == SlotSpec::Storage::kFull;
  });
  return is_full ? 1 : BlockQuantizer::kBlock;
}

at::Tensor OptimizerSlots::tensor_of(std::size_t slot, std::size_t segment) const {
  const Place& its = place(slot, segment);
  return tensors_[slot].narrow(0, its.offset, its.size).view(its.shape);
}

void OptimizerSlots::share(std::size_t slot, const OptimizerSlots& other, std::size_t its) {
  tensors_[slot] = other.tensors_[its];
  scales_[slot] = other.scales_[its];
}

std::int64_t OptimizerSlots::bytes() const {
  auto total = static_cast<std::int64_t>(updates_.nbytes());
  for (const at::Tensor& scales : scales_)
    total += scales.defined() ? static_cast<std::int64_t>(scales.nbytes()) : 0;
  for (const at::Tensor& tensor : tensors_)
    total += static_cast<std::int64_t>(tensor.nbytes());
  return total;
}

void OptimizerSlots::split_cohorts(const std::vector<bool>& active) {
  // A cohort of which some are updated and some are not becomes two.
  std::map<std::pair<int, bool>, int> known;
  for (std::size_t i = 0; i < cohorts_.size(); ++i) {
    cohorts_[i] =
        known.emplace(std::pair(cohorts_[i], bool(active[i])), static_cast<int>(known.size()))
            .first->second;
  }
  ++generation_;
}

StateDict OptimizerSlots::do_state() const {
  StateDict state;
  for (std::size_t i = 0; i < specs_.size(); ++i)
    state.put(specs_[i].name, tensors_[i]);
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    if (scales_[i].defined())
      state.put(name_of_scales(specs_[i]), scales_[i]);
  }
  state.put(kUpdates, updates_);
  state.put(kSegments, nlohmann::json(segment_names_));
  return state;
}

void OptimizerSlots::do_load_state(const StateDict& state) {
  if (state.value(kSegments) != nlohmann::json(segment_names_)) {
    throw StorageError("the saved optimizer state belongs to a model with other parameters");
  }
  const auto load = [&state](const std::string& name, at::Tensor& into) {
    const at::Tensor& saved = state.tensor(name);
    if (saved.sizes() != into.sizes() || saved.scalar_type() != into.scalar_type()) {
      throw StorageError("the saved optimizer state \"" + name +
                         "\" has another size or dtype than this optimizer needs");
    }
    into.copy_(saved);
  };
  for (std::size_t i = 0; i < specs_.size(); ++i)
    load(specs_[i].name, tensors_[i]);
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    if (scales_[i].defined())
      load(name_of_scales(specs_[i]), scales_[i]);
  }
  load(kUpdates, updates_);
  cohorts_ = cohorts_of(updates_);
  ++generation_;
}

}  // namespace treadle
