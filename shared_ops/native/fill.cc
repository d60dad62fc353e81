// Tensors made from little: Fill, ZerosLike, OnesLike, Range, OneHot.
#include <cmath>

#include "strided_copy.h"

namespace rillet {
namespace {

Status PrepareFill(Prepare& p) {
  int64_t dims[kMaxRank];
  const int rank = ReadShape(p, 0, dims);
  if (rank < 0) return p.status();
  if (!p.Has(1) || p.in(1).rank != 0) return p.Fail("value: expected a scalar");
  return p.SetOutput(0, p.in(1).dtype, rank, dims);
}

Status RunFill(const Run& run) {
  FillElements(run, run.out(0).data, run.out(0).size(), SizeOf(run.out(0).dtype), run.in(1).data);
  return Status::kOk;
}

Status PrepareLike(Prepare& p) { return p.SetOutputLike(0, p.in(0)); }

Status RunConstant(const Run& run, double value) {
  const Element e = MakeElement(run.out(0).dtype, run.out(0).quant, value);
  FillElements(run, run.out(0).data, run.out(0).size(), SizeOf(run.out(0).dtype), e.bytes);
  return Status::kOk;
}

Status RunZerosLike(const Run& run) { return RunConstant(run, 0.0); }
Status RunOnesLike(const Run& run) { return RunConstant(run, 1.0); }

struct RangeState {
  double start, delta;
};

Status PrepareRange(Prepare& p) {
  const double start = p.Double("start"), limit = p.Double("limit"), delta = p.Double("delta");
  const std::string_view dtype = p.String("dtype");
  if (p.status() != Status::kOk) return p.status();
  DType type = DType::kI32;
  if (dtype == "i64") type = DType::kI64;
  else if (dtype == "f32") type = DType::kF32;
  else if (dtype == "f64") type = DType::kF64;
  else if (dtype != "i32")
    return p.Fail("dtype: got '%.*s', expected i32, i64, f32 or f64", static_cast<int>(dtype.size()), dtype.data());
  if (!std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(delta) || delta == 0)
    return p.Fail("start, limit, delta: got %g, %g, %g, expected finite numbers, delta other than 0", start, limit,
                  delta);
  double count = std::ceil((limit - start) / delta);
  if (!(count < 1e12)) return p.Fail("got %g numbers, expected fewer", count);
  const int64_t dims[1] = {count > 0 ? static_cast<int64_t>(count) : 0};
  RangeState* state = p.NewState<RangeState>();
  if (!state) return p.status();
  *state = {start, delta};
  return p.SetOutput(0, type, 1, dims);
}

template <class T>
Status RunRangeOf(const Run& run) {
  const RangeState& s = run.state<RangeState>();
  T* y = run.out(0).as<T>();
  run.ParallelFor(run.out(0).size(), 8192, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(s.start + static_cast<double>(i) * s.delta);
  });
  return Status::kOk;
}

Status RunRange(const Run& run) {
  switch (run.out(0).dtype) {
    case DType::kI64: return RunRangeOf<int64_t>(run);
    case DType::kF32: return RunRangeOf<float>(run);
    case DType::kF64: return RunRangeOf<double>(run);
    default: return RunRangeOf<int32_t>(run);
  }
}

struct OneHotState {
  Element on, off;
  int64_t depth, inner;
};

Status PrepareOneHot(Prepare& p) {
  const Tensor& x = p.in(0);
  const int64_t depth = p.Int("depth");
  const double on = p.Double("on_value"), off = p.Double("off_value");
  if (x.rank == kMaxRank) return p.Fail("too many dimensions: expected at most %d", kMaxRank);
  const int axis = NormalizeAxis(p, p.Int("axis"), x.rank + 1);
  if (p.status() != Status::kOk) return p.status();
  if (x.dtype != DType::kI32 && x.dtype != DType::kI64)
    return p.Fail("indices: got %s, expected i32 or i64", NameOf(x.dtype));
  if (depth < 0) return p.Fail("depth: got %lld, expected 0 or more", static_cast<long long>(depth));
  int64_t dims[kMaxRank], inner = 1;
  for (int i = 0; i <= x.rank; ++i) dims[i] = i < axis ? x.dims[i] : i == axis ? depth : x.dims[i - 1];
  for (int i = axis; i < x.rank; ++i) inner *= x.dims[i];
  OneHotState* state = p.NewState<OneHotState>();
  if (!state) return p.status();
  const DType dtype = p.out(0).dtype;
  *state = {MakeElement(dtype, p.out(0).quant, on), MakeElement(dtype, p.out(0).quant, off), depth, inner};
  return p.SetOutput(0, dtype, x.rank + 1, dims);
}

Status RunOneHot(const Run& run) {
  const OneHotState& s = run.state<OneHotState>();
  const Tensor &x = run.in(0), &y = run.out(0);
  const size_t bytes = SizeOf(y.dtype);
  FillElements(run, y.data, y.size(), bytes, s.off.bytes);
  for (int64_t i = 0, n = x.size(); i < n; ++i) {
    const int64_t index = x.dtype == DType::kI32 ? x.as<int32_t>()[i] : x.as<int64_t>()[i];
    if (index < 0 || index >= s.depth) continue;
    const int64_t at = (i / s.inner * s.depth + index) * s.inner + i % s.inner;
    memcpy(y.as<char>() + at * static_cast<int64_t>(bytes), s.on.bytes, bytes);
  }
  return Status::kOk;
}

}  // namespace

const Kernel fill_any = {PrepareFill, RunFill};
const Kernel zeros_like_any = {PrepareLike, RunZerosLike};
const Kernel ones_like_any = {PrepareLike, RunOnesLike};
const Kernel range_any = {PrepareRange, RunRange};
const Kernel one_hot_any = {PrepareOneHot, RunOneHot};

}  // namespace rillet
