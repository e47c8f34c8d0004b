#include "flat_rules.h"

#include <algorithm>
#include <tuple>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_reduce.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

// Highway compiles this file once per instruction set: what stands between HWY_BEFORE_NAMESPACE and
// HWY_AFTER_NAMESPACE each time, the rest once. Nothing of the standard library is called in there:
// what it leaves out of line could not run on an older machine.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "flat_rules.cpp"
#include <hwy/foreach_target.h>  // before highway.h

#include <hwy/highway.h>

#ifndef TREADLE_OPTIMIZERS_FLAT_RULES
#define TREADLE_OPTIMIZERS_FLAT_RULES
namespace treadle::optimizers {

template <typename Rule>
using Kernel = void (*)(const Rule&, const Vectors<typename Rule::Element>&, Range);

template <typename T>
using NormKernel = SquaredNorms (*)(const LambRule<T>&, const Vectors<T>&, Range);

/// All loops of one instruction set, found by the type of the rule.
template <template <typename> typename... Rules>
struct KernelTable {
  std::tuple<Kernel<Rules<float>>..., Kernel<Rules<double>>...> updates;
  std::tuple<NormKernel<float>, NormKernel<double>> norms;
};

template <typename T>
using PlainRmsPropRule = RmsPropRule<T, false, false>;
template <typename T>
using RollingRmsPropRule = RmsPropRule<T, false, true>;
template <typename T>
using CenteredRmsPropRule = RmsPropRule<T, true, false>;
template <typename T>
using RollingCenteredRmsPropRule = RmsPropRule<T, true, true>;

using Kernels = KernelTable<DescentRule, MomentumRule, AdamRule, PlainRmsPropRule,
                            RollingRmsPropRule, CenteredRmsPropRule, RollingCenteredRmsPropRule,
                            AdagradRule, LionRule, LambRule, ScheduleFreeRule>;

}  // namespace treadle::optimizers
#endif

HWY_BEFORE_NAMESPACE();
namespace treadle::optimizers::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// A whole register, and never more than a line: ranges have no rest.
template <typename T>
using Register = hn::CappedTag<T, kLine<T>>;

template <typename D>
using Numbers = hn::Vec<D>;

/// a * b + c * d, each rounded.
template <typename V>
HWY_INLINE V blend(V a, V b, V c, V d) {
  return hn::Add(hn::Mul(a, b), hn::Mul(c, d));
}

template <typename T>
void run(const DescentRule<T>& rule, const Vectors<T>& vectors, Range range) {
  const Register<T> d;
  const auto scale = hn::Set(d, rule.scale);
  const auto l2 = hn::Set(d, rule.l2);
  const auto rate = hn::Set(d, rule.rate);
  T* const parameters = vectors.parameters;
  const T* const gradients = vectors.gradients;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = range.begin; i < range.end; i += lanes) {
    const auto p = hn::LoadU(d, parameters + i);
    const auto g = blend(scale, hn::LoadU(d, gradients + i), l2, p);
    hn::StoreU(hn::Sub(p, hn::Mul(rate, g)), d, parameters + i);
  }
}

template <typename T>
void run(const MomentumRule<T>& rule, const Vectors<T>& vectors, Range range) {
  const Register<T> d;
  const auto scale = hn::Set(d, rule.scale);
  const auto l2 = hn::Set(d, rule.l2);
  const auto rate = hn::Set(d, rule.rate);
  const auto keep = hn::Set(d, rule.keep);
  const auto take = hn::Set(d, rule.take);
  const auto direct = hn::Set(d, rule.direct);
  const auto along = hn::Set(d, rule.along);
  T* const parameters = vectors.parameters;
  const T* const gradients = vectors.gradients;
  T* const momentum = vectors.slots[0];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = range.begin; i < range.end; i += lanes) {
    const auto p = hn::LoadU(d, parameters + i);
    const auto g = blend(scale, hn::LoadU(d, gradients + i), l2, p);
    const auto b = blend(keep, hn::LoadU(d, momentum + i), take, g);
    hn::StoreU(b, d, momentum + i);
    hn::StoreU(hn::Sub(p, hn::Mul(rate, blend(direct, g, along, b))), d, parameters + i);
  }
}

