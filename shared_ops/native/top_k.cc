// TopK, ArgMax, ArgMin. Of equal values the first is best; NaN is above every number.
#include <algorithm>

#include "strided_copy.h"

namespace rillet {
namespace {

// The tensor as [outer, n, inner], the axis in the middle.
struct AxisState {
  int64_t outer, n, inner, k;
  bool largest, sorted;
};

AxisState AroundAxis(const Tensor& x, int axis) {
  AxisState s = {1, x.dims[axis], 1, 0, true, true};
  for (int i = 0; i < axis; ++i) s.outer *= x.dims[i];
  for (int i = axis + 1; i < x.rank; ++i) s.inner *= x.dims[i];
  return s;
}

// Whether a is above b in the order of numbers, then NaN.
template <class T>
bool Above(T a, T b) {
  return a > b || (a != a && b == b);
}

void StoreIndex(const Tensor& t, int64_t at, int64_t index) {
  if (t.dtype == DType::kI32) t.as<int32_t>()[at] = static_cast<int32_t>(index);
  else t.as<int64_t>()[at] = index;
}

Status PrepareTopK(Prepare& p) {
  const Tensor& x = p.in(0);
  const int64_t k = p.Int("k");
  const bool largest = p.Bool("largest"), sorted = p.Bool("sorted");
  const std::string_view index = p.String("index_type");
  const int axis = NormalizeAxis(p, p.Int("axis"), x.rank);
  if (p.status() != Status::kOk) return p.status();
  if (k < 0 || k > x.dims[axis])
    return p.Fail("k: got %lld, expected 0 to %lld", static_cast<long long>(k), static_cast<long long>(x.dims[axis]));
  if (x.dtype == DType::kBool || x.dims[axis] > INT32_MAX) return p.Fail("x: expected numbers, at most 2^31 in a row");
  AxisState* s = p.NewState<AxisState>();
  if (!s) return p.status();
  *s = AroundAxis(x, axis);
  s->k = k;
  s->largest = largest;
  s->sorted = sorted;
  p.NeedWorkspace(static_cast<size_t>(p.threads) * static_cast<size_t>(s->n) * sizeof(int32_t));
  int64_t dims[kMaxRank];
  for (int i = 0; i < x.rank; ++i) dims[i] = i == axis ? k : x.dims[i];
  if (p.SetOutput(0, x.dtype, x.rank, dims) != Status::kOk) return p.status();
  return p.SetOutput(1, index == "i64" ? DType::kI64 : DType::kI32, x.rank, dims);
}

template <class T>
void TopKRow(const AxisState& s, const T* x, int32_t* order, T* values, const Tensor& indices, int64_t first) {
  for (int64_t i = 0; i < s.n; ++i) order[i] = static_cast<int32_t>(i);
  // Ties fall to the lower index, so the order is total and the result does not depend on the algorithm.
  std::partial_sort(order, order + s.k, order + s.n, [&](int32_t a, int32_t b) {
    const T u = x[a * s.inner], v = x[b * s.inner];
    if (Above(u, v)) return s.largest;
    return Above(v, u) ? !s.largest : a < b;
  });
  if (!s.sorted) std::sort(order, order + s.k);
  for (int64_t i = 0; i < s.k; ++i) {
    values[i * s.inner] = x[order[i] * s.inner];
    StoreIndex(indices, first + i * s.inner, order[i]);
  }
}

template <class T>
Status RunTopKOf(const Run& run) {
  const AxisState& s = run.state<AxisState>();
  const T* x = run.in(0).as<T>();
  T* values = run.out(0).as<T>();
  run.ParallelFor(s.outer * s.inner, 1 + 2048 / (s.n + 1), [&](int64_t begin, int64_t end, int thread) {
    int32_t* order = static_cast<int32_t*>(run.workspace) + thread * s.n;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t to = row / s.inner * s.k * s.inner + row % s.inner;
      TopKRow(s, x + row / s.inner * s.n * s.inner + row % s.inner, order, values + to, run.out(1), to);
    }
  });
  return Status::kOk;
}

Status RunTopK(const Run& run) {
  switch (run.in(0).dtype) {
    case DType::kF32: return RunTopKOf<float>(run);
    case DType::kF64: return RunTopKOf<double>(run);
    case DType::kI8: return RunTopKOf<int8_t>(run);
    case DType::kI32: return RunTopKOf<int32_t>(run);
    case DType::kI64: return RunTopKOf<int64_t>(run);
    default: return RunTopKOf<uint8_t>(run);
  }
}

Status PrepareArg(Prepare& p, bool largest) {
  const Tensor& x = p.in(0);
  const bool keepdims = p.Bool("keepdims");
  const std::string_view type = p.String("output_type");
  const int axis = NormalizeAxis(p, p.Int("axis"), x.rank);
  if (p.status() != Status::kOk) return p.status();
  if (x.dims[axis] == 0) return p.Fail("axis %d has no elements", axis);
  AxisState* s = p.NewState<AxisState>();
  if (!s) return p.status();
  *s = AroundAxis(x, axis);
  s->largest = largest;
  int64_t dims[kMaxRank];
  int rank = 0;
  for (int i = 0; i < x.rank; ++i)
    if (i != axis || keepdims) dims[rank++] = i == axis ? 1 : x.dims[i];
  return p.SetOutput(0, type == "i32" ? DType::kI32 : DType::kI64, rank, dims);
}

Status PrepareArgMax(Prepare& p) { return PrepareArg(p, true); }
Status PrepareArgMin(Prepare& p) { return PrepareArg(p, false); }

// The first NaN wins in both directions, as in NumPy.
template <class T>
bool Better(bool largest, T a, T best) {
  return (largest ? a > best : a < best) || (a != a && best == best);
}

// One row of neighbours: the best value over 16 lanes side by side, then its first place. Which value is best does not
// depend on the order of comparisons, and equal ones (zeros of both signs too) are told apart by their place.
template <class T>
int64_t ArgOfRow(bool largest, int64_t n, const T* x) {
  constexpr int64_t kLanes = 16;
  T best[kLanes];
  bool nan = false;
  for (int64_t l = 0; l < kLanes; ++l) best[l] = x[0];
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) {
      const T v = x[i + l];
      nan |= v != v;
      best[l] = (largest ? v > best[l] : v < best[l]) ? v : best[l];
    }
  for (; i < n; ++i) {
    nan |= x[i] != x[i];
    best[0] = (largest ? x[i] > best[0] : x[i] < best[0]) ? x[i] : best[0];
  }
  for (int64_t l = 1; l < kLanes; ++l) best[0] = (largest ? best[l] > best[0] : best[l] < best[0]) ? best[l] : best[0];
  for (i = 0; i < n - 1; ++i)
    if (nan ? x[i] != x[i] : x[i] == best[0]) break;
  return i;
}

