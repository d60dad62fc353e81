// Conv2D on int8: implicit GEMM over padded strips; a filter row of kw * C contiguous values is one tap.
#include "products_s8.h"

namespace rillet {
namespace {

struct State {
  const GemmS8* isa;
  StripS8 strip;
  int64_t images, groups, n;
  const PackedS8* packed;  // one a group
  const int64_t* taps;     // tap_count a group
  bool rows_only;          // a 1 x 1 filter over every pixel: a matrix product
};

// Taps are filter rows where their columns lie side by side in the strip, else single filter positions.
struct TapPlan {
  int64_t kernel[2], depth, tap_count;
  bool whole_rows;
};

Status PrepareTaps(Prepare& ctx, const TapPlan& plan, State* state) {
  auto* taps = ctx.AllocateArray<int64_t>(plan.tap_count * state->groups);
  if (!taps) return Status::kOutOfMemory;
  const StripS8& s = state->strip;
  const int64_t columns = plan.whole_rows ? 1 : plan.kernel[1];
  for (int64_t g = 0; g < state->groups; ++g)
    for (int64_t r = 0; r < plan.kernel[0]; ++r)
      for (int64_t c = 0; c < columns; ++c)
        taps[g * plan.tap_count + r * columns + c] = r * s.rows.dilation * s.row_bytes +
                                                     c * s.cols.dilation * s.pixel_bytes +
                                                     g * (s.channels / state->groups) * s.form_bytes;
  state->taps = taps;
  return Status::kOk;
}

Status PrepareWeights(Prepare& ctx, const TapPlan& plan, const TensorQuant& x, State* state) {
  OutputQuant y;
  ConstantsS8 c;
  if (Status s = ReadOutput(ctx, ctx.out(0), true, &y); s != Status::kOk) return s;
  if (Status s = ReadConstants(ctx, 1, 3, state->n, &c); s != Status::kOk) return s;
  auto* packed = ctx.AllocateArray<PackedS8>(state->groups);
  if (!packed) return Status::kOutOfMemory;
  const int64_t n = state->n / state->groups;
  for (int64_t g = 0; g < state->groups; ++g) {
    const bool shared = c.scale_count == 1;
    const WeightsS8 w = {c.weights + g * n,
                         plan.tap_count,
                         plan.depth,
                         n,
                         state->n,
                         1,
                         c.bias ? c.bias + g * n : nullptr,
                         c.scale + (shared ? 0 : g * n),
                         shared ? 1 : n};
    if (Status s = PackGemm(ctx, *state->isa, w, x, y, packed + g); s != Status::kOk) return s;
  }
  state->packed = packed;
  return Status::kOk;
}

Status PrepareConv2D(Prepare& ctx) {
  const Tensor &x = ctx.in(0), &w = ctx.in(1);
  if (x.rank != 4 || w.rank != 4)
    return ctx.Fail("image and filter: got ranks %d and %d, expected 4 and 4 (NHWC, HWIO)", x.rank, w.rank);
  WindowAttrs window;
  TensorQuant quant;
  if (Status s = ReadWindowAttrs(ctx, &window); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, x, "input 0", &quant); s != Status::kOk) return s;
  const int64_t groups = ctx.Int("groups");
  if (ctx.status() != Status::kOk) return ctx.status();
  const bool fits = w.dims[2] == 0 ? x.dims[3] == 0 : x.dims[3] % w.dims[2] == 0 && x.dims[3] / w.dims[2] == groups;
  if (groups < 1 || !fits || w.dims[3] % groups)
    return ctx.Fail("filter takes %lld channels in %lld groups, image has %lld", static_cast<long long>(w.dims[2]),
                    static_cast<long long>(groups), static_cast<long long>(x.dims[3]));
  State* state = ctx.NewState<State>();
  if (!state) return Status::kOutOfMemory;
  state->isa = &CurrentGemmS8();
  state->images = x.dims[0];
  state->groups = groups;
  state->n = w.dims[3];
  StripS8& strip = state->strip;
  for (int axis = 0; axis < 2; ++axis)
    if (Status s = ResolveWindow(ctx, window, axis, x.dims[1 + axis], w.dims[axis], axis ? &strip.cols : &strip.rows);
        s != Status::kOk)
      return s;
  const int64_t dims[4] = {x.dims[0], strip.rows.output, strip.cols.output, w.dims[3]};
  if (Status s = ctx.SetOutput(0, DType::kI8, 4, dims); s != Status::kOk) return s;
  strip.channels = x.dims[3];
  strip.copies = 1;
  strip.form = state->isa->Form;
  strip.form_bytes = state->isa->form_bytes;
  strip.padding = quant.zero_point + state->isa->form_offset;
  const bool whole_rows = groups == 1 && window.dilation[1] == 1;
  const TapPlan plan = {{w.dims[0], w.dims[1]},
                        whole_rows ? w.dims[1] * w.dims[2] : w.dims[2],
                        whole_rows ? w.dims[0] : w.dims[0] * w.dims[1],
                        whole_rows};
  if (ctx.out(0).size() == 0) return Status::kOk;
  if (Status s = PlanStrip(ctx, &strip); s != Status::kOk) return s;
  if (Status s = PrepareTaps(ctx, plan, state); s != Status::kOk) return s;
  if (Status s = PrepareWeights(ctx, plan, quant, state); s != Status::kOk) return s;
  state->rows_only = groups == 1 && w.dims[0] == 1 && w.dims[1] == 1 && strip.rows.output == strip.rows.input &&
                     strip.cols.output == strip.cols.input && strip.rows.before == 0 && strip.cols.before == 0 &&
                     window.stride[0] == 1 && window.stride[1] == 1;
  const int64_t bytes = state->rows_only ? WorkspaceOfRows(*state->isa, state->packed[0]) : strip.bytes;
  ctx.NeedWorkspace(static_cast<size_t>(bytes * ctx.threads));
  return Status::kOk;
}

Status RunConv2D(const Run& ctx) {
  if (ctx.out(0).size() == 0) return Status::kOk;
  const State& state = ctx.state<State>();
  const StripS8& strip = state.strip;
  const int8_t* x = ctx.in(0).as<int8_t>();
  int8_t* out = ctx.out(0).as<int8_t>();
  if (state.rows_only) {
    RunRows(ctx, *state.isa, state.packed[0], x, state.images * strip.rows.output * strip.cols.output, out);
    return Status::kOk;
  }
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
      for (int64_t g = 0; g < state.groups; ++g) {
        const PackedS8& p = state.packed[g];
        state.isa->Run({rows, (bottom - top) * strip.cols.output, state.taps + g * p.tap_count, p.tap_count, p.depth,
                        p.b, p.bias, p.scale, p.n, 0, p.panels, p.epilogue,
                        out + y * strip.cols.output * state.n + g * p.n, state.n});
      }
      y += bottom - top;
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel conv2d_i8 = {PrepareConv2D, RunConv2D};

}  // namespace rillet
