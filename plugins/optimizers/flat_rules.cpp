#include "flat_rules.h"

#include <cmath>

// Twice as fast with AVX2 as with SSE2. Sanitizers cannot run code before they are set up, and the
// choice between clones is made that early.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TREADLE_CLONED __attribute__((target_clones("avx2", "default")))
#else
#define TREADLE_CLONED
#endif

namespace treadle::optimizers {
namespace {

// Inlined into each clone and compiled for its instruction set. The rule is copied, so the compiler
// knows that no store changes it.

template <typename T>
[[gnu::always_inline]] inline void adam(const AdamRule<T> rule, std::int64_t count,
                                        T* __restrict parameters, const T* __restrict gradients,
                                        T* __restrict first, T* __restrict second) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T gradient = rule.scale * gradients[i] + rule.l2 * parameters[i];
    const T m = rule.beta1 * first[i] + rule.one_minus_beta1 * gradient;
    const T v = rule.beta2 * second[i] + rule.one_minus_beta2 * (gradient * gradient);
    first[i] = m;
    second[i] = v;
    parameters[i] = rule.keep * parameters[i] -
                    rule.step * (m / (std::sqrt(v) * rule.root_correction + rule.eps));
  }
}

template <typename T>
[[gnu::always_inline]] inline void descend(const DescentRule<T> rule, std::int64_t count,
                                           T* __restrict parameters,
                                           const T* __restrict gradients) {
  for (std::int64_t i = 0; i < count; ++i)
    parameters[i] -= rule.rate * (rule.scale * gradients[i] + rule.l2 * parameters[i]);
}

template <typename T>
[[gnu::always_inline]] inline void roll(const MomentumRule<T> rule, std::int64_t count,
                                        T* __restrict parameters, const T* __restrict gradients,
                                        T* __restrict momentum) {
  for (std::int64_t i = 0; i < count; ++i) {
    const T gradient = rule.scale * gradients[i] + rule.l2 * parameters[i];
    const T velocity = rule.keep * momentum[i] + rule.take * gradient;
    momentum[i] = velocity;
    parameters[i] -= rule.rate * (rule.direct * gradient + rule.along * velocity);
  }
}

}  // namespace

TREADLE_CLONED void apply(const AdamRule<float>& rule, std::int64_t count, float* parameters,
                          const float* gradients, float* first, float* second) {
  adam(rule, count, parameters, gradients, first, second);
}

TREADLE_CLONED void apply(const AdamRule<double>& rule, std::int64_t count, double* parameters,
                          const double* gradients, double* first, double* second) {
  adam(rule, count, parameters, gradients, first, second);
}

TREADLE_CLONED void apply(const DescentRule<float>& rule, std::int64_t count, float* parameters,
                          const float* gradients) {
  descend(rule, count, parameters, gradients);
}

TREADLE_CLONED void apply(const DescentRule<double>& rule, std::int64_t count, double* parameters,
                          const double* gradients) {
  descend(rule, count, parameters, gradients);
}

TREADLE_CLONED void apply(const MomentumRule<float>& rule, std::int64_t count, float* parameters,
                          const float* gradients, float* momentum) {
  roll(rule, count, parameters, gradients, momentum);
}

TREADLE_CLONED void apply(const MomentumRule<double>& rule, std::int64_t count, double* parameters,
                          const double* gradients, double* momentum) {
  roll(rule, count, parameters, gradients, momentum);
}

}  // namespace treadle::optimizers
