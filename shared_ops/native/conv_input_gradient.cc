#include "conv_input_gradient.h"

#include <algorithm>

#include "image_strip.h"

namespace rillet {
namespace {

constexpr int64_t kStripFloats = 48 * 1024;

// Taps of one axis that reach the pixels of a phase, and the position in dy under each for the phase's first pixel.
int64_t AxisTaps(const WindowAxis& a, int64_t first, int64_t* tap, int64_t* position) {
  int64_t n = 0;
  for (int64_t t = 0; t < a.kernel; ++t) {
    const int64_t at = first + a.before - t * a.dilation;
    if (at % a.stride) continue;
    tap[n] = t;
    position[n++] = at / a.stride;
  }
  return n;
}

struct AxisList {
  int64_t *tap, *position, count, low, high;
};

Status ListAxis(Prepare& ctx, const WindowAxis& a, int64_t first, AxisList* list) {
  list->tap = ctx.AllocateArray<int64_t>(a.kernel);
  list->position = ctx.AllocateArray<int64_t>(a.kernel);
  if (!list->tap || !list->position) return ctx.status();
  list->count = AxisTaps(a, first, list->tap, list->position);
  list->low = list->count ? list->position[list->count - 1] : 0;  // positions fall as taps rise
  list->high = list->count ? list->position[0] : 0;
  return Status::kOk;
}

Status PreparePhase(Prepare& ctx, const InputGradient& g, InputGradientPhase* p) {
  AxisList r, c;
  if (Status s = ListAxis(ctx, g.rows, p->row, &r); s != Status::kOk) return s;
  if (Status s = ListAxis(ctx, g.columns, p->column, &c); s != Status::kOk) return s;
  p->rows = (g.rows.input - p->row + g.rows.stride - 1) / g.rows.stride;
  p->columns = (g.columns.input - p->column + g.columns.stride - 1) / g.columns.stride;
  p->top = r.low;
  p->left = c.low;
  p->strip_columns = p->columns + c.high - c.low;
  p->strip_rows = StripRows(p->rows, p->strip_columns * g.filters, kStripFloats, g.images, ctx.threads);
  p->strips = (p->rows + p->strip_rows - 1) / p->strip_rows;
  p->strip_height = p->strip_rows + r.high - r.low;
  const int64_t taps = r.count * c.count, depth = g.filters / g.groups, pixels = p->strip_rows * p->columns;
  int64_t *tap_a = ctx.AllocateArray<int64_t>(std::max<int64_t>(1, taps)),
          *tap_b = ctx.AllocateArray<int64_t>(std::max<int64_t>(1, taps));
  int64_t* offset = ctx.AllocateArray<int64_t>(pixels);
  if (!tap_a || !tap_b || !offset) return ctx.status();
  for (int64_t t = 0; t < taps; ++t) {
    const int64_t i = t / c.count, j = t % c.count;
    tap_a[t] = ((r.position[i] - r.low) * p->strip_columns + c.position[j] - c.low) * g.filters;
    tap_b[t] = (r.tap[i] * g.columns.kernel + c.tap[j]) * depth;
  }
  for (int64_t i = 0; i < pixels; ++i) offset[i] = (i / p->columns * p->strip_columns + i % p->columns) * g.filters;
  p->row_offset = offset;
  p->gemm = g.gemm;
  p->gemm.tap_a = tap_a;
  p->gemm.row_block = pixels;
  return PlanK(ctx, taps, depth, 1024, g.gemm.plan.k, tap_b, &p->gemm.plan);
}

// Panels [begin, end) of one group: rows of B are taps of K channels, its columns the image's channels.
void PackFilter(const InputGradient& g, const float* w, int64_t group, int64_t begin, int64_t end, float* packed) {
  const int64_t depth = g.filters / g.groups, taps = g.rows.kernel * g.columns.kernel;
  for (int64_t t = 0; t < taps; ++t)
    PackRows(g.gemm, w + t * g.gemm.n * g.filters + group * depth, g.filters, true, t * depth, depth, begin, end,
             packed + group * g.group_packed());
}

void ScatterRows(const InputGradient& g, const InputGradientPhase& p, int64_t row, int64_t rows, const float* from,
                 float* dx) {
  const size_t bytes = static_cast<size_t>(g.channels) * sizeof(float);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < p.columns; ++j, from += g.channels) {
      const int64_t h = p.row + (row + i) * g.rows.stride, w = p.column + j * g.columns.stride;
      memcpy(dx + (h * g.columns.input + w) * g.channels, from, bytes);
    }
}

void RunStrip(const InputGradient& g, const InputGradientPhase& p, int64_t strip, const float* packed, const float* dy,
              const float* bias, float* dx, float* buffer) {
  const int64_t row = strip * p.strip_rows, rows = std::min(p.strip_rows, p.rows - row), depth = g.filters / g.groups;
  const StripWindow window = {row + p.top, p.left, p.strip_height - p.strip_rows + rows, p.strip_columns};
  CopyStrip(dy, g.rows.output, g.columns.output, g.filters, window, buffer);
  float *result = buffer + g.strip_floats, *scratch = result + g.result_floats;
  float* to = g.direct() ? dx + row * g.columns.input * g.channels : result;
  for (int64_t group = 0; group < g.groups; ++group)
    GemmBlock(p.gemm, {buffer + group * depth, 0, p.row_offset}, {packed + group * g.group_packed()},
              to + group * g.gemm.n, g.channels, bias ? bias + group * g.gemm.n : nullptr, 0, rows * p.columns, 0,
              p.gemm.panels(), scratch);
  if (!g.direct()) ScatterRows(g, p, row, rows, result, dx);
}

}  // namespace

