// Conv2DTranspose on int8. Output rows y = q * stride + p of one phase p read the image at q + constant, tap by tap: so
// each pair of phases is a convolution of stride 1 with its own few taps, and a product like any other.
#include "products_s8.h"

namespace rillet {
namespace {

constexpr int64_t kMaxPhases = 4096;

// One axis: output o gets x[i] * w[t] where i * stride - before + t * dilation == o.
struct Axis {
  WindowAxis window;  // of the convolution that this op undoes: its input is our output
  int64_t phases = 0;
  int64_t before = 0, padded = 0;  // padding in front of the image, padded size

  int64_t numerator(int64_t phase, int64_t tap) const { return phase + window.before - tap * window.dilation; }
  bool reads(int64_t phase, int64_t tap) const { return numerator(phase, tap) % window.stride == 0; }
  int64_t offset(int64_t phase, int64_t tap) const { return numerator(phase, tap) / window.stride; }
  int64_t count(int64_t phase) const { return (window.input - phase + window.stride - 1) / window.stride; }
};

struct Phase {
  const PackedS8* packed;  // one a group
  const int64_t* taps;     // tap_count a group
};

struct State {
  const GemmS8* isa;
  Axis rows, cols;
  int64_t images, channels, groups, n;  // n: output channels a group
  int32_t padding;                      // the zero point in the ISA's form
  int64_t row_bytes, plane_bytes, pointer_bytes;
  const Phase* phases;
};

Status ResolveAxis(Prepare& ctx, const WindowAttrs& window, int axis, int64_t size, int64_t kernel, int64_t extra,
                   Axis* out) {
  constexpr int64_t kLimit = int64_t{1} << 31;  // sums of products of two fit 64 bits
  if (kernel < 1) return ctx.Fail("the window is empty");
  if (size >= kLimit || kernel >= kLimit)
    return ctx.Fail("image or window too large: got %lld", static_cast<long long>(size > kernel ? size : kernel));
  const int64_t stride = window.stride[axis], reach = (kernel - 1) * window.dilation[axis] + 1;
  int64_t n = size * stride;
  if (window.padding == Padding::kValid) n += reach > stride ? reach - stride : 0;
  if (window.padding == Padding::kExplicit)
    n = (size - 1) * stride + reach - window.pads[axis][0] - window.pads[axis][1] + extra;
  if (size == 0) n = 0;
  if (n < 1) return n < 0 || size ? ctx.Fail("pads leave no output: got %lld", static_cast<long long>(n)) : Status::kOk;
  if (Status s = ResolveWindow(ctx, window, axis, n, kernel, &out->window); s != Status::kOk) return s;
  if (out->window.output != size)
    return ctx.Fail("an image of %lld does not come from an output of %lld", static_cast<long long>(size),
                    static_cast<long long>(n));
  out->phases = stride < n ? stride : n;
  int64_t last = size - 1;
  for (int64_t p = 0; p < out->phases; ++p)
    for (int64_t t = 0; t < kernel; ++t) {
      if (!out->reads(p, t)) continue;
      const int64_t first = out->offset(p, t), end = first + out->count(p) - 1;
      if (-first > out->before) out->before = -first;
      if (end > last) last = end;
    }
  out->padded = out->before + last + 1;
  return Status::kOk;
}

// Weights of the taps that a pair of phases reads, packed for each group.
Status PackPhase(Prepare& ctx, const State& s, int64_t py, int64_t px, const ConstantsS8& c, const TensorQuant& x,
                 const OutputQuant& y, Phase* phase) {
  const int64_t kernel_cols = s.cols.window.kernel, all = s.rows.window.kernel * kernel_cols;
  const int64_t depth = s.channels / s.groups;
  auto* taps = ctx.AllocateArray<int64_t>(all * s.groups + 1);
  auto* packed = ctx.AllocateArray<PackedS8>(s.groups);
  auto* w = ctx.AllocateArray<int8_t>(all * depth * s.n + 1);
  if (!taps || !packed || !w) return Status::kOutOfMemory;
  phase->taps = taps;
  phase->packed = packed;
  for (int64_t g = 0; g < s.groups; ++g) {
    int64_t count = 0;
    for (int64_t t = 0; t < all; ++t) {
      const int64_t r = t / kernel_cols, q = t % kernel_cols;
      if (!s.rows.reads(py, r) || !s.cols.reads(px, q)) continue;
      *taps++ =
          s.rows.offset(py, r) * s.row_bytes + (s.cols.offset(px, q) * s.channels + g * depth) * s.isa->form_bytes;
      for (int64_t d = 0; d < depth; ++d)
        for (int64_t o = 0; o < s.n; ++o)
          w[(count * depth + d) * s.n + o] = c.weights[(t * s.n + o) * s.channels + g * depth + d];
      ++count;
    }
    const WeightsS8 part = {w, count, depth, s.n, s.n, 1, c.bias ? c.bias + g * s.n : nullptr, c.scale, c.scale_count};
    if (Status status = PackGemm(ctx, *s.isa, part, x, y, packed + g); status != Status::kOk) return status;
  }
  return Status::kOk;
}

Status PreparePhases(Prepare& ctx, const TensorQuant& x, State* s) {
  OutputQuant y;
  ConstantsS8 c;
  if (Status status = ReadOutput(ctx, ctx.out(0), true, &y); status != Status::kOk) return status;
  if (Status status = ReadConstants(ctx, 1, 2, s->n * s->groups, &c); status != Status::kOk) return status;
  const int64_t count = s->rows.phases * s->cols.phases;
  if (count > kMaxPhases)
    return ctx.Fail("strides: got %lld phases, expected at most %lld", static_cast<long long>(count),
                    static_cast<long long>(kMaxPhases));
  auto* phases = ctx.AllocateArray<Phase>(count);
  if (!phases) return Status::kOutOfMemory;
  s->phases = phases;
  for (int64_t i = 0; i < count; ++i)
    if (Status status = PackPhase(ctx, *s, i / s->cols.phases, i % s->cols.phases, c, x, y, phases + i);
        status != Status::kOk)
      return status;
  return Status::kOk;
}

Status PlanPlane(Prepare& ctx, State* s) {
  int64_t bytes = 0;
  s->row_bytes = 0;
  if (__builtin_mul_overflow(s->cols.padded, s->channels * s->isa->form_bytes, &s->row_bytes) ||
      __builtin_mul_overflow(s->rows.padded, s->row_bytes, &bytes) || bytes > int64_t{1} << 40)
    return ctx.Fail("the padded image is too large");
  s->plane_bytes = (bytes + 127) / 64 * 64;  // inner loops may read 64 bytes beyond the last value
  s->pointer_bytes = (s->cols.count(0) * static_cast<int64_t>(sizeof(uint8_t*)) + 63) / 64 * 64;
  ctx.NeedWorkspace(static_cast<size_t>(s->plane_bytes + s->pointer_bytes * ctx.threads));
  return Status::kOk;
}

Status PrepareTranspose(Prepare& ctx) {
  const Tensor &x = ctx.in(0), &w = ctx.in(1);
  if (x.rank != 4 || w.rank != 4)
    return ctx.Fail("image and filter: got ranks %d and %d, expected 4 and 4 (NHWC, HWOI)", x.rank, w.rank);
  WindowAttrs window;
  TensorQuant quant;
  if (Status s = ReadWindowAttrs(ctx, &window); s != Status::kOk) return s;
  if (Status s = ReadQuant(ctx, x, "input 0", &quant); s != Status::kOk) return s;
  const int64_t groups = ctx.Int("groups");
  const Span<int64_t> extra = ctx.Ints("output_padding");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (extra.size != 2)
    return ctx.Fail("output_padding: got %lld numbers, expected 2", static_cast<long long>(extra.size));
  for (int i = 0; i < 2; ++i)
    if (extra[i] < 0 || extra[i] >= window.stride[i] || (extra[i] && window.padding != Padding::kExplicit))
      return ctx.Fail("output_padding: got %lld, expected 0, or with EXPLICIT less than the stride",
                      static_cast<long long>(extra[i]));
  if (w.dims[3] != x.dims[3] || groups < 1 || x.dims[3] % groups || groups > x.dims[3])
    return ctx.Fail("filter takes %lld channels in %lld groups, image has %lld", static_cast<long long>(w.dims[3]),
                    static_cast<long long>(groups), static_cast<long long>(x.dims[3]));
  auto* state = ctx.NewState<State>();
  if (!state) return Status::kOutOfMemory;
  state->isa = &CurrentGemmS8();
  state->images = x.dims[0];
  state->channels = x.dims[3];
  state->groups = groups;
  state->n = w.dims[2];
  state->padding = quant.zero_point + state->isa->form_offset;
  for (int axis = 0; axis < 2; ++axis)
    if (Status s = ResolveAxis(ctx, window, axis, x.dims[1 + axis], w.dims[axis], extra[axis],
                               axis ? &state->cols : &state->rows);
        s != Status::kOk)
      return s;
  const int64_t dims[4] = {x.dims[0], state->rows.window.input, state->cols.window.input, w.dims[2] * groups};
  if (Status s = ctx.SetOutput(0, DType::kI8, 4, dims); s != Status::kOk) return s;
  if (ctx.out(0).size() == 0) return Status::kOk;
  if (Status s = PlanPlane(ctx, state); s != Status::kOk) return s;
  return PreparePhases(ctx, quant, state);
}

void FillPlane(const Run& ctx, const State& s, const int8_t* image, uint8_t* plane) {
  const int64_t pixel = s.channels * s.isa->form_bytes, row = s.cols.window.output * s.channels;
  ctx.ParallelFor(s.rows.padded, 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t y = begin; y < end; ++y) {
      uint8_t* to = plane + y * s.row_bytes;
      if (s.isa->form_bytes == 1) std::memset(to, s.padding, static_cast<size_t>(s.row_bytes));
      else
        for (int64_t i = 0; i < s.row_bytes / 2; ++i)
          reinterpret_cast<int16_t*>(to)[i] = static_cast<int16_t>(s.padding);
      const int64_t from = y - s.rows.before;
      if (from < 0 || from >= s.rows.window.output) continue;
      if (s.isa->Form) s.isa->Form(to + s.cols.before * pixel, image + from * row, row);
      else std::memcpy(to + s.cols.before * pixel, image + from * row, static_cast<size_t>(row));
    }
  });
}

