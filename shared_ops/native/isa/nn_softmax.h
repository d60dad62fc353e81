// Softmax and the losses over one contiguous row, from sums in the order of nn_reduce.h and the exponentials of
// vmath.h.
#pragma once
#include "nn_reduce.h"

namespace rillet {
namespace RILLET_ISA {

// Calls body(load, store, i) for whole vectors of [0, n), and once more for what is left.
template <class Body>
RILLET_INLINE void ForVectors(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(LoadAll{}, [](float* p, F v) { Store(p, v); }, i);
  if (i < n) body(LoadFirst{n - i}, [rest = n - i](float* p, F v) { StoreN(p, rest, v); }, i);
}

// exp(x - top)
struct Exponentials {
  const float* x;
  float top;
  template <class L>
  RILLET_INLINE F At(const L& load, int64_t, int64_t c) const {
    return Exp(load(x + c) - Set(top));
  }
};
// labels * log p, where log p = x - top - log_total; a class of no weight may have a logit of -inf
struct WeightedLogs {
  const float* x;
  const float* labels;
  float top, log_total;
  template <class L>
  RILLET_INLINE F At(const L& load, int64_t, int64_t c) const {
    const F weight = load(labels + c), log_p = load(x + c) - Set(top) - Set(log_total), zero = Set(0.0f);
    return weight * (weight == zero ? zero : log_p);
  }
};

RILLET_INLINE float LogOf(float x) {
  float lanes[kLanes];
  Store(lanes, Log(Set(x)));
  return lanes[0];
}

inline float LogSumExpRow(const float* x, int64_t n) {
  const float top = ReduceRun<JoinMax>(Plain{x, 0}, n);
  const float inf = __builtin_inff();
  const float shift = -inf < top && top < inf ? top : 0.0f;  // nothing but -inf gives -inf, not NaN
  return LogOf(ReduceRun<JoinSum>(Exponentials{x, shift}, n)) + shift;
}

// y = exp(x - max), and their sum.
RILLET_INLINE float ExponentialsOfRow(const float* x, int64_t n, float* y, float* top) {
  *top = ReduceRun<JoinMax>(Plain{x, 0}, n);
  const Exponentials e{x, *top};
  ForVectors(n, [&](auto load, auto store, int64_t i) { store(y + i, e.At(load, 0, i)); });
  return ReduceRun<JoinSum>(Plain{y, 0}, n);
}

inline void SoftmaxRow(const float* x, int64_t n, float* y) {
  float top;
  const float total = ExponentialsOfRow(x, n, y, &top);
  ForVectors(n, [&](auto load, auto store, int64_t i) { store(y + i, load(y + i) / Set(total)); });
}

inline void LogSoftmaxRow(const float* x, int64_t n, float* y) {
  const float top = ReduceRun<JoinMax>(Plain{x, 0}, n);
  const float log_total = LogOf(ReduceRun<JoinSum>(Exponentials{x, top}, n));
  ForVectors(n, [&](auto load, auto store, int64_t i) { store(y + i, load(x + i) - Set(top) - Set(log_total)); });
}

inline float CrossEntropyRow(const float* x, const float* labels, int64_t n, float* backprop) {
  float top;
  const float total = ExponentialsOfRow(x, n, backprop, &top);
  const float weight = ReduceRun<JoinSum>(Plain{labels, 0}, n);
  const float loss = -ReduceRun<JoinSum>(WeightedLogs{x, labels, top, LogOf(total)}, n);
  ForVectors(n, [&](auto load, auto store, int64_t i) {
    store(backprop + i, load(backprop + i) / Set(total) * Set(weight) - load(labels + i));
  });
  return loss;
}

inline float SparseCrossEntropyRow(const float* x, int64_t label, int64_t n, float* backprop) {
  float top;
  const float total = ExponentialsOfRow(x, n, backprop, &top);
  ForVectors(n, [&](auto load, auto store, int64_t i) { store(backprop + i, load(backprop + i) / Set(total)); });
  backprop[label] -= 1.0f;
  return LogOf(total) - (x[label] - top);
}

// max(x, 0) - x * label + log(1 + exp(-|x|))
inline void SigmoidCrossEntropy(const float* x, const float* labels, int64_t n, float* loss) {
  ForVectors(n, [&](auto load, auto store, int64_t i) {
    const F v = load(x + i), zero = Set(0.0f);
    store(loss + i, AtLeast(v, zero) - v * load(labels + i) + Softplus(zero - Abs(v)));
  });
}

}  // namespace RILLET_ISA
}  // namespace rillet
