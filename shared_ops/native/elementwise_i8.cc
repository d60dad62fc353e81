// Add, Sub and Mul on int8, with broadcasting.
#include <cmath>

#include "isa/pointwise_s8.h"
#include "requantize.h"

namespace rillet {
namespace {

// Two operands over one output, dimensions merged where both advance alike. Rows: the innermost merged dimension.
struct Broadcast {
  int rank;
  int64_t dims[kMaxRank];
  int64_t a[kMaxRank], b[kMaxRank];  // strides in elements; 0 where broadcast

  int64_t row() const { return dims[rank - 1]; }
  int64_t rows() const {
    int64_t n = 1;
    for (int d = 0; d + 1 < rank; ++d) n *= dims[d];
    return n;
  }
};

struct State {
  const PointwiseS8* isa;
  Broadcast broadcast;
  AddS8 add;
  MulS8 mul;
};

Status PrepareBroadcast(Prepare& ctx, Broadcast* out) {
  const Tensor &a = ctx.in(0), &b = ctx.in(1);
  const int rank = a.rank > b.rank ? a.rank : b.rank;
  int64_t dims[kMaxRank], sa[kMaxRank], sb[kMaxRank], step_a = 1, step_b = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const int64_t p = d < rank - a.rank ? 1 : a.dims[d - (rank - a.rank)];
    const int64_t q = d < rank - b.rank ? 1 : b.dims[d - (rank - b.rank)];
    if (p != q && p != 1 && q != 1)
      return ctx.Fail("dimensions %lld and %lld do not broadcast", static_cast<long long>(p),
                      static_cast<long long>(q));
    dims[d] = p == 1 ? q : p;
    sa[d] = p == 1 ? 0 : step_a;
    sb[d] = q == 1 ? 0 : step_b;
    step_a *= p;
    step_b *= q;
  }
  if (Status s = ctx.SetOutput(0, DType::kI8, rank, dims); s != Status::kOk) return s;
  int n = 0;
  for (int d = 0; d < rank; ++d) {
    if (dims[d] == 1) continue;
    const bool merges = n > 0 && out->a[n - 1] == sa[d] * dims[d] && out->b[n - 1] == sb[d] * dims[d];
    if (merges) {
      out->dims[n - 1] *= dims[d];
    } else {
      out->dims[n++] = dims[d];
    }
    out->a[n - 1] = sa[d];
    out->b[n - 1] = sb[d];
  }
  if (n == 0) {
    out->dims[0] = 1;
    out->a[0] = out->b[0] = 1;
    n = 1;
  }
  out->rank = n;
  return Status::kOk;
}

Status PrepareAdd(Prepare& ctx, int sign, bool has_activation) {
  TensorQuant a, b;
  OutputQuant y;
  auto* state = ctx.NewState<State>();
  if (!state) return Status::kOutOfMemory;
  state->isa = &CurrentPointwiseS8();
  if (Status s = PrepareBroadcast(ctx, &state->broadcast); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, ctx.in(0), "input 0", &a); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, ctx.in(1), "input 1", &b); s != Status::kOk) return s;
  if (Status s = ReadOutput(ctx, ctx.out(0), has_activation, &y); s != Status::kOk) return s;
  const float ratio[2] = {a.scale / y.scale, b.scale / y.scale};
  for (float r : ratio)
    if (!(r >= 0x1p-10f && r < 0x1p8f))
      return ctx.Fail("scale of an input over scale of the output: got %g, expected at least 1/1024 and below 256",
                      static_cast<double>(r));
  int exponent;
  std::frexp(ratio[0] > ratio[1] ? ratio[0] : ratio[1], &exponent);
  AddS8& p = state->add;
  p.shift = 20 - (exponent - 1);  // the larger multiplier lies in [2^20, 2^21): every sum fits int32
  p.a = static_cast<int32_t>(std::nearbyint(std::ldexp(static_cast<double>(ratio[0]), p.shift)));
  p.b = sign * static_cast<int32_t>(std::nearbyint(std::ldexp(static_cast<double>(ratio[1]), p.shift)));
  p.offset = (1 << (p.shift - 1)) - p.a * a.zero_point - p.b * b.zero_point;
  p.zero_point = y.zero_point;
  p.low = y.low;
  p.high = y.high;
  return Status::kOk;
}

Status PrepareAddI8(Prepare& ctx) { return PrepareAdd(ctx, 1, true); }
Status PrepareSubI8(Prepare& ctx) { return PrepareAdd(ctx, -1, false); }

Status PrepareMulI8(Prepare& ctx) {
  TensorQuant a, b;
  OutputQuant y;
  auto* state = ctx.NewState<State>();
  if (!state) return Status::kOutOfMemory;
  state->isa = &CurrentPointwiseS8();
  if (Status s = PrepareBroadcast(ctx, &state->broadcast); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, ctx.in(0), "input 0", &a); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, ctx.in(1), "input 1", &b); s != Status::kOk) return s;
  if (Status s = ReadOutput(ctx, ctx.out(0), true, &y); s != Status::kOk) return s;
  state->mul = {a.zero_point, b.zero_point, y.zero_point, y.low, y.high, RequantizeScale(a.scale, b.scale, y.scale)};
  return Status::kOk;
}

// row(a, a_step, b, b_step, out, n) for every row, or piece of one, of the output.
template <class Row>
void ForRows(const Run& ctx, const Broadcast& s, const Row& row) {
  const int8_t *a = ctx.in(0).as<int8_t>(), *b = ctx.in(1).as<int8_t>();
  int8_t* out = ctx.out(0).as<int8_t>();
  const int64_t n = s.row();
  const int last = s.rank - 1;
  ctx.ParallelFor(s.rows() * n, 16384, [&](int64_t begin, int64_t end, int) {
    for (int64_t at = begin; at < end;) {
      const int64_t column = at % n, count = end - at < n - column ? end - at : n - column;
      int64_t rest = at / n, ia = column * s.a[last], ib = column * s.b[last];
      for (int d = last - 1; d >= 0; --d) {
        ia += rest % s.dims[d] * s.a[d];
        ib += rest % s.dims[d] * s.b[d];
        rest /= s.dims[d];
      }
      row(a + ia, s.a[last] ? 1 : 0, b + ib, s.b[last] ? 1 : 0, out + at, count);
      at += count;
    }
  });
}

Status RunAdd(const Run& ctx) {
  const auto& s = ctx.state<State>();
  ForRows(ctx, s.broadcast, [&](const int8_t* a, int sa, const int8_t* b, int sb, int8_t* out, int64_t n) {
    s.isa->Add(s.add, a, sa, b, sb, out, n);
  });
  return Status::kOk;
}

Status RunMul(const Run& ctx) {
  const auto& s = ctx.state<State>();
  ForRows(ctx, s.broadcast, [&](const int8_t* a, int sa, const int8_t* b, int sb, int8_t* out, int64_t n) {
    s.isa->Mul(s.mul, a, sa, b, sb, out, n);
  });
  return Status::kOk;
}

}  // namespace

const Kernel add_i8 = {PrepareAddI8, RunAdd};
const Kernel sub_i8 = {PrepareSubI8, RunAdd};
const Kernel mul_i8 = {PrepareMulI8, RunMul};

}  // namespace rillet