template <class T>
Status RunArgOfRows(const Run& run) {
  const AxisState& s = run.state<AxisState>();
  const T* x = run.in(0).as<T>();
  run.ParallelFor(s.outer, 1 + 16384 / s.n, [&](int64_t begin, int64_t end, int) {
    for (int64_t row = begin; row < end; ++row)
      StoreIndex(run.out(0), row, s.largest ? ArgOfRow(true, s.n, x + row * s.n) : ArgOfRow(false, s.n, x + row * s.n));
  });
  return Status::kOk;
}

template <class T>
Status RunArgOf(const Run& run) {
  const AxisState& s = run.state<AxisState>();
  if (s.inner == 1) return RunArgOfRows<T>(run);
  const T* x = run.in(0).as<T>();
  constexpr int64_t kColumns = 32;  // side by side, so that memory is read in order
  const int64_t groups = (s.inner + kColumns - 1) / kColumns;
  run.ParallelFor(s.outer * groups, 1 + 4096 / (s.n + 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t outer = unit / groups, column = unit % groups * kColumns;
      const int64_t width = s.inner - column < kColumns ? s.inner - column : kColumns;
      const T* from = x + outer * s.n * s.inner + column;
      T best[kColumns];
      int64_t found[kColumns] = {};
      for (int64_t c = 0; c < width; ++c) best[c] = from[c];
      for (int64_t i = 1; i < s.n; ++i)
        for (int64_t c = 0; c < width; ++c)
          if (Better(s.largest, from[i * s.inner + c], best[c])) {
            best[c] = from[i * s.inner + c];
            found[c] = i;
          }
      for (int64_t c = 0; c < width; ++c) StoreIndex(run.out(0), outer * s.inner + column + c, found[c]);
    }
  });
  return Status::kOk;
}

Status RunArg(const Run& run) {
  switch (run.in(0).dtype) {
    case DType::kF32: return RunArgOf<float>(run);
    case DType::kF64: return RunArgOf<double>(run);
    case DType::kI8: return RunArgOf<int8_t>(run);
    case DType::kI32: return RunArgOf<int32_t>(run);
    case DType::kI64: return RunArgOf<int64_t>(run);
    default: return RunArgOf<uint8_t>(run);
  }
}

}  // namespace

const Kernel top_k_any = {PrepareTopK, RunTopK};
const Kernel arg_max_any = {PrepareArgMax, RunArg};
const Kernel arg_min_any = {PrepareArgMin, RunArg};

}  // namespace rillet
