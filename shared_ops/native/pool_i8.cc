// MaxPool and AvgPool on int8. Input and output share their parameters; averages are of the stored values, rounded half
// away from zero, and accumulate in int32 (a window of 2^23 elements still fits).
#include "conv_geometry.h"
#include "isa/pointwise_s8.h"
#include "requantize.h"

namespace rillet {
namespace {

struct State {
  const PointwiseS8* isa;
  WindowAxis rows, cols;
  int64_t images, channels;
  int8_t zero_point;
};

Status PreparePool(Prepare& ctx) {
  const Tensor& x = ctx.in(0);
  if (x.rank != 4) return ctx.Fail("x: got rank %d, expected 4 (NHWC)", x.rank);
  const Span<int64_t> ksize = ctx.Ints("ksize");
  if (ctx.status() != Status::kOk) return ctx.status();
  if (ksize.size != 2) return ctx.Fail("ksize: got %lld numbers, expected 2", static_cast<long long>(ksize.size));
  WindowAttrs window;
  if (Status s = ReadWindowAttrs(ctx, &window); s != Status::kOk) return s;
  auto* state = ctx.NewState<State>();
  if (!state) return Status::kOutOfMemory;
  for (int axis = 0; axis < 2; ++axis) {
    WindowAxis* w = axis ? &state->cols : &state->rows;
    if (Status s = ResolveWindow(ctx, window, axis, x.dims[1 + axis], ksize[axis], w); s != Status::kOk) return s;
    if (window.pads[axis][0] >= w->reach() || window.pads[axis][1] >= w->reach())
      return ctx.Fail("pads must be smaller than the window: got %lld and %lld, expected below %lld",
                      static_cast<long long>(window.pads[axis][0]), static_cast<long long>(window.pads[axis][1]),
                      static_cast<long long>(w->reach()));
  }
  const int64_t dims[4] = {x.dims[0], state->rows.output, state->cols.output, x.dims[3]};
  if (Status s = ctx.SetOutput(0, DType::kI8, 4, dims); s != Status::kOk) return s;
  if (Status s = CheckSameQuant(ctx, x, ctx.out(0), "output 0"); s != Status::kOk) return s;
  if (ksize[0] > (int64_t{1} << 23) / ksize[1]) return ctx.Fail("a window of more than 2^23 elements");
  state->isa = &CurrentPointwiseS8();
  state->images = x.dims[0];
  state->channels = x.dims[3];
  state->zero_point = static_cast<int8_t>(x.quant.zero_point);
  return Status::kOk;
}

// element(pointer to the channels of one element inside the window) for each.
template <class Element>
int64_t ForWindow(const State& s, const int8_t* image, int64_t y, int64_t x, const Element& element) {
  int64_t count = 0;
  for (int64_t r = s.rows.first_tap(y); r < s.rows.last_tap(y); ++r)
    for (int64_t c = s.cols.first_tap(x); c < s.cols.last_tap(x); ++c, ++count)
      element(image + (s.rows.at(y, r) * s.cols.input + s.cols.at(x, c)) * s.channels);
  return count;
}

template <class Pixel>
void ForPixels(const Run& ctx, const State& s, const Pixel& pixel) {
  const int8_t* in = ctx.in(0).as<int8_t>();
  int8_t* out = ctx.out(0).as<int8_t>();
  const int64_t pixels = s.rows.output * s.cols.output, image = s.rows.input * s.cols.input * s.channels;
  ctx.ParallelFor(s.images * pixels, 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      pixel(in + i / pixels * image, i % pixels / s.cols.output, i % s.cols.output, out + i * s.channels);
  });
}

Status RunMaxPool(const Run& ctx) {
  const auto& s = ctx.state<State>();
  ForPixels(ctx, s, [&](const int8_t* image, int64_t y, int64_t x, int8_t* out) {
    std::memset(out, kQMin, static_cast<size_t>(s.channels));
    ForWindow(s, image, y, x, [&](const int8_t* p) { s.isa->Max(p, out, s.channels); });
  });
  return Status::kOk;
}

constexpr int64_t kBlock = 256;

Status RunAvgPool(const Run& ctx) {
  const auto& s = ctx.state<State>();
  ForPixels(ctx, s, [&](const int8_t* image, int64_t y, int64_t x, int8_t* out) {
    for (int64_t first = 0; first < s.channels; first += kBlock) {
      const int64_t width = s.channels - first < kBlock ? s.channels - first : kBlock;
      int32_t acc[kBlock] = {};
      const int64_t window =
          ForWindow(s, image, y, x, [&](const int8_t* p) { s.isa->Accumulate(p + first, acc, width); });
      const auto n = static_cast<int32_t>(window);
      for (int64_t i = 0; i < width; ++i)
        out[first + i] = n == 0 ? s.zero_point  // dilation may leave a window without elements
                                : static_cast<int8_t>((acc[i] > 0 ? acc[i] + n / 2 : acc[i] - n / 2) / n);
    }
  });
  return Status::kOk;
}

}  // namespace

const Kernel max_pool_i8 = {PreparePool, RunMaxPool};
const Kernel avg_pool_i8 = {PreparePool, RunAvgPool};

}  // namespace rillet