template <typename T>
void run(const AdamRule<T>& rule, const Vectors<T>& vectors, Range range) {
  const Register<T> d;
  const auto scale = hn::Set(d, rule.scale);
  const auto l2 = hn::Set(d, rule.l2);
  const auto beta1 = hn::Set(d, rule.beta1);
  const auto one_minus_beta1 = hn::Set(d, rule.one_minus_beta1);
  const auto beta2 = hn::Set(d, rule.beta2);
  const auto one_minus_beta2 = hn::Set(d, rule.one_minus_beta2);
  const auto shrink = hn::Set(d, rule.shrink);
  const auto step = hn::Set(d, rule.step);
  const auto root_correction = hn::Set(d, rule.root_correction);
  const auto eps = hn::Set(d, rule.eps);
  T* const parameters = vectors.parameters;
  const T* const gradients = vectors.gradients;
  T* const first = vectors.slots[0];
  T* const second = vectors.slots[1];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = range.begin; i < range.end; i += lanes) {
    const auto p = hn::LoadU(d, parameters + i);
    const auto g = blend(scale, hn::LoadU(d, gradients + i), l2, p);
    const auto m = blend(beta1, hn::LoadU(d, first + i), one_minus_beta1, g);
    const auto v = blend(beta2, hn::LoadU(d, second + i), one_minus_beta2, hn::Mul(g, g));
    hn::StoreU(m, d, first + i);
    hn::StoreU(v, d, second + i);
    const auto root = hn::Add(hn::Mul(hn::Sqrt(v), root_correction), eps);
    hn::StoreU(hn::Sub(p, blend(shrink, p, step, hn::Div(m, root))), d, parameters + i);
  }
}

template <typename T, bool kCentered, bool kMomentum>
void run(const RmsPropRule<T, kCentered, kMomentum>& rule, const Vectors<T>& vectors, Range range) {
  const Register<T> d;
  const auto zero = hn::Zero(d);
  const auto scale = hn::Set(d, rule.scale);
  const auto l2 = hn::Set(d, rule.l2);
  const auto rate = hn::Set(d, rule.rate);
  const auto alpha = hn::Set(d, rule.alpha);
  const auto one_minus_alpha = hn::Set(d, rule.one_minus_alpha);
  const auto inside = hn::Set(d, rule.inside);
  const auto outside = hn::Set(d, rule.outside);
  const auto keep = hn::Set(d, rule.momentum);
  T* const parameters = vectors.parameters;
  const T* const gradients = vectors.gradients;
  T* const square = vectors.slots[0];
  T* const mean = vectors.slots[1];
  T* const momentum = vectors.slots[kCentered ? 2 : 1];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = range.begin; i < range.end; i += lanes) {
    const auto p = hn::LoadU(d, parameters + i);
    const auto g = blend(scale, hn::LoadU(d, gradients + i), l2, p);
    const auto v = blend(alpha, hn::LoadU(d, square + i), one_minus_alpha, hn::Mul(g, g));
    hn::StoreU(v, d, square + i);
    auto spread = v;
    if constexpr (kCentered) {
      const auto a = blend(alpha, hn::LoadU(d, mean + i), one_minus_alpha, g);
      hn::StoreU(a, d, mean + i);
      // Of gradients that hardly change, rounding may leave less than nothing.
      spread = hn::Max(hn::Sub(v, hn::Mul(a, a)), zero);
    }
    auto direction = hn::Div(g, hn::Add(hn::Sqrt(hn::Add(spread, inside)), outside));
    if constexpr (kMomentum) {
      direction = hn::Add(hn::Mul(keep, hn::LoadU(d, momentum + i)), direction);
      hn::StoreU(direction, d, momentum + i);
    }
    hn::StoreU(hn::Sub(p, hn::Mul(rate, direction)), d, parameters + i);
  }
}

