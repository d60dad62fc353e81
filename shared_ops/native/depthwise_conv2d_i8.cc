// DepthwiseConv2D on int8: direct, over padded strips, vectorised over channels. Output channel c * M + m.
#include "products_s8.h"

namespace rillet {
namespace {

struct State {
  const DepthwiseS8* isa;
  StripS8 strip;
  PackedS8 packed;
  const int64_t* taps;
  int64_t images;
  bool by_columns;  // the ISA's loop for 3 x 3 filters
};

// Weights for Run3x3: taps column by column, a fourth of zeros after each three.
const int8_t* ByColumns(Prepare& ctx, const int8_t* w, int64_t n) {
  auto* ordered = ctx.AllocateArray<int8_t>(12 * n);
  for (int64_t t = 0; ordered && t < 12; ++t)
    if (t % 4 < 3) std::memcpy(ordered + t * n, w + (t % 4 * 3 + t / 4) * n, static_cast<size_t>(n));
  return ordered;
}

Status PrepareWeights(Prepare& ctx, const TensorQuant& x, State* state) {
  const Tensor& w = ctx.in(1);
  const StripS8& strip = state->strip;
  const int64_t n = w.dims[2] * w.dims[3], tap_count = w.dims[0] * w.dims[1];
  auto* taps = ctx.AllocateArray<int64_t>(tap_count);
  if (!taps) return Status::kOutOfMemory;
  for (int64_t r = 0; r < w.dims[0]; ++r)
    for (int64_t c = 0; c < w.dims[1]; ++c)
      taps[r * w.dims[1] + c] = r * strip.rows.dilation * strip.row_bytes + c * strip.cols.dilation * strip.pixel_bytes;
  state->taps = taps;
  OutputQuant y;
  ConstantsS8 c;
  if (Status s = ReadOutput(ctx, ctx.out(0), true, &y); s != Status::kOk) return s;
  if (Status s = ReadConstants(ctx, 1, 2, n, &c); s != Status::kOk) return s;
  WeightsS8 weights = {c.weights, tap_count, 1, n, n, 1, c.bias, c.scale, c.scale_count};
  state->by_columns = state->isa->Run3x3 && w.dims[0] == 3 && w.dims[1] == 3 && strip.cols.dilation == 1;
  if (state->by_columns) {
    weights.data = ByColumns(ctx, c.weights, n);
    weights.tap_count = 12;
    if (!weights.data) return Status::kOutOfMemory;
  }
  return PackDepthwise(ctx, *state->isa, weights, x, y, &state->packed);
}

Status PrepareDepthwise(Prepare& ctx) {
  const Tensor &x = ctx.in(0), &w = ctx.in(1);
  if (x.rank != 4 || w.rank != 4)
    return ctx.Fail("image and filter: got ranks %d and %d, expected 4 and 4 (NHWC, HWCM)", x.rank, w.rank);
  if (w.dims[2] != x.dims[3])
    return ctx.Fail("filter has %lld channels, image has %lld", static_cast<long long>(w.dims[2]),
                    static_cast<long long>(x.dims[3]));
  WindowAttrs window;
  TensorQuant quant;
  if (Status s = ReadWindowAttrs(ctx, &window); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, x, "input 0", &quant); s != Status::kOk) return s;
  State* state = ctx.NewState<State>();
  if (!state) return Status::kOutOfMemory;
  state->isa = &CurrentDepthwiseS8();
  state->images = x.dims[0];
  StripS8& strip = state->strip;
  for (int axis = 0; axis < 2; ++axis)
    if (Status s = ResolveWindow(ctx, window, axis, x.dims[1 + axis], w.dims[axis], axis ? &strip.cols : &strip.rows);
        s != Status::kOk)
      return s;
  const int64_t dims[4] = {x.dims[0], strip.rows.output, strip.cols.output, w.dims[2] * w.dims[3]};
  if (Status s = ctx.SetOutput(0, DType::kI8, 4, dims); s != Status::kOk) return s;
  if (ctx.out(0).size() == 0) return Status::kOk;
  strip.channels = x.dims[3];
  strip.copies = w.dims[3];
  strip.form = state->isa->Form;
  strip.form_bytes = 1;
  strip.padding = quant.zero_point + state->isa->form_offset;
  if (Status s = PlanStrip(ctx, &strip); s != Status::kOk) return s;
  ctx.NeedWorkspace(static_cast<size_t>(strip.bytes * ctx.threads));
  return PrepareWeights(ctx, quant, state);
}

// `pixels`: one pointer an output pixel of `count` rows.
void RunStrip(const State& state, const uint8_t* const* pixels, int64_t count, int8_t* out) {
  const StripS8& strip = state.strip;
  const PackedS8& p = state.packed;
  if (!state.by_columns) {
    state.isa->Run(
        {pixels, count * strip.cols.output, state.taps, p.tap_count, p.n, p.b, p.bias, p.scale, p.epilogue, out, p.n});
    return;
  }
  for (int64_t y = 0; y < count; ++y)
    state.isa->Run3x3({pixels + y * strip.cols.output, 1, strip.cols.output, strip.rows.dilation * strip.row_bytes,
                       strip.pixel_bytes, strip.cols.stride, p.n, p.b, p.bias, p.scale, p.epilogue,
                       out + y * strip.cols.output * p.n});
}

Status RunDepthwise(const Run& ctx) {
  if (ctx.out(0).size() == 0) return Status::kOk;
  const State& state = ctx.state<State>();
  const StripS8& strip = state.strip;
  const PackedS8& p = state.packed;
  const int8_t* x = ctx.in(0).as<int8_t>();
  int8_t* out = ctx.out(0).as<int8_t>();
  const int64_t height = strip.rows.output, image = strip.rows.input * strip.cols.input * strip.channels;
  const int64_t all = state.images * height, share = all / ctx.pool->threads();
  const int64_t grain = share < 1 ? 1 : share < strip.step ? share : strip.step;
  ctx.ParallelFor(all, grain, [&](int64_t begin, int64_t end, int thread) {
    void* buffer = static_cast<uint8_t*>(ctx.workspace) + thread * strip.bytes;
    for (int64_t y = begin; y < end;) {
      const int64_t n = y / height, top = y % height;
      int64_t bottom = top + strip.step < height ? top + strip.step : height;
      if (bottom - top > end - y) bottom = top + end - y;
      const uint8_t* const* rows = strip.Fill(x + n * image, top, bottom, buffer);
      RunStrip(state, rows, bottom - top, out + y * strip.cols.output * p.n);
      y += bottom - top;
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel depthwise_conv2d_i8 = {PrepareDepthwise, RunDepthwise};

}  // namespace rillet