void RunRow(const State& s, const uint8_t* plane, int64_t y, const uint8_t** pointers, int8_t* out) {
  const int64_t stride = s.rows.window.stride, pixel = s.channels * s.isa->form_bytes, n = s.n * s.groups;
  const uint8_t* row = plane + (y / stride + s.rows.before) * s.row_bytes + s.cols.before * pixel;
  for (int64_t i = 0; i < s.cols.count(0); ++i) pointers[i] = row + i * pixel;
  for (int64_t px = 0; px < s.cols.phases; ++px) {
    const Phase& phase = s.phases[y % stride * s.cols.phases + px];
    for (int64_t g = 0; g < s.groups; ++g) {
      const PackedS8& p = phase.packed[g];
      s.isa->Run({pointers, s.cols.count(px), phase.taps + g * p.tap_count, p.tap_count, p.depth, p.b, p.bias, p.scale,
                  p.n, 0, p.panels, p.epilogue, out + px * n + g * s.n, s.cols.window.stride * n});
    }
  }
}

Status RunTranspose(const Run& ctx) {
  if (ctx.out(0).size() == 0) return Status::kOk;
  const auto& s = ctx.state<State>();
  auto* plane = static_cast<uint8_t*>(ctx.workspace);
  const int64_t height = s.rows.window.input, row = s.cols.window.input * s.n * s.groups;
  for (int64_t image = 0; image < s.images; ++image) {
    FillPlane(ctx, s, ctx.in(0).as<int8_t>() + image * s.rows.window.output * s.cols.window.output * s.channels, plane);
    int8_t* out = ctx.out(0).as<int8_t>() + image * height * row;
    ctx.ParallelFor(height, 1, [&](int64_t begin, int64_t end, int thread) {
      auto* pointers = reinterpret_cast<const uint8_t**>(plane + s.plane_bytes + thread * s.pointer_bytes);
      for (int64_t y = begin; y < end; ++y) RunRow(s, plane, y, pointers, out + y * row);
    });
  }
  return Status::kOk;
}

}  // namespace

const Kernel conv2d_transpose_i8 = {PrepareTranspose, RunTranspose};

}  // namespace rillet