template <typename T>
void run(const AdagradRule<T>& rule, const Vectors<T>& vectors, Range range) {
  const Register<T> d;
  const auto scale = hn::Set(d, rule.scale);
  const auto l2 = hn::Set(d, rule.l2);
  const auto rate = hn::Set(d, rule.rate);
  const auto eps = hn::Set(d, rule.eps);
  T* const parameters = vectors.parameters;
  const T* const gradients = vectors.gradients;
  T* const sum = vectors.slots[0];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = range.begin; i < range.end; i += lanes) {
    const auto p = hn::LoadU(d, parameters + i);
    const auto g = blend(scale, hn::LoadU(d, gradients + i), l2, p);
    const auto s = hn::Add(hn::LoadU(d, sum + i), hn::Mul(g, g));
    hn::StoreU(s, d, sum + i);
    const auto direction = hn::Div(g, hn::Add(hn::Sqrt(s), eps));
    hn::StoreU(hn::Sub(p, hn::Mul(rate, direction)), d, parameters + i);
  }
}

template <typename T>
void run(const LionRule<T>& rule, const Vectors<T>& vectors, Range range) {
  const Register<T> d;
  const auto zero = hn::Zero(d);
  const auto scale = hn::Set(d, rule.scale);
  const auto rate = hn::Set(d, rule.rate);
  const auto beta1 = hn::Set(d, rule.beta1);
  const auto one_minus_beta1 = hn::Set(d, rule.one_minus_beta1);
  const auto beta2 = hn::Set(d, rule.beta2);
  const auto one_minus_beta2 = hn::Set(d, rule.one_minus_beta2);
  const auto shrink = hn::Set(d, rule.shrink);
  T* const parameters = vectors.parameters;
  const T* const gradients = vectors.gradients;
  T* const momentum = vectors.slots[0];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = range.begin; i < range.end; i += lanes) {
    const auto p = hn::LoadU(d, parameters + i);
    const auto g = hn::Mul(scale, hn::LoadU(d, gradients + i));
    const auto m = hn::LoadU(d, momentum + i);
    const auto c = blend(beta1, m, one_minus_beta1, g);
    const auto move = hn::IfThenElse(hn::Eq(c, zero), zero, hn::CopySign(rate, c));
    hn::StoreU(hn::Sub(p, hn::Add(hn::Mul(shrink, p), move)), d, parameters + i);
    hn::StoreU(blend(beta2, m, one_minus_beta2, g), d, momentum + i);
  }
}

/// LAMB's direction u.
template <typename V>
HWY_INLINE V lamb_update(V p, V m, V v, V correction, V root_correction, V eps, V decay) {
  const auto root = hn::Add(hn::Mul(hn::Sqrt(v), root_correction), eps);
  return hn::Add(hn::Div(hn::Mul(correction, m), root), hn::Mul(decay, p));
}

template <typename T>
void run(const LambRule<T>& rule, const Vectors<T>& vectors, Range range) {
  const Register<T> d;
  const auto correction = hn::Set(d, rule.correction);
  const auto root_correction = hn::Set(d, rule.root_correction);
  const auto eps = hn::Set(d, rule.eps);
  const auto decay = hn::Set(d, rule.decay);
  const auto step = hn::Set(d, rule.step);
  T* const parameters = vectors.parameters;
  const T* const first = vectors.slots[0];
  const T* const second = vectors.slots[1];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = range.begin; i < range.end; i += lanes) {
    const auto p = hn::LoadU(d, parameters + i);
    const auto u = lamb_update(p, hn::LoadU(d, first + i), hn::LoadU(d, second + i), correction,
                               root_correction, eps, decay);
    hn::StoreU(hn::Sub(p, hn::Mul(step, u)), d, parameters + i);
  }
}

template <typename T>
void run(const ScheduleFreeRule<T>& rule, const Vectors<T>& vectors, Range range) {
  const Register<T> d;
  const auto scale = hn::Set(d, rule.scale);
  const auto beta2 = hn::Set(d, rule.beta2);
  const auto one_minus_beta2 = hn::Set(d, rule.one_minus_beta2);
  const auto root_correction = hn::Set(d, rule.root_correction);
  const auto eps = hn::Set(d, rule.eps);
  const auto decay = hn::Set(d, rule.decay);
  const auto pull = hn::Set(d, rule.pull);
  const auto along = hn::Set(d, rule.along);
  const auto keep = hn::Set(d, rule.keep);
  const auto apart = hn::Set(d, rule.apart);
  T* const parameters = vectors.parameters;
  const T* const gradients = vectors.gradients;
  T* const distances = vectors.slots[0];
  T* const second = vectors.slots[1];
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = range.begin; i < range.end; i += lanes) {
    const auto p = hn::LoadU(d, parameters + i);
    const auto g = hn::Mul(scale, hn::LoadU(d, gradients + i));
    const auto distance = hn::LoadU(d, distances + i);
    const auto v = blend(beta2, hn::LoadU(d, second + i), one_minus_beta2, hn::Mul(g, g));
    const auto root = hn::Add(hn::Mul(hn::Sqrt(v), root_correction), eps);
    const auto u = hn::Add(hn::Div(g, root), hn::Mul(decay, p));
    hn::StoreU(v, d, second + i);
    hn::StoreU(hn::Mul(keep, hn::Sub(distance, hn::Mul(apart, u))), d, distances + i);
    const auto move = hn::Sub(hn::Mul(pull, distance), hn::Mul(along, u));
    hn::StoreU(hn::Add(p, move), d, parameters + i);
  }
}

