// Tiles of float32 products, for the instruction set that RILLET_ISA names. Included by <isa>_gemm_f32.cc alone.
#pragma once
#include "gemm_tile_f32.h"
#include "lanes_f32.h"

namespace rillet {
namespace RILLET_ISA {
namespace {

using lanes::V;
using R = V::R;

template <int MR, int NV>
struct Accumulators {
  R v[MR][NV];
};

// One k for every row: B's vectors once, then a multiplier a row.
template <int MR, int NV, bool TA>
RILLET_FORCE_INLINE void Step(Accumulators<MR, NV>& acc, const float* const (&p)[MR], int64_t k, const float* b) {
  R bv[NV];
  RILLET_UNROLL for (int v = 0; v < NV; ++v) bv[v] = V::Load(b + v * V::kWidth);
  RILLET_UNROLL for (int i = 0; i < MR; ++i) {
    const R a = V::Set(TA ? p[0][k + i] : p[i][k]);
    RILLET_UNROLL for (int v = 0; v < NV; ++v) acc.v[i][v] = V::Fma(a, bv[v], acc.v[i][v]);
  }
}

#if defined(__ARM_NEON) && defined(__aarch64__)
// Four k's of a row come with one load; fmla takes them lane by lane.
template <int MR, int NV, int L>
RILLET_FORCE_INLINE void Lane(Accumulators<MR, NV>& acc, const R (&a)[MR], const float* b) {
  RILLET_UNROLL for (int v = 0; v < NV; ++v) {
    const R bv = V::Load(b + v * V::kWidth);
    RILLET_UNROLL for (int i = 0; i < MR; ++i) acc.v[i][v] = V::template FmaLane<L>(a[i], bv, acc.v[i][v]);
  }
}

template <int MR, int NV>
RILLET_FORCE_INLINE void FourByLane(Accumulators<MR, NV>& acc, const float* const (&p)[MR], int64_t k, const float* b,
                                    int64_t ldb) {
  R a[MR];
  RILLET_UNROLL for (int i = 0; i < MR; ++i) a[i] = V::Load(p[i] + k);
  Lane<MR, NV, 0>(acc, a, b);
  Lane<MR, NV, 1>(acc, a, b + ldb);
  Lane<MR, NV, 2>(acc, a, b + 2 * ldb);
  Lane<MR, NV, 3>(acc, a, b + 3 * ldb);
}
#endif

template <int MR, int NV, bool TA>
RILLET_FORCE_INLINE void Chain(Accumulators<MR, NV>& acc, const GemmTile& t, const float* b) {
  const int64_t ldb = t.ldb, ka = TA ? t.lda : 1;
  const float* next_b = b;
  for (int64_t tap = 0; tap < t.taps; ++tap) {
    const float* p[MR];
    const float* base = t.a + t.tap_a[tap];
    RILLET_UNROLL for (int i = 0; i < (TA ? 1 : MR); ++i) p[i] = base + (t.row_offset ? t.row_offset[i] : i * t.lda);
    const float* bk = t.tap_b ? b + t.tap_b[tap] * ldb : next_b;
    int64_t k = 0;
    for (const int64_t end = t.depth / 4 * 4; k < end; k += 4, bk += 4 * ldb) {
#if defined(__ARM_NEON) && defined(__aarch64__)
      if constexpr (!TA) {
        FourByLane<MR, NV>(acc, p, k, bk, ldb);
        continue;
      }
#endif
      RILLET_UNROLL for (int u = 0; u < 4; ++u) Step<MR, NV, TA>(acc, p, (k + u) * ka, bk + u * ldb);
    }
    for (; k < t.depth; ++k, bk += ldb) Step<MR, NV, TA>(acc, p, k * ka, bk);
    next_b = bk;
  }
}

template <int MR, int NV>
RILLET_FORCE_INLINE void Finish(Accumulators<MR, NV>& acc, const GemmTile& t, const float* bias) {
  if (bias) {
    RILLET_UNROLL for (int v = 0; v < NV; ++v) {
      const R x = V::Load(bias + v * V::kWidth);
      RILLET_UNROLL for (int i = 0; i < MR; ++i) acc.v[i][v] = V::Add(acc.v[i][v], x);
    }
  }
  if (t.clamp) {
    const R low = V::Set(t.low), high = V::Set(t.high);
    RILLET_UNROLL for (int v = 0; v < NV; ++v) RILLET_UNROLL for (int i = 0; i < MR; ++i) acc.v[i][v] =
        V::Min(high, V::Max(low, acc.v[i][v]));
  }
}

void CopyBlock(float* to, int64_t to_stride, const float* from, int64_t from_stride, int rows, int64_t columns) {
  for (int i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[i * to_stride + j] = from[i * from_stride + j];
}

// A tile whose last vector is not full: computed in a block of whole vectors.
void Edge(const GemmTile& t, int rows, int columns, GemmTileFn tile) {
  alignas(64) float c[16 * 64], bias[64] = {};
  GemmTile whole = t;
  if (t.resume) CopyBlock(c, columns, t.c, t.ldc, rows, t.columns);
  if (t.bias) {
    CopyBlock(bias, 0, t.bias, 0, 1, t.columns);
    whole.bias = bias;
  }
  whole.c = c;
  whole.ldc = whole.columns = columns;
  whole.next = nullptr;
  tile(whole);
  CopyBlock(t.c, t.ldc, c, columns, rows, t.columns);
}

template <int MR, int NV, bool TA>
void Tile(const GemmTile& t) {
  constexpr int kColumns = NV * V::kWidth;
  static_assert(MR <= 16 && kColumns <= 64, "Edge's block holds a tile");
  if (V::kWidth > 1 && t.columns < kColumns) return Edge(t, MR, kColumns, &Tile<MR, NV, TA>);
  const float *b = t.b, *bias = t.bias;
  float* c = t.c;
  for (int64_t panel = 0; panel < t.panels; ++panel, b += t.panel_stride, c += kColumns) {
    Accumulators<MR, NV> acc;
    if (t.resume) {
      RILLET_UNROLL for (int i = 0; i < MR; ++i) RILLET_UNROLL for (int v = 0; v < NV; ++v) acc.v[i][v] =
          V::Load(c + i * t.ldc + v * V::kWidth);
    } else {
      RILLET_UNROLL for (int i = 0; i < MR; ++i) RILLET_UNROLL for (int v = 0; v < NV; ++v) acc.v[i][v] = V::Zero();
    }
    if (t.next) {
      RILLET_UNROLL for (int i = 0; i < MR; ++i) RILLET_UNROLL for (int v = 0; v < kColumns; v += 16)
          __builtin_prefetch(t.next + i * t.ldc + v);
    }
    Chain<MR, NV, TA>(acc, t, b);
    if (t.finish) Finish<MR, NV>(acc, t, bias);
    if (bias) bias += kColumns;
    RILLET_UNROLL for (int i = 0; i < MR; ++i) RILLET_UNROLL for (int v = 0; v < NV; ++v)
        V::Store(c + i * t.ldc + v * V::kWidth, acc.v[i][v]);
  }
}

template <int MR, int NV, bool TA>
struct Table {
  GemmTileFn f[MR * NV];
  template <int I>
  constexpr void Fill() {
    if constexpr (I < MR * NV) {
      f[I] = &Tile<I / NV + 1, I % NV + 1, TA>;
      Fill<I + 1>();
    }
  }
  constexpr Table() : f() { Fill<0>(); }
};

}  // namespace
}  // namespace RILLET_ISA
}  // namespace rillet
