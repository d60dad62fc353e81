// Conv2D: implicit GEMM. A strip of the image is copied once into a zero-padded buffer (not at all where nothing is
// padded); a row of A is then a pixel's window, reached through a table of offsets: one kernel row of adjacent columns
// is one tap. A 1x1 window with stride 1 is a plain product.
#include <algorithm>

#include "gemm_f32.h"
#include "image_strip.h"

namespace rillet {
namespace {

constexpr int64_t kStripFloats = 48 * 1024;  // of copied input: a strip stays in the second-level cache
constexpr int64_t kZeroTap[1] = {0};

struct State {
  WindowAxis rows, columns;
  int64_t images = 0, channels = 0, filters = 0, groups = 1;
  bool plain = false;   // a product without windows
  bool padded = false;  // strips are copied
  int64_t strip_rows = 1, strips = 1;
  int64_t strip_columns = 0;  // of the buffer that a window walks over
  const int64_t* row_offset = nullptr;
  Gemm gemm;                      // of one group
  const float* packed = nullptr;  // of a constant filter: [group] packed B
  int64_t packed_floats = 0;      // workspace: packed B (unless constant), then per thread strip and scratch
  int64_t strip_floats = 0, thread_floats = 0;

  int64_t group_packed() const { return Aligned(gemm.packed_size()); }
};

void PackFilter(const State& s, const float* w, int64_t group, int64_t begin, int64_t end, float* packed) {
  PackB(s.gemm, w + group * s.gemm.n, s.filters, false, begin, end, packed + group * s.group_packed());
}

Status CheckShapes(Prepare& ctx, const Tensor& x, const Tensor& w, int64_t groups) {
  const auto ll = [](int64_t v) { return static_cast<long long>(v); };
  if (x.rank != 4 || w.rank != 4)
    return ctx.Fail("rank of x and w: got %d and %d, expected 4 (NHWC, HWIO)", x.rank, w.rank);
  if (w.dtype != DType::kF32) return ctx.Fail("dtypes of the inputs differ: got %s, expected f32", NameOf(w.dtype));
  if (groups < 1) return ctx.Fail("groups: got %lld, expected at least 1", ll(groups));
  if (x.dims[3] % groups || w.dims[3] % groups)
    return ctx.Fail("groups must divide the channels: got %lld and %lld, expected multiples of %lld", ll(x.dims[3]),
                    ll(w.dims[3]), ll(groups));
  if (w.dims[2] != x.dims[3] / groups)
    return ctx.Fail("image and filter disagree on input channels: got %lld a group, expected %lld", ll(w.dims[2]),
                    ll(x.dims[3] / groups));
  if (ctx.Has(2) && (ctx.in(2).rank != 1 || ctx.in(2).dims[0] != w.dims[3] || ctx.in(2).dtype != DType::kF32))
    return ctx.Fail("length of the bias: got %lld, expected %lld", ll(ctx.in(2).size()), ll(w.dims[3]));
  return Status::kOk;
}

// Where each pixel's window and each tap start in a strip.
Status PrepareOffsets(Prepare& ctx, State* s, int64_t* taps, int64_t* depth) {
  const int64_t line = s->strip_columns * s->channels, pixels = s->strip_rows * s->columns.output;
  const bool adjacent = s->groups == 1 && s->columns.dilation == 1;  // a kernel row is one run of floats
  *taps = adjacent ? s->rows.kernel : s->rows.kernel * s->columns.kernel;
  *depth = adjacent ? s->columns.kernel * s->channels : s->channels / s->groups;
  int64_t *offset = ctx.AllocateArray<int64_t>(pixels), *tap = ctx.AllocateArray<int64_t>(*taps);
  if (!offset || !tap) return ctx.status();
  for (int64_t i = 0; i < pixels; ++i)
    offset[i] = i / s->columns.output * s->rows.stride * line + i % s->columns.output * s->columns.stride * s->channels;
  for (int64_t t = 0; t < *taps; ++t) {
    const int64_t r = adjacent ? t : t / s->columns.kernel, c = adjacent ? 0 : t % s->columns.kernel;
    tap[t] = r * s->rows.dilation * line + c * s->columns.dilation * s->channels;
  }
  s->row_offset = offset;
  s->gemm.tap_a = tap;
  return Status::kOk;
}

Status PrepareWindows(Prepare& ctx, State* s) {
  int64_t taps = 1, depth = s->channels;
  s->plain = s->groups == 1 && s->rows.kernel * s->columns.kernel == 1 && s->rows.stride == 1 &&
             s->columns.stride == 1 && !(s->rows.before | s->rows.after | s->columns.before | s->columns.after);
  s->gemm.tap_a = kZeroTap;
  if (!s->plain) {
    s->padded = s->rows.before || s->rows.after || s->columns.before || s->columns.after;
    s->strip_columns = s->padded ? (s->columns.output - 1) * s->columns.stride + s->columns.reach() : s->columns.input;
    const int64_t line = s->rows.stride * s->strip_columns * s->channels;
    s->strip_rows = StripRows(s->rows.output, line, kStripFloats, s->images, ctx.threads);
    s->strips = (s->rows.output + s->strip_rows - 1) / s->strip_rows;
    if (s->padded)
      s->strip_floats =
          Aligned(((s->strip_rows - 1) * s->rows.stride + s->rows.reach()) * s->strip_columns * s->channels);
    if (Status st = PrepareOffsets(ctx, s, &taps, &depth); st != Status::kOk) return st;
    s->gemm.row_block = s->strip_rows * s->columns.output;
  }
  return PlanK(ctx, taps, depth, 1024, taps * depth, nullptr, &s->gemm.plan);
}

Status PrepareMemory(Prepare& ctx, State* s) {
  const int64_t all = s->group_packed() * s->groups;
  if (ctx.in(1).constant) {
    float* packed = ctx.AllocateArray<float>(all);
    if (!packed) return ctx.status();
    for (int64_t g = 0; g < s->groups; ++g) PackFilter(*s, ctx.in(1).as<float>(), g, 0, s->gemm.panels(), packed);
    s->packed = packed;
  } else {
    s->packed_floats = all;
  }
  const int64_t rows = s->plain ? s->images * s->rows.output * s->columns.output : s->strip_rows * s->columns.output;
  s->thread_floats = s->strip_floats + Aligned(s->gemm.scratch_size(rows));
  ctx.NeedWorkspace(static_cast<size_t>(s->packed_floats + s->thread_floats * ctx.threads) * sizeof(float));
  return Status::kOk;
}

Status PrepareConv2D(Prepare& ctx) {
  WindowAttrs attrs;
  ActivationBounds bounds;
  if (Status s = ReadWindowAttrs(ctx, &attrs); s != Status::kOk) return s;
  if (Status s = ReadActivation(ctx, &bounds); s != Status::kOk) return s;
  const int64_t groups = ctx.Int("groups");
  if (ctx.status() != Status::kOk) return ctx.status();
  const Tensor &x = ctx.in(0), &w = ctx.in(1);
  if (Status s = CheckShapes(ctx, x, w, groups); s != Status::kOk) return s;
  State* s = ctx.NewState<State>();
  if (!s) return ctx.status();
  if (Status st = ResolveWindow(ctx, attrs, 0, x.dims[1], w.dims[0], &s->rows); st != Status::kOk) return st;
  if (Status st = ResolveWindow(ctx, attrs, 1, x.dims[2], w.dims[1], &s->columns); st != Status::kOk) return st;
  const int64_t dims[4] = {x.dims[0], s->rows.output, s->columns.output, w.dims[3]};
  if (Status st = ctx.SetOutput(0, DType::kF32, 4, dims); st != Status::kOk) return st;
  s->images = x.dims[0];
  s->channels = x.dims[3];
  s->filters = w.dims[3];
  s->groups = groups;
  if (ctx.out(0).size() == 0) return Status::kOk;
  if (Status st = CheckPaddedSize(ctx, 1, s->rows.padded(), s->columns.padded(), s->channels); st != Status::kOk)
    return st;
  s->gemm.n = s->filters / groups;
  s->gemm.kernels = &GemmFor(s->gemm.n, false);
  s->gemm.bounds = bounds;
  if (Status st = PrepareWindows(ctx, s); st != Status::kOk) return st;
  return PrepareMemory(ctx, s);
}

// One strip of one image, panels [begin, end) of each group.
void RunStrip(const State& s, const float* image, const float* packed, const float* bias, float* y, int64_t strip,
              float* buffer, float* scratch, int64_t begin, int64_t end) {
  const int64_t row = strip * s.strip_rows, rows = std::min(s.strip_rows, s.rows.output - row);
  const int64_t top = row * s.rows.stride - s.rows.before;
  const float* a = buffer ? buffer : image + top * s.columns.input * s.channels;
  for (int64_t g = 0; g < s.groups; ++g) {
    GemmBlock(s.gemm, {a + g * s.gemm.plan.k / (s.rows.kernel * s.columns.kernel), 0, s.row_offset},
              {packed + g * s.group_packed()}, y + row * s.columns.output * s.filters + g * s.gemm.n, s.filters,
              bias ? bias + g * s.gemm.n : nullptr, 0, rows * s.columns.output, begin, end, scratch);
  }
}

void RunWindows(const Run& run, const State& s, const float* packed, const float* bias, float* workspace) {
  const float* x = run.in(0).as<float>();
  float* y = run.out(0).as<float>();
  const int64_t strips = s.images * s.strips, panels = s.gemm.panels();
  const int64_t image_in = s.rows.input * s.columns.input * s.channels;
  const int64_t image_out = s.rows.output * s.columns.output * s.filters;
  // Too few strips for the threads: the panels are split too.
  const int64_t parts = strips < run.pool->threads() ? std::min<int64_t>(panels, run.pool->threads()) : 1;
  run.ParallelFor(strips * parts, 1, [&](int64_t begin, int64_t end, int thread) {
    float* mine = workspace + thread * s.thread_floats;
    int64_t held = -1;  // the strip that the buffer holds
    for (int64_t item = begin; item < end; ++item) {
      const int64_t unit = item / parts, part = item % parts, n = unit / s.strips, strip = unit % s.strips;
      const float* image = x + n * image_in;
      if (s.padded && unit != held) {
        const int64_t row = strip * s.strip_rows, rows = std::min(s.strip_rows, s.rows.output - row);
        const StripWindow window = {row * s.rows.stride - s.rows.before, -s.columns.before,
                                    (rows - 1) * s.rows.stride + s.rows.reach(), s.strip_columns};
        CopyStrip(image, s.rows.input, s.columns.input, s.channels, window, mine);
        held = unit;
      }
      RunStrip(s, image, packed, bias, y + n * image_out, strip, s.padded ? mine : nullptr, mine + s.strip_floats,
               panels * part / parts, panels * (part + 1) / parts);
    }
  });
}

Status RunConv2D(const Run& run) {
  const State& s = run.state<State>();
  if (run.out(0).size() == 0) return Status::kOk;
  float* workspace = static_cast<float*>(run.workspace);
  const float* bias = run.Has(2) ? run.in(2).as<float>() : nullptr;
  const float* packed = s.packed;
  if (!packed) {
    const float* w = run.in(1).as<float>();
    const int64_t panels = s.gemm.panels(), panel = std::max<int64_t>(1, s.gemm.plan.k * s.gemm.columns());
    run.ParallelFor(s.groups * panels, std::max<int64_t>(1, 65536 / panel), [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) PackFilter(s, w, i / panels, i % panels, i % panels + 1, workspace);
    });
    packed = workspace;
    workspace += s.packed_floats;
  }
  if (!s.plain) {
    RunWindows(run, s, packed, bias, workspace);
    return Status::kOk;
  }
  const int64_t rows = s.images * s.rows.output * s.columns.output;
  RunGemm(run, s.gemm, rows, {run.in(0).as<float>(), s.channels, nullptr}, {packed}, run.out(0).as<float>(), s.filters,
          bias, workspace);
  return Status::kOk;
}

}  // namespace

const Kernel conv2d_f32 = {PrepareConv2D, RunConv2D};

}  // namespace rillet
