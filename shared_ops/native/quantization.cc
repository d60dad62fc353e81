// Quantize, Dequantize and LookupTable. Parameters are those of the int8 tensor; attributes serve bare tensors.
#include <cmath>

#include "isa/pointwise_s8.h"
#include "requantize.h"

namespace rillet {
namespace {

struct State {
  const PointwiseS8* isa;
  float scale;
  int32_t zero_point;
};

// The tensor's parameters where it has any, else the attributes'; fails where the two contradict each other.
Status ReadParams(Prepare& ctx, const Tensor& t, State* state) {
  const float scale = ctx.Float("scale");
  const int64_t zero_point = ctx.Int("zero_point");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (t.quant.count == 0) {
    if (!(scale > 0) || !std::isfinite(scale) || zero_point < kQMin || zero_point > kQMax)
      return ctx.Fail("no parameters: the tensor has none, and the attributes say scale %g, zero point %lld",
                      static_cast<double>(scale), static_cast<long long>(zero_point));
    state->scale = scale;
    state->zero_point = static_cast<int32_t>(zero_point);
    return Status::kOk;
  }
  if (t.quant.count != 1) return ctx.Fail("scales: got %d, expected 1", t.quant.count);
  state->scale = t.quant.scale[0];
  state->zero_point = t.quant.zero_point;
  if (!(state->scale > 0) || !std::isfinite(state->scale))
    return ctx.Fail("scale: got %g, expected a positive number", static_cast<double>(state->scale));
  if (t.dtype == DType::kI8 && (state->zero_point < kQMin || state->zero_point > kQMax))
    return ctx.Fail("zero point: got %d, expected -128 to 127", state->zero_point);
  if (scale != 0 && (scale != state->scale || zero_point != state->zero_point))
    return ctx.Fail("attributes contradict the tensor: got scale %g, zero point %lld, expected scale %g, zero point %d",
                    static_cast<double>(scale), static_cast<long long>(zero_point), static_cast<double>(state->scale),
                    state->zero_point);
  return Status::kOk;
}

Status PrepareQuantize(Prepare& ctx) {
  auto* state = ctx.NewState<State>();
  if (!state) return Status::kOutOfMemory;
  state->isa = &CurrentPointwiseS8();
  if (Status s = ctx.SetOutput(0, DType::kI8, ctx.in(0).rank, ctx.in(0).dims); s != Status::kOk) return s;
  return ReadParams(ctx, ctx.out(0), state);
}

Status RunQuantize(const Run& ctx) {
  const auto& s = ctx.state<State>();
  const float* x = ctx.in(0).as<float>();
  int8_t* out = ctx.out(0).as<int8_t>();
  ctx.ParallelFor(ctx.out(0).size(), 8192, [&](int64_t begin, int64_t end, int) {
    s.isa->Quantize(x + begin, s.scale, s.zero_point, out + begin, end - begin);
  });
  return Status::kOk;
}

Status PrepareDequantize(Prepare& ctx) {
  auto* state = ctx.NewState<State>();
  if (!state) return Status::kOutOfMemory;
  state->isa = &CurrentPointwiseS8();
  if (Status s = ctx.SetOutput(0, DType::kF32, ctx.in(0).rank, ctx.in(0).dims); s != Status::kOk) return s;
  return ReadParams(ctx, ctx.in(0), state);
}

Status RunDequantizeI8(const Run& ctx) {
  const auto& s = ctx.state<State>();
  const int8_t* x = ctx.in(0).as<int8_t>();
  float* out = ctx.out(0).as<float>();
  ctx.ParallelFor(ctx.out(0).size(), 8192, [&](int64_t begin, int64_t end, int) {
    s.isa->Dequantize(x + begin, s.scale, s.zero_point, out + begin, end - begin);
  });
  return Status::kOk;
}

Status RunDequantizeI32(const Run& ctx) {
  const auto& s = ctx.state<State>();
  const int32_t* x = ctx.in(0).as<int32_t>();
  float* out = ctx.out(0).as<float>();
  const auto zero_point = static_cast<uint32_t>(s.zero_point);
  for (int64_t i = 0; i < ctx.out(0).size(); ++i)
    out[i] = static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(x[i]) - zero_point)) * s.scale;
  return Status::kOk;
}

Status PrepareLookup(Prepare& ctx) {
  const Tensor& table = ctx.in(1);
  if (table.dtype != DType::kI8 || table.rank != 1 || table.dims[0] != 256)
    return ctx.Fail("table: got %s of %lld values, expected i8 of 256", NameOf(table.dtype),
                    static_cast<long long>(table.size()));
  return ctx.SetOutput(0, DType::kI8, ctx.in(0).rank, ctx.in(0).dims);
}

Status RunLookup(const Run& ctx) {
  const int8_t *x = ctx.in(0).as<int8_t>(), *table = ctx.in(1).as<int8_t>() + 128;
  int8_t* out = ctx.out(0).as<int8_t>();
  ctx.ParallelFor(ctx.out(0).size(), 16384, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) out[i] = table[x[i]];
  });
  return Status::kOk;
}

}  // namespace

const Kernel quantize_f32 = {PrepareQuantize, RunQuantize};
const Kernel dequantize_i8 = {PrepareDequantize, RunDequantizeI8};
const Kernel dequantize_i32 = {PrepareDequantize, RunDequantizeI32};
const Kernel lookup_table_i8 = {PrepareLookup, RunLookup};

}  // namespace rillet
