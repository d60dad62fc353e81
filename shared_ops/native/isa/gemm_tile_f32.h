// What one tile of a float32 product is told, and the tables of tile functions that an instruction set offers.
#pragma once
#include <stdint.h>

namespace rillet {

// A tile computes up to `rows` by `vectors` vectors of C. Each element is one chain acc = fma(a, b, acc), k increasing.
// k runs over `taps` (of a convolution; 1 for a matrix) and, within a tap, over `depth` elements.
//   nn: row i of A in tap t starts at a + (row_offset ? row_offset[i] : i * lda) + tap_a[t]; its elements are adjacent.
//   tn: element (i, k) of tap t is a[tap_a[t] + k * lda + i].
// B: rows of a panel, ldb apart; tap t starts at row tap_b[t], or where tap t - 1 ended if tap_b is null. The panel has
// readable columns up to a whole number of vectors.
struct GemmTile {
  const float* a;
  int64_t lda;
  const int64_t* row_offset;
  const int64_t* tap_a;
  const int64_t* tap_b;
  int64_t taps, depth;
  const float* b;
  int64_t ldb;
  int64_t panels, panel_stride;  // neighbouring full panels done in one call; 1 unless columns fill the tile
  float* c;
  int64_t ldc;
  int64_t columns;             // to store
  bool resume, finish, clamp;  // start from C instead of +0; add the bias and clamp at the end
  const float* bias;           // or null
  float low, high;
  const float* next;  // C of the tile that is resumed next (prefetched), or null
};
using GemmTileFn = void (*)(const GemmTile&);

// nn and tn: [rows][vectors], entry (r - 1) * vectors + (v - 1) does r rows by v vectors.
struct GemmKernels {
  int rows, vectors, lanes;
  const GemmTileFn* nn;
  const GemmTileFn* tn;
  int columns() const { return vectors * lanes; }
};

// What an instruction set offers. narrow is for results of any width; the others, where present, for widths they
// divide.
struct GemmFamily {
  const GemmKernels* narrow;
  const GemmKernels* by48 = nullptr;
  const GemmKernels* by64 = nullptr;
};

namespace scalar {
extern const GemmFamily kGemmF32;
}
namespace avx2 {
extern const GemmFamily kGemmF32;
}
namespace avx512 {
extern const GemmFamily kGemmF32;
}
namespace neon {
extern const GemmFamily kGemmF32;
}

}  // namespace rillet