template <typename D>
HWY_INLINE Numbers<D> widened(D, Numbers<D> numbers) {
  return numbers;
}
template <typename D>
HWY_INLINE Numbers<D> widened(D d, Numbers<hn::Rebind<float, D>> numbers) {
  return hn::PromoteTo(d, numbers);
}

/// sums[i] += numbers[i]^2
template <typename D>
HWY_INLINE void add_squares(D d, Numbers<D> numbers, double* sums) {
  hn::StoreU(hn::Add(hn::LoadU(d, sums), hn::Mul(numbers, numbers)), d, sums);
}

// Element i is added to sum i % 8, whatever the width of a register; the eight are added in order.
template <typename T>
SquaredNorms norms(const LambRule<T>& rule, const Vectors<T>& vectors, Range range) {
  const Register<double> wide;
  const hn::Rebind<T, Register<double>> d;
  const auto scale = hn::Set(d, rule.scale);
  const auto beta1 = hn::Set(d, rule.beta1);
  const auto one_minus_beta1 = hn::Set(d, rule.one_minus_beta1);
  const auto beta2 = hn::Set(d, rule.beta2);
  const auto one_minus_beta2 = hn::Set(d, rule.one_minus_beta2);
  const auto correction = hn::Set(d, rule.correction);
  const auto root_correction = hn::Set(d, rule.root_correction);
  const auto eps = hn::Set(d, rule.eps);
  const auto decay = hn::Set(d, rule.decay);
  const T* const parameters = vectors.parameters;
  const T* const gradients = vectors.gradients;
  T* const first = vectors.slots[0];
  T* const second = vectors.slots[1];
  double parameter_sums[kLine<double>] = {};
  double update_sums[kLine<double>] = {};
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = range.begin; i < range.end; i += lanes) {
    const auto p = hn::LoadU(d, parameters + i);
    const auto g = hn::Mul(scale, hn::LoadU(d, gradients + i));
    const auto m = blend(beta1, hn::LoadU(d, first + i), one_minus_beta1, g);
    const auto v = blend(beta2, hn::LoadU(d, second + i), one_minus_beta2, hn::Mul(g, g));
    hn::StoreU(m, d, first + i);
    hn::StoreU(v, d, second + i);
    const auto u = lamb_update(p, m, v, correction, root_correction, eps, decay);
    add_squares(wide, widened(wide, p), parameter_sums + i % kLine<double>);
    add_squares(wide, widened(wide, u), update_sums + i % kLine<double>);
  }
  double parameter_sum = 0;
  double update_sum = 0;
  for (std::int64_t i = 0; i < kLine<double>; ++i) {
    parameter_sum += parameter_sums[i];
    update_sum += update_sums[i];
  }
  return {parameter_sum, update_sum};
}

template <template <typename> typename... Rules>
constexpr KernelTable<Rules...> all_of(const KernelTable<Rules...>*) {
  return {{static_cast<Kernel<Rules<float>>>(&run)..., static_cast<Kernel<Rules<double>>>(&run)...},
          {&norms<float>, &norms<double>}};
}

}  // namespace

