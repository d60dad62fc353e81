// Norms over one contiguous row or over the columns of a matrix, and windows of pools.
#pragma once
#include "nn_softmax.h"

namespace rillet {
namespace RILLET_ISA {

struct SquaredDifferences {  // from the mean of the column
  const float* x;
  const float* mean;
  int64_t stride;
  template <class L>
  RILLET_INLINE F At(const L& load, int64_t r, int64_t c) const {
    const F d = load(x + r * stride + c) - load(mean + c);
    return d * d;
  }
};
struct SquaredDistances {  // from one number
  const float* x;
  float mean;
  template <class L>
  RILLET_INLINE F At(const L& load, int64_t, int64_t c) const {
    const F d = load(x + c) - Set(mean);
    return d * d;
  }
};
struct StandardizedDot {
  const Columns& m;
  template <class L>
  RILLET_INLINE F At(const L& load, int64_t r, int64_t c) const {
    const int64_t i = r * m.width + c;
    return load(m.y + i) * ((load(m.x + i) - Load(m.mean + c)) * Load(m.inv + c));
  }
};
struct RowDot {
  const Columns& m;
  template <class L>
  RILLET_INLINE F At(const L& load, int64_t r, int64_t c) const {
    const int64_t i = r * m.width + c;
    return load(m.y + i) * ((load(m.x + i) - Set(m.mean[r])) * Set(m.inv[r]));
  }
};

// What a row is in LayerNorm: (x - mean) * inv.
struct RowStatistics {
  float mean, inv;
};

RILLET_INLINE RowStatistics StatisticsOfRow(const RowNorm& norm, const float* x) {
  const float n = static_cast<float>(norm.n);
  RowStatistics s{norm.centre ? ReduceRun<JoinSum>(Plain{x, 0}, norm.n) / n : 0.0f, 0.0f};
  const float variance = ReduceRun<JoinSum>(SquaredDistances{x, s.mean}, norm.n) / n;
  s.inv = 1.0f / __builtin_sqrtf(variance + norm.epsilon);
  return s;
}

inline void NormRow(const RowNorm& norm, const float* x, float* y) {
  const RowStatistics s = StatisticsOfRow(norm, x);
  ForVectors(norm.n, [&](auto load, auto store, int64_t i) {
    const F v = (load(x + i) - Set(s.mean)) * Set(s.inv) * load(norm.scale + i);
    store(y + i, norm.offset ? v + load(norm.offset + i) : v);
  });
}

struct GradSum {  // dy * scale
  const float* dy;
  const float* scale;
  template <class L>
  RILLET_INLINE F At(const L& load, int64_t, int64_t c) const {
    return load(dy + c) * load(scale + c);
  }
};
struct GradDot {  // dy * scale * standardized x
  GradSum grad;
  const float* x;
  RowStatistics s;
  template <class L>
  RILLET_INLINE F At(const L& load, int64_t r, int64_t c) const {
    return grad.At(load, r, c) * ((load(x + c) - Set(s.mean)) * Set(s.inv));
  }
};

inline void NormRowGrad(const RowNorm& norm, const float* x, const float* dy, float* dx, float* mean, float* inv) {
  const RowStatistics s = StatisticsOfRow(norm, x);
  const GradSum g{dy, norm.scale};
  const float n = static_cast<float>(norm.n);
  const float along = ReduceRun<JoinSum>(GradDot{g, x, s}, norm.n) / n;
  const float shift = norm.centre ? ReduceRun<JoinSum>(g, norm.n) / n : 0.0f;
  ForVectors(norm.n, [&](auto load, auto store, int64_t i) {
    const F x_hat = (load(x + i) - Set(s.mean)) * Set(s.inv);
    store(dx + i, (g.At(load, 0, i) - (x_hat * Set(along) + Set(shift))) * Set(s.inv));
  });
  *mean = s.mean;
  *inv = s.inv;
}

inline void L2NormalizeRow(const float* x, int64_t n, float epsilon, float* y) {
  const float total = ReduceRun<JoinSum>(Squares{x, 0}, n);
  const float length = __builtin_sqrtf(epsilon > total ? epsilon : total);
  ForVectors(n, [&](auto load, auto store, int64_t i) { store(y + i, load(x + i) / Set(length)); });
}

inline void ColumnAffineRows(const ColumnAffine& a, const float* x, int64_t rows, float* y) {
  for (int64_t r = 0; r < rows; ++r, x += a.width, y += a.width)
    ForVectors(a.width, [&](auto load, auto store, int64_t c) {
      store(y + c, (load(x + c) - load(a.mean + c)) * load(a.slope + c) + load(a.offset + c));
    });
}

inline void ColumnGradRows(const ColumnGrad& g, const float* x, const float* dy, int64_t rows, float* dx) {
  for (int64_t r = 0; r < rows; ++r, x += g.width, dy += g.width, dx += g.width)
    ForVectors(g.width, [&](auto load, auto store, int64_t c) {
      const F x_hat = (load(x + c) - load(g.mean + c)) * load(g.inv + c);
      store(dx + c, load(g.slope + c) * load(dy + c) - load(g.along + c) * x_hat - load(g.shift + c));
    });
}

inline void MaxTaps(const float* const* taps, int64_t count, int64_t n, float* y) {
  ForVectors(n, [&](auto load, auto store, int64_t c) {
    F best = Set(JoinMax::kNothing);
    for (int64_t t = 0; t < count; ++t) best = JoinMax::Of(best, load(taps[t] + c));
    store(y + c, best);
  });
}

inline void MeanTaps(const float* const* taps, int64_t count, int64_t n, float divisor, float* y) {
  ForVectors(n, [&](auto load, auto store, int64_t c) {
    F total = Set(0.0f);
    for (int64_t t = 0; t < count; ++t) total = total + load(taps[t] + c);
    store(y + c, total / Set(divisor));
  });
}

// Where x holds the maximum y, and `free` is 1 because no tap before did: dy goes to dx, and free becomes 0.
inline void MaxTapGrad(const float* x, const float* y, const float* dy, int64_t n, float* dx, float* free) {
  const F zero = Set(0.0f);
  ForVectors(n, [&](auto load, auto store, int64_t c) {
    const F may = load(free + c), wins = load(x + c) == load(y + c) ? may : zero;
    store(dx + c, load(dx + c) + (wins == zero ? zero : load(dy + c)));
    store(free + c, may - wins);
  });
}

}  // namespace RILLET_ISA
}  // namespace rillet
