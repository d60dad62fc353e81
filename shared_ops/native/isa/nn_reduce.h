// Reductions in the order that nn_f32.h states: over a run, and over the rows of a matrix for each column.
//
// A Source says what is reduced: At(load, r, c) is its value at row r, columns [c, c + kLanes), read through `load`. A
// Join says how two values become one, and what changes nothing.
#pragma once
#include "nn_f32.h"
#include "vmath.h"

namespace rillet {
namespace RILLET_ISA {

struct LoadAll {
  RILLET_INLINE F operator()(const float* p) const { return Load(p); }
};
struct LoadFirst {
  int64_t n;
  RILLET_INLINE F operator()(const float* p) const { return LoadN(p, n); }
};

struct JoinSum {
  static constexpr float kNothing = 0.0f;
  template <class T>
  static RILLET_INLINE T Of(T a, T b) {
    return a + b;
  }
};
struct JoinProduct {
  static constexpr float kNothing = 1.0f;
  template <class T>
  static RILLET_INLINE T Of(T a, T b) {
    return a * b;
  }
};
// NaN wins: once there no comparison removes it, and `b != b` lets it in.
struct JoinMax {
  static constexpr float kNothing = -__builtin_inff();
  template <class T>
  static RILLET_INLINE T Of(T a, T b) {
    return (a < b) | (b != b) ? b : a;
  }
};
struct JoinMin {
  static constexpr float kNothing = __builtin_inff();
  template <class T>
  static RILLET_INLINE T Of(T a, T b) {
    return (b < a) | (b != b) ? b : a;
  }
};

struct Plain {
  const float* x;
  int64_t stride;
  template <class L>
  RILLET_INLINE F At(const L& load, int64_t r, int64_t c) const {
    return load(x + r * stride + c);
  }
};
struct Squares {
  const float* x;
  int64_t stride;
  template <class L>
  RILLET_INLINE F At(const L& load, int64_t r, int64_t c) const {
    const F v = load(x + r * stride + c);
    return v * v;
  }
};

// The tree, on 16 lanes that lie `stride` floats apart.
template <class Join>
RILLET_INLINE float JoinLanes(float* lanes) {
  for (int half = kReduceLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lanes[l] = Join::Of(lanes[l], lanes[l + half]);
  return lanes[0];
}

template <class Join, class Source>
RILLET_INLINE float ReduceRun(const Source& source, int64_t n) {
  constexpr int kVectors = kReduceLanes / kLanes;
  F acc[kVectors];
  for (int v = 0; v < kVectors; ++v) acc[v] = Set(Join::kNothing);
  int64_t i = 0;
  for (; i + kReduceLanes <= n; i += kReduceLanes)
    for (int v = 0; v < kVectors; ++v) acc[v] = Join::Of(acc[v], source.At(LoadAll{}, 0, i + v * kLanes));
  for (int v = 0; v < kVectors && i < n; ++v, i += kLanes) {
    if (n - i >= kLanes) {
      acc[v] = Join::Of(acc[v], source.At(LoadAll{}, 0, i));
    } else {
      float rest[kLanes];
      Store(rest, Set(Join::kNothing));
      StoreN(rest, n - i, source.At(LoadFirst{n - i}, 0, i));
      acc[v] = Join::Of(acc[v], Load(rest));
    }
  }
  float lanes[kReduceLanes];
  for (int v = 0; v < kVectors; ++v) Store(lanes + v * kLanes, acc[v]);
  return JoinLanes<Join>(lanes);
}

// Lanes [lane_begin, lane_end) of columns [first, first + width) into acc[16][kColumnBlock].
template <class Join, class Source>
RILLET_INLINE void ReduceLanesOfColumns(const Source& source, int64_t rows, int64_t stride, int64_t first,
                                        int64_t width, int lane_begin, int lane_end, float* acc) {
  for (int64_t i = lane_begin * kColumnBlock; i < lane_end * kColumnBlock; i += kLanes)
    Store(acc + i, Set(Join::kNothing));
  for (int64_t block = 0; block < rows; block += kReduceLanes)
    for (int lane = lane_begin; lane < lane_end && block + lane < rows; ++lane) {
      const int64_t r = block + lane;
      float* a = acc + lane * kColumnBlock;
      int64_t c = 0;
      for (; c + kLanes <= width; c += kLanes) Store(a + c, Join::Of(Load(a + c), source.At(LoadAll{}, r, first + c)));
      if (c == width) continue;
      // What stands behind the width belongs to the next rows: read and not used. Behind the matrix there may be
      // nothing.
      const bool inside = (rows - r) * stride - first - c >= kLanes;
      const F rest = inside ? source.At(LoadAll{}, r, first + c) : source.At(LoadFirst{width - c}, r, first + c);
      Store(a + c, Join::Of(Load(a + c), rest));
    }
}

template <class Join>
void JoinColumns(const float* acc, int64_t width, float* y) {
  for (int64_t c = 0; c < width; c += kLanes) {
    F lanes[kReduceLanes];
    for (int l = 0; l < kReduceLanes; ++l) lanes[l] = Load(acc + l * kColumnBlock + c);
    for (int half = kReduceLanes / 2; half > 0; half /= 2)
      for (int l = 0; l < half; ++l) lanes[l] = Join::Of(lanes[l], lanes[l + half]);
    if (c + kLanes <= width) {
      Store(y + c, lanes[0]);
    } else {
      StoreN(y + c, width - c, lanes[0]);
    }
  }
}

}  // namespace RILLET_ISA
}  // namespace rillet