const Kernels* kernels() {
  static constexpr Kernels kKernels = all_of(static_cast<const Kernels*>(nullptr));
  return &kKernels;
}

}  // namespace treadle::optimizers::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace treadle::optimizers {
namespace {

HWY_EXPORT(kernels);

// In elements, 6 us of Adam. With four pieces two workers take little more than half the time of
// one; with fewer, waking the second costs what it saves.
constexpr std::int64_t kGrain = std::int64_t{1} << 14;

bool is_large(Range range) {
  return range.end - range.begin >= 4 * kGrain;
}

Range piece_of(Range whole, std::int64_t piece) {
  const std::int64_t begin = whole.begin + piece * kGrain;
  return {begin, std::min(begin + kGrain, whole.end)};
}

using Pieces = tbb::blocked_range<std::int64_t>;

Pieces pieces_of(Range whole) {
  return {0, (whole.end - whole.begin + kGrain - 1) / kGrain};
}

/// Runs `loop`, a parallel loop of oneTBB that is given its context: while the calling thread waits
/// it takes no task of others, and who helps treats denormals as the calling thread does.
template <typename Loop>
void in_isolation(Loop&& loop) {
  tbb::this_task_arena::isolate([&] {
    tbb::task_group_context context(
        tbb::task_group_context::bound,
        tbb::task_group_context::default_traits | tbb::task_group_context::fp_settings);
    loop(context);
  });
}

}  // namespace

template <typename Rule>
void apply(const Rule& rule, const Vectors<typename Rule::Element>& vectors, Range range) {
  const auto kernel = std::get<Kernel<Rule>>(HWY_DYNAMIC_DISPATCH(kernels)()->updates);
  if (!is_large(range) || tbb::this_task_arena::max_concurrency() == 1)
    return kernel(rule, vectors, range);
  in_isolation([&](tbb::task_group_context& context) {
    tbb::parallel_for(
        pieces_of(range),
        [&](const Pieces& pieces) {
          for (std::int64_t piece = pieces.begin(); piece < pieces.end(); ++piece)
            kernel(rule, vectors, piece_of(range, piece));
        },
        tbb::simple_partitioner(), context);
  });
}

template <typename T>
SquaredNorms lamb_norms(const LambRule<T>& rule, const Vectors<T>& vectors, Range range) {
  const auto kernel = std::get<NormKernel<T>>(HWY_DYNAMIC_DISPATCH(kernels)()->norms);
  if (!is_large(range))
    return kernel(rule, vectors, range);
  // Also with one worker: the order of the additions is that of the halving of the range.
  const auto sum = [](const SquaredNorms& a, const SquaredNorms& b) {
    return SquaredNorms{a.parameters + b.parameters, a.update + b.update};
  };
  SquaredNorms norms;
  in_isolation([&](tbb::task_group_context& context) {
    norms = tbb::parallel_deterministic_reduce(
        pieces_of(range), SquaredNorms{},
        [&](const Pieces& pieces, SquaredNorms partial) {
          for (std::int64_t piece = pieces.begin(); piece < pieces.end(); ++piece)
            partial = sum(partial, kernel(rule, vectors, piece_of(range, piece)));
          return partial;
        },
        sum, tbb::simple_partitioner(), context);
  });
  return norms;
}

#define TREADLE_INSTANTIATE(Rule)                                        \
  template void apply(const Rule<float>&, const Vectors<float>&, Range); \
  template void apply(const Rule<double>&, const Vectors<double>&, Range)
TREADLE_INSTANTIATE(DescentRule);
TREADLE_INSTANTIATE(MomentumRule);
TREADLE_INSTANTIATE(AdamRule);
TREADLE_INSTANTIATE(PlainRmsPropRule);
TREADLE_INSTANTIATE(RollingRmsPropRule);
TREADLE_INSTANTIATE(CenteredRmsPropRule);
TREADLE_INSTANTIATE(RollingCenteredRmsPropRule);
TREADLE_INSTANTIATE(AdagradRule);
TREADLE_INSTANTIATE(LionRule);
TREADLE_INSTANTIATE(LambRule);
TREADLE_INSTANTIATE(ScheduleFreeRule);
#undef TREADLE_INSTANTIATE

template SquaredNorms lamb_norms(const LambRule<float>&, const Vectors<float>&, Range);
template SquaredNorms lamb_norms(const LambRule<double>&, const Vectors<double>&, Range);

std::vector<std::int64_t> instruction_sets() {
  return hwy::SupportedAndGeneratedTargets();
}

}  // namespace treadle::optimizers
#endif
