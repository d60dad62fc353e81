// Inner loops of reductions, softmax, norms and pools in float32, one set an ISA (isa/nn_f32_loops.h, same bits in
// each).
//
// The order of a reduction: element i goes to lane i mod 16, in order; the lanes are joined by a fixed pairwise tree
// (lane l with lane l + 8, then + 4, + 2, + 1). The position of an element is counted over the reduced axes, row-major;
// so the sum of a column is the same whether it is computed alone or beside others.
#pragma once
#include "isa/isa.h"
#include "kernel.h"

namespace rillet {

constexpr int kReduceLanes = 16;
// Columns that are reduced together: their 16 lanes fit a near cache.
constexpr int64_t kColumnBlock = 64;

enum RowReduction { kRowSum, kRowSumSquares, kRowMax, kRowMin, kRowProduct, kRowReductions };

// What is reduced over the rows of a matrix, for each column c: x[r][c] itself and functions of it.
enum ColumnReduction {
  kColumnSum,
  kColumnSumSquares,
  kColumnMax,
  kColumnMin,
  kColumnProduct,
  kColumnSquaredDifference,  // (x - mean[c])^2
  kColumnStandardizedDot,    // y * ((x - mean[c]) * inv[c])
  kColumnRowDot,             // y * ((x - mean[r]) * inv[r])
  kColumnReductions
};

struct Columns {
  const float* x = nullptr;  // [rows, width]
  const float* y = nullptr;
  const float* mean = nullptr;  // one a column, padded to a multiple of 16; one a row for kColumnRowDot
  const float* inv = nullptr;
  int64_t rows = 0, width = 0;
};

// Statistics that a norm takes of one row, and what it does with them.
struct RowNorm {
  int64_t n = 0;
  float epsilon = 0;
  bool centre = false;  // take the mean off first
  const float* scale = nullptr;
  const float* offset = nullptr;  // null: none
};

// y = (x - mean) * slope + offset, one of each a column.
struct ColumnAffine {
  const float* mean = nullptr;
  const float* slope = nullptr;
  const float* offset = nullptr;
  int64_t width = 0;
};

// dx = slope * dy - along * ((x - mean) * inv) - shift, one of each a column.
struct ColumnGrad {
  const float* mean = nullptr;
  const float* inv = nullptr;
  const float* slope = nullptr;
  const float* along = nullptr;
  const float* shift = nullptr;
  int64_t width = 0;
};

struct NnF32 {
  float (*row[kRowReductions])(const float* x, int64_t n);
  // Lanes [lane_begin, lane_end) of columns [first, first + width), width <= kColumnBlock, into acc[16][kColumnBlock].
  void (*columns[kColumnReductions])(const Columns& m, int64_t first, int64_t width, int lane_begin, int lane_end,
                                     float* acc);
  // The tree over the lanes: acc[16][kColumnBlock] to y[width].
  void (*join[kColumnReductions])(const float* acc, int64_t width, float* y);
  float (*log_sum_exp)(const float* x, int64_t n);
  void (*softmax)(const float* x, int64_t n, float* y);
  void (*log_softmax)(const float* x, int64_t n, float* y);
  // Return the loss; backprop gets its gradient.
  float (*cross_entropy)(const float* logits, const float* labels, int64_t n, float* backprop);
  float (*sparse_cross_entropy)(const float* logits, int64_t label, int64_t n, float* backprop);
  void (*sigmoid_cross_entropy)(const float* logits, const float* labels, int64_t n, float* loss);
  void (*norm_row)(const RowNorm& norm, const float* x, float* y);
  // dx, and the row's mean and one over its root.
  void (*norm_row_grad)(const RowNorm& norm, const float* x, const float* dy, float* dx, float* mean, float* inv);
  void (*l2_normalize)(const float* x, int64_t n, float epsilon, float* y);
  void (*column_affine)(const ColumnAffine& a, const float* x, int64_t rows, float* y);
  void (*column_grad)(const ColumnGrad& g, const float* x, const float* dy, int64_t rows, float* dx);
  // y[c] of `taps` pointers to n contiguous elements each: the largest; the sum divided by `divisor`.
  void (*max_taps)(const float* const* taps, int64_t count, int64_t n, float* y);
  void (*mean_taps)(const float* const* taps, int64_t count, int64_t n, float divisor, float* y);
  // One tap of a maximum's gradient: dx += dy where x == y and free is 1, which then becomes 0.
  void (*max_tap_grad)(const float* x, const float* y, const float* dy, int64_t n, float* dx, float* free);
  // z[2n] normal numbers from u in (0, 1] and turn in [0, 1), n of each, a multiple of 16.
  void (*normal_pairs)(const float* u, const float* turn, int64_t n, float* z);
};

// The set for the instruction set that is chosen now (see isa.h): kernels ask in prepare.
const NnF32& CurrentNnF32();

// Floats of workspace that ReduceColumns needs for a matrix of this width.
inline int64_t ReduceColumnsWorkspace(int64_t width) {
  return (width + kColumnBlock - 1) / kColumnBlock * kColumnBlock * kReduceLanes;
}
// y[width]: the reduction of every column, spread over threads by columns and lanes.
void ReduceColumns(const Run& run, const NnF32& loops, ColumnReduction kind, const Columns& m, float* workspace,
                   float* y);

}  // namespace rillet
