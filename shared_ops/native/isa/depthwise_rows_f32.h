// Depthwise inner loops for the instruction set that RILLET_ISA names. Included by <isa>_depthwise_f32.cc alone.
#pragma once
#include "depthwise_row_f32.h"
#include "lanes_f32.h"

namespace rillet {
namespace RILLET_ISA {
namespace {

using lanes::V;
using R = V::R;
constexpr int W = V::kWidth;
constexpr int kPixels = 4;  // done together: four chains hide the latency of fma

template <bool TAIL>
RILLET_FORCE_INLINE R Read(const float* p, int64_t n) {
  if constexpr (TAIL) return V::LoadN(p, n);
  return V::Load(p);
}

template <int P, bool TAIL>
RILLET_FORCE_INLINE void Finish(const DepthwisePixels& d, R (&acc)[P], int64_t p, int64_t c) {
  const int64_t n = d.channels - c;
  if (d.bias) {
    const R bias = Read<TAIL>(d.bias + c, n);
    RILLET_UNROLL for (int i = 0; i < P; ++i) acc[i] = V::Add(acc[i], bias);
  }
  if (d.clamp) {
    const R low = V::Set(d.low), high = V::Set(d.high);
    RILLET_UNROLL for (int i = 0; i < P; ++i) acc[i] = V::Min(high, V::Max(low, acc[i]));
  }
  RILLET_UNROLL for (int i = 0; i < P; ++i) {
    float* y = d.y + (p + i) * d.y_step + c;
    if constexpr (TAIL) V::StoreN(y, n, acc[i]);
    else V::Store(y, acc[i]);
  }
}

template <int P, bool TAIL>
RILLET_FORCE_INLINE void Cell(const DepthwisePixels& d, int64_t p, int64_t c) {
  const float* w = d.w + c * d.all_taps;
  R acc[P];
  RILLET_UNROLL for (int i = 0; i < P; ++i) acc[i] = V::Zero();
  for (int64_t t = 0; t < d.taps; ++t) {
    const R wt = V::Load(w + (d.index ? d.index[t] : t) * W);
    const float* x = d.tap[t] + p * d.step + c;
    RILLET_UNROLL for (int i = 0; i < P; ++i) acc[i] = V::Fma(Read<TAIL>(x + i * d.step, d.channels - c), wt, acc[i]);
  }
  Finish<P, TAIL>(d, acc, p, c);
}

template <int P>
RILLET_FORCE_INLINE void Across(const DepthwisePixels& d, int64_t p) {
  int64_t c = 0;
  for (; c + W <= d.channels; c += W) Cell<P, false>(d, p, c);
  if (c < d.channels) Cell<P, true>(d, p, c);
}

void Pixels(const DepthwisePixels& d) {
  int64_t p = 0;
  for (; p + kPixels <= d.pixels; p += kPixels) Across<kPixels>(d, p);
  for (; p < d.pixels; ++p) Across<1>(d, p);
}

// Windows three columns wide: neighbouring pixels share their inputs.
template <int P, int S, bool REVERSED, bool TAIL>
RILLET_FORCE_INLINE void ThreeCell(const DepthwisePixels& d, int64_t p, int64_t c) {
  constexpr int kColumns = (P - 1) * S + 3;
  const float* w = d.w + c * d.all_taps;
  R acc[P];
  RILLET_UNROLL for (int i = 0; i < P; ++i) acc[i] = V::Zero();
  for (int64_t r = 0; r < d.taps; ++r, w += 3 * W) {
    const float* x = d.tap[r] + p * S * d.step + c;
    R column[kColumns];
    RILLET_UNROLL for (int i = 0; i < kColumns; ++i) column[i] = Read<TAIL>(x + i * d.step, d.channels - c);
    RILLET_UNROLL for (int s = 0; s < 3; ++s) {
      const R wt = V::Load(w + s * W);
      RILLET_UNROLL for (int i = 0; i < P; ++i) acc[i] = V::Fma(column[i * S + (REVERSED ? 2 - s : s)], wt, acc[i]);
    }
  }
  Finish<P, TAIL>(d, acc, p, c);
}

template <int P, int S, bool REVERSED>
RILLET_FORCE_INLINE void ThreeAcross(const DepthwisePixels& d, int64_t p) {
  int64_t c = 0;
  for (; c + W <= d.channels; c += W) ThreeCell<P, S, REVERSED, false>(d, p, c);
  if (c < d.channels) ThreeCell<P, S, REVERSED, true>(d, p, c);
}

template <int S, bool REVERSED>
void Three(const DepthwisePixels& d) {
  for (int64_t p = 0; p < d.pixels; p += kPixels) {
    if (d.pixels < kPixels) {
      for (; p < d.pixels; ++p) ThreeAcross<1, S, REVERSED>(d, p);
      return;
    }
    // The last group may overlap the one before: the same values again.
    ThreeAcross<kPixels, S, REVERSED>(d, p + kPixels <= d.pixels ? p : d.pixels - kPixels);
  }
}

template <int T, bool TAIL>
RILLET_FORCE_INLINE void FilterCell(const DepthwiseFilter& f, int64_t first, int64_t c) {
  const int64_t n = f.end - c;
  float* to = f.acc + first * f.acc_step + c;
  R acc[T];
  const float* x[T];
  RILLET_UNROLL for (int t = 0; t < T; ++t) {
    acc[t] = f.resume ? Read<TAIL>(to + t * f.acc_step, n) : V::Zero();
    x[t] = f.tap[first + t] + c;
  }
  const float* dy = f.dy + c;
  int64_t at = 0;
  for (int64_t p = 0; p < f.pixels; ++p, at += f.step, dy += f.dy_step) {
    const R g = Read<TAIL>(dy, n);
    RILLET_UNROLL for (int t = 0; t < T; ++t) acc[t] = V::Fma(Read<TAIL>(x[t] + at, n), g, acc[t]);
  }
  RILLET_UNROLL for (int t = 0; t < T; ++t) {
    if constexpr (TAIL) V::StoreN(to + t * f.acc_step, n, acc[t]);
    else V::Store(to + t * f.acc_step, acc[t]);
  }
}

template <int T>
RILLET_FORCE_INLINE int64_t FilterTaps(const DepthwiseFilter& f, int64_t first, int64_t c) {
  for (; first + T <= f.taps; first += T) {
    if (c + W <= f.end) FilterCell<T, false>(f, first, c);
    else FilterCell<T, true>(f, first, c);
  }
  return first;
}

void Filter(const DepthwiseFilter& f) {
  for (int64_t c = f.begin; c < f.end; c += W) {
    int64_t first = FilterTaps<9>(f, 0, c);
    first = FilterTaps<4>(f, first, c);
    FilterTaps<1>(f, first, c);
  }
}

constexpr DepthwiseKernels kKernels = {W, &Pixels, &Three<1, false>, &Three<1, true>, &Three<2, false>, &Filter};

}  // namespace
}  // namespace RILLET_ISA
}  // namespace rillet
