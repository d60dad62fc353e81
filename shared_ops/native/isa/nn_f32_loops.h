// The table of nn_f32.h for one instruction set.
#pragma once
#include "nn_norm.h"
#include "nn_random.h"

namespace rillet {
namespace RILLET_ISA {

template <class Join>
inline float RowPlain(const float* x, int64_t n) {
  return ReduceRun<Join>(Plain{x, 0}, n);
}
inline float RowSquares(const float* x, int64_t n) { return ReduceRun<JoinSum>(Squares{x, 0}, n); }

template <class Join>
void ColumnsPlain(const Columns& m, int64_t first, int64_t width, int begin, int end, float* acc) {
  ReduceLanesOfColumns<Join>(Plain{m.x, m.width}, m.rows, m.width, first, width, begin, end, acc);
}
inline void ColumnsSquares(const Columns& m, int64_t first, int64_t width, int begin, int end, float* acc) {
  ReduceLanesOfColumns<JoinSum>(Squares{m.x, m.width}, m.rows, m.width, first, width, begin, end, acc);
}
inline void ColumnsDifferences(const Columns& m, int64_t first, int64_t width, int begin, int end, float* acc) {
  ReduceLanesOfColumns<JoinSum>(SquaredDifferences{m.x, m.mean, m.width}, m.rows, m.width, first, width, begin, end,
                                acc);
}
template <class Dot>
void ColumnsDot(const Columns& m, int64_t first, int64_t width, int begin, int end, float* acc) {
  ReduceLanesOfColumns<JoinSum>(Dot{m}, m.rows, m.width, first, width, begin, end, acc);
}

extern const NnF32 kNnF32;
const NnF32 kNnF32 = {
    {RowPlain<JoinSum>, RowSquares, RowPlain<JoinMax>, RowPlain<JoinMin>, RowPlain<JoinProduct>},
    {ColumnsPlain<JoinSum>, ColumnsSquares, ColumnsPlain<JoinMax>, ColumnsPlain<JoinMin>, ColumnsPlain<JoinProduct>,
     ColumnsDifferences, ColumnsDot<StandardizedDot>, ColumnsDot<RowDot>},
    {JoinColumns<JoinSum>, JoinColumns<JoinSum>, JoinColumns<JoinMax>, JoinColumns<JoinMin>, JoinColumns<JoinProduct>,
     JoinColumns<JoinSum>, JoinColumns<JoinSum>, JoinColumns<JoinSum>},
    LogSumExpRow,
    SoftmaxRow,
    LogSoftmaxRow,
    CrossEntropyRow,
    SparseCrossEntropyRow,
    SigmoidCrossEntropy,
    NormRow,
    NormRowGrad,
    L2NormalizeRow,
    ColumnAffineRows,
    ColumnGradRows,
    MaxTaps,
    MeanTaps,
    MaxTapGrad,
    NormalPairs,
};

}  // namespace RILLET_ISA
}  // namespace rillet
