// Mean on int8: the exact sum of stored values times one float32, plus one float32 that holds both zero points, rounded
// half to even.
#include "isa/pointwise_s8.h"
#include "requantize.h"

namespace rillet {
namespace {

// x, dimensions permuted to [kept...][reduced...]; the innermost dimension is contiguous and either kept or reduced.
struct State {
  const PointwiseS8* isa;
  int kept, reduced;
  int64_t kept_dims[kMaxRank], kept_strides[kMaxRank];
  int64_t reduced_dims[kMaxRank], reduced_strides[kMaxRank];
  int64_t outputs, count, row;  // row: outputs that lie side by side in x
  float scale, offset;
};

constexpr int64_t kBlock = 256;

Status ReadAxes(Prepare& ctx, const Tensor& x, bool (&reduced)[kMaxRank]) {
  bool all = false;
  for (const Attr& a : ctx.attrs) all |= a.name == "axes" && a.kind == AttrKind::kNone;
  const Span<int64_t> axes = all ? Span<int64_t>() : ctx.Ints("axes");
  if (ctx.status() != Status::kOk) return ctx.status();
  for (int d = 0; d < x.rank; ++d) reduced[d] = all;
  for (int64_t axis : axes) {
    const int64_t d = axis < 0 ? axis + x.rank : axis;
    if (d < 0 || d >= x.rank || reduced[d])
      return ctx.Fail("axes: got %lld, expected different axes of %d", static_cast<long long>(axis), x.rank);
    reduced[d] = true;
  }
  return Status::kOk;
}

Status PrepareMean(Prepare& ctx) {
  const Tensor& x = ctx.in(0);
  const bool keep = ctx.Bool("keepdims");
  bool reduced[kMaxRank] = {};
  TensorQuant q;
  OutputQuant y;
  if (Status s = ReadAxes(ctx, x, reduced); s != Status::kOk) return s;
  auto* state = ctx.NewState<State>();
  if (!state) return Status::kOutOfMemory;
  int64_t dims[kMaxRank], strides[kMaxRank], step = 1;
  for (int d = x.rank - 1; d >= 0; --d) {
    strides[d] = step;
    step *= x.dims[d];
  }
  int rank = 0;
  state->outputs = state->count = 1;
  for (int d = 0; d < x.rank; ++d) {
    if (!reduced[d] || keep) dims[rank++] = reduced[d] ? 1 : x.dims[d];
    int& n = reduced[d] ? state->reduced : state->kept;
    (reduced[d] ? state->reduced_dims : state->kept_dims)[n] = x.dims[d];
    (reduced[d] ? state->reduced_strides : state->kept_strides)[n++] = strides[d];
    (reduced[d] ? state->count : state->outputs) *= x.dims[d];
  }
  if (Status s = ctx.SetOutput(0, DType::kI8, rank, dims); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, x, "input 0", &q); s != Status::kOk) return s;
  if (Status s = ReadOutput(ctx, ctx.out(0), false, &y); s != Status::kOk) return s;
  if (state->count < 1 || state->count > (int64_t{1} << 23))
    return ctx.Fail("a mean over %lld values: expected 1 to 2^23, so that the sum fits int32",
                    static_cast<long long>(state->count));
  state->isa = &CurrentPointwiseS8();
  state->row = x.rank > 0 && !reduced[x.rank - 1] ? x.dims[x.rank - 1] : 1;
  state->scale = q.scale / y.scale * (1.0f / static_cast<float>(state->count));
  state->offset = static_cast<float>(y.zero_point) - static_cast<float>(state->count * q.zero_point) * state->scale;
  return Status::kOk;
}

int64_t Offset(int64_t i, int n, const int64_t* dims, const int64_t* strides) {
  int64_t at = 0;
  for (int d = n - 1; d >= 0; --d) {
    at += i % dims[d] * strides[d];
    i /= dims[d];
  }
  return at;
}

Status RunMean(const Run& ctx) {
  const auto& s = ctx.state<State>();
  const int8_t* x = ctx.in(0).as<int8_t>();
  int8_t* out = ctx.out(0).as<int8_t>();
  ctx.ParallelFor(s.outputs, 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t at = begin; at < end;) {
      int64_t n = s.row - at % s.row;
      n = n < end - at ? n : end - at;
      n = n < kBlock ? n : kBlock;
      int32_t acc[kBlock] = {};
      const int8_t* first = x + Offset(at, s.kept, s.kept_dims, s.kept_strides);
      for (int64_t r = 0; r < s.count; ++r)
        s.isa->Accumulate(first + Offset(r, s.reduced, s.reduced_dims, s.reduced_strides), acc, n);
      for (int64_t i = 0; i < n; ++i) {
        const float f = static_cast<float>(acc[i]) * s.scale + s.offset;
        out[at + i] = static_cast<int8_t>(RoundEven(Clamp(f, kQMin, kQMax)));
      }
      at += n;
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel mean_i8 = {PrepareMean, RunMean};

}  // namespace rillet
