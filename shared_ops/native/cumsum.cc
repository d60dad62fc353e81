// Cumsum: running sums, element after element; threads share out what stands beside the axis.
#include "strided_copy.h"

namespace rillet {
namespace {

struct CumsumState {
  int64_t n, inner, columns;  // columns: elements beside the axis, outer times inner
  bool exclusive, reverse;
};

Status PrepareCumsum(Prepare& p) {
  const Tensor& x = p.in(0);
  const bool exclusive = p.Bool("exclusive"), reverse = p.Bool("reverse");
  const int axis = NormalizeAxis(p, p.Int("axis"), x.rank);
  if (p.status() != Status::kOk) return p.status();
  if (x.dtype == DType::kBool) return p.Fail("x: got bool, expected numbers");
  CumsumState* s = p.NewState<CumsumState>();
  if (!s) return p.status();
  *s = {x.dims[axis], 1, 1, exclusive, reverse};
  for (int i = 0; i < x.rank; ++i) {
    if (i > axis) s->inner *= x.dims[i];
    if (i != axis) s->columns *= x.dims[i];
  }
  return p.SetOutputLike(0, x);
}

// Columns [0, width) of one outer slice; x and y at its first element in the direction of the sum.
template <class T>
void SumColumns(const CumsumState& s, int64_t width, const T* x, T* y) {
  const int64_t step = s.reverse ? -s.inner : s.inner;
  for (int64_t c = 0; c < width; ++c) y[c] = s.exclusive ? T(0) : x[c];
  for (int64_t i = 1; i < s.n; ++i) {
    const T* add = x + (s.exclusive ? i - 1 : i) * step;
    for (int64_t c = 0; c < width; ++c) y[i * step + c] = static_cast<T>(y[(i - 1) * step + c] + add[c]);
  }
}

template <class T>
Status RunCumsumOf(const Run& run) {
  const CumsumState& s = run.state<CumsumState>();
  if (s.n == 0) return Status::kOk;
  const T* x = run.in(0).as<T>();
  T* y = run.out(0).as<T>();
  run.ParallelFor(s.columns, 1 + 16384 / s.n, [&](int64_t begin, int64_t end, int) {
    while (begin < end) {
      const int64_t outer = begin / s.inner, first = begin % s.inner;
      const int64_t width = end - begin < s.inner - first ? end - begin : s.inner - first;
      const int64_t at = (outer * s.n + (s.reverse ? s.n - 1 : 0)) * s.inner + first;
      SumColumns(s, width, x + at, y + at);
      begin += width;
    }
  });
  return Status::kOk;
}

// Unsigned arithmetic stands in for signed: it may wrap.
Status RunCumsum(const Run& run) {
  switch (run.in(0).dtype) {
    case DType::kF32: return RunCumsumOf<float>(run);
    case DType::kF64: return RunCumsumOf<double>(run);
    case DType::kI32: return RunCumsumOf<uint32_t>(run);
    case DType::kI64: return RunCumsumOf<uint64_t>(run);
    default: return RunCumsumOf<uint8_t>(run);
  }
}

}  // namespace

const Kernel cumsum_any = {PrepareCumsum, RunCumsum};

}  // namespace rillet
