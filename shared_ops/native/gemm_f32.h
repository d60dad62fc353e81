// Float32 products C = A B (+ bias, clamp): what MatMul, the convolutions and their gradients are made of.
//
// Contract (bits do not depend on instruction set, tiles, blocks, threads): every element of C is a chain
// acc = fma(a, b, acc) from +0 over increasing k; k is cut into chunks of 8192, each a chain of its own, and the chunk
// sums are added left to right; then the bias is added, then the clamp applied.
//
// Use: in prepare, choose the tiles (GemmFor), lay out k (PlanK), allocate and fill packed B (PackB). In run, call
// GemmBlock for ranges of rows and panels that cover C; each range may run in a thread of its own.
//
//   A  element (i, k): k is tap * depth + d. Rows are lda apart, or at row_offset[i]; tap t is tap_a[t] further on.
//      transposed: element (i, k) is a[tap_a[t] + d * lda + i].
//   B  packed in panels of as many columns as a tile has, each [K][columns], the last one only as many vectors wide as
//   it
//      needs; or in place (rows ldb apart) but for the last, partial panel, which is always packed.
#pragma once
#include "conv_geometry.h"
#include "isa/gemm_tile_f32.h"
#include "kernel.h"

namespace rillet {

constexpr int64_t kChunk = 8192;

// The tiles that suit a result of n columns (and A transposed or not) on the current instruction set.
const GemmKernels& GemmFor(int64_t n, bool transposed);

// A piece of k that one tile call does: `taps` whole taps, or elements [start, start + depth) of one tap.
struct KSegment {
  int64_t tap, taps, start, depth;
  int64_t row;       // of B, where the piece starts (if taps follow each other in B)
  bool first, last;  // of its chunk
  int32_t chunk;     // 0: accumulates in C; later ones in scratch, and are added
};

struct KPlan {
  int64_t k = 0;  // rows of B
  const KSegment* segments = nullptr;
  int64_t count = 0;
  bool chunked = false;
  const int64_t* tap_b = nullptr;  // row of B where each tap starts; null: tap * depth
};

// Cuts k into chunks and into blocks of about `block` elements. tap_b (rows of B, increasing) stays borrowed; k is the
// number of rows of B, which is also what chunks count.
Status PlanK(Prepare& ctx, int64_t taps, int64_t depth, int64_t block, int64_t k, const int64_t* tap_b, KPlan* plan);

struct Gemm {
  const GemmKernels* kernels = nullptr;
  KPlan plan;
  int64_t n = 0;
  bool transposed = false;
  int64_t row_block = 192;  // rows whose A stays in cache while panels go by
  const int64_t* tap_a = nullptr;
  ActivationBounds bounds;

  int64_t columns() const { return kernels->columns(); }
  int64_t panels() const { return (n + columns() - 1) / columns(); }
  int64_t packed_size() const;  // floats of B packed whole
  int64_t tail_size() const;    // floats of the last panel, if it is partial
  // Floats of scratch that GemmBlock needs for `rows` rows; 0 unless k is chunked.
  int64_t scratch_size(int64_t rows) const { return plan.chunked ? (rows < row_block ? rows : row_block) * n : 0; }
};

struct GemmA {
  const float* data;
  int64_t lda;
  const int64_t* row_offset;  // or null
};

struct GemmB {
  const float* packed;  // all panels; with `in_place`, the partial panel alone
  const float* in_place = nullptr;
  int64_t ldb = 0;
};

// Fills packed B, panels [begin, end). Element (k, j) of B is b[k * ldb + j], or b[j * ldb + k] if transposed.
void PackB(const Gemm& gemm, const float* b, int64_t ldb, bool transposed, int64_t begin, int64_t end, float* packed);
// The same for rows [row, row + rows) of B only: b points at them.
void PackRows(const Gemm& gemm, const float* b, int64_t ldb, bool transposed, int64_t row, int64_t rows, int64_t begin,
              int64_t end, float* packed);
// The partial panel alone, for B in place.
void PackTail(const Gemm& gemm, const float* b, int64_t ldb, float* packed);

// Rows [row_begin, row_end) of C and panels [panel_begin, panel_end). scratch: scratch_size floats of this call's own.
void GemmBlock(const Gemm& gemm, const GemmA& a, const GemmB& b, float* c, int64_t ldc, const float* bias,
               int64_t row_begin, int64_t row_end, int64_t panel_begin, int64_t panel_end, float* scratch);

// How a product is split over threads: rows first, else panels. Covers C once.
struct GemmSplit {
  int64_t row_parts, panel_parts;
};
GemmSplit SplitGemm(const Gemm& gemm, int64_t rows, int threads);

// The whole of C, threaded. scratch: threads * scratch_size(rows) floats.
void RunGemm(const Run& run, const Gemm& gemm, int64_t rows, const GemmA& a, const GemmB& b, float* c, int64_t ldc,
             const float* bias, float* scratch);

}  // namespace rillet