Status PrepareInputGradient(Prepare& ctx, const Tensor& w, const ActivationBounds& bounds, InputGradient* g) {
  // Strips of dy: each pixel of a phase, and what its taps reach around it.
  if (Status s = CheckPaddedSize(ctx, 1, g->rows.input + g->rows.reach(), g->columns.input + g->columns.reach(),
                                 std::max(g->filters, g->channels));
      s != Status::kOk)
    return s;
  g->gemm.n = g->channels / g->groups;
  g->gemm.kernels = &GemmFor(g->gemm.n, false);
  g->gemm.bounds = bounds;
  g->gemm.plan.k = g->rows.kernel * g->columns.kernel * (g->filters / g->groups);
  const int64_t down = std::min(g->rows.stride, g->rows.input), across = std::min(g->columns.stride, g->columns.input);
  g->phase_count = down * across;
  g->phases = ctx.AllocateArray<InputGradientPhase>(g->phase_count);
  if (!g->phases) return ctx.status();
  int64_t scratch = 0;
  for (int64_t i = 0; i < g->phase_count; ++i) {
    InputGradientPhase* p = new (&g->phases[i]) InputGradientPhase();
    p->row = i / across;
    p->column = i % across;
    if (Status s = PreparePhase(ctx, *g, p); s != Status::kOk) return s;
    const int64_t pixels = p->strip_rows * p->columns;
    g->strips += p->strips;
    g->strip_floats = std::max(g->strip_floats, Aligned(p->strip_height * p->strip_columns * g->filters));
    if (!g->direct()) g->result_floats = std::max(g->result_floats, Aligned(pixels * g->channels));
    scratch = std::max(scratch, Aligned(p->gemm.scratch_size(pixels)));
  }
  g->thread_floats = g->strip_floats + g->result_floats + scratch;
  const int64_t all = g->group_packed() * g->groups;
  if (w.constant) {
    float* packed = ctx.AllocateArray<float>(all);
    if (!packed) return ctx.status();
    for (int64_t group = 0; group < g->groups; ++group)
      PackFilter(*g, w.as<float>(), group, 0, g->gemm.panels(), packed);
    g->packed = packed;
  } else {
    g->packed_floats = all;
  }
  ctx.NeedWorkspace(static_cast<size_t>(g->packed_floats + g->thread_floats * ctx.threads) * sizeof(float));
  return Status::kOk;
}

void RunInputGradient(const Run& run, const InputGradient& g, const float* w, const float* dy, const float* bias,
                      float* dx) {
  float* workspace = static_cast<float*>(run.workspace);
  const float* packed = g.packed;
  if (!packed) {
    const int64_t panels = g.gemm.panels(), panel = std::max<int64_t>(1, g.gemm.plan.k * g.gemm.columns());
    run.ParallelFor(g.groups * panels, std::max<int64_t>(1, 65536 / panel), [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) PackFilter(g, w, i / panels, i % panels, i % panels + 1, workspace);
    });
    packed = workspace;
    workspace += g.packed_floats;
  }
  run.ParallelFor(g.images * g.strips, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / g.strips;
      int64_t strip = i % g.strips;
      const InputGradientPhase* p = g.phases;
      for (; strip >= p->strips; ++p) strip -= p->strips;
      RunStrip(g, *p, strip, packed, dy + n * g.result_size(), bias, dx + n * g.image_size(),
               workspace + thread * g.thread_floats);
    }
  });
}

}  // namespace rillet
